// SPDX-License-Identifier: MIT
//
// Contends for a lock with Curator's InterProcessMutex.
//
//   java CuratorRival.java count HOSTS PATH COUNTER TIMES   adds TIMES to the number in the file COUNTER, each time under the lock
//   java CuratorRival.java hold HOSTS PATH                  takes the lock, says so, and keeps it
//   java CuratorRival.java participants HOSTS PATH          prints what the nodes of those in line hold, one a line

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorRival {
    public static void main(String[] words) throws Exception {
        int session = words[0].equals("hold") ? 20000 : 60000;  // the end of one who holds is waited for
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(words[1], session, 60000, new RetryOneTime(100))) {
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, words[2]);
            switch (words[0]) {
            case "count":
                Path counter = Path.of(words[3]);
                for (int i = 0; i < Integer.parseInt(words[4]); ++i) {
                    lock.acquire();
                    try {
                        int seen = Integer.parseInt(Files.readString(counter).trim());
                        Thread.sleep(1);
                        Files.writeString(counter, Integer.toString(seen + 1));
                    } finally {
                        lock.release();
                    }
                }
                break;
            case "hold":
                lock.acquire();
                System.out.println("held");
                Thread.sleep(Long.MAX_VALUE);
                break;
            case "participants":
                Collection<String> nodes = lock.getParticipantNodes();
                for (String node : nodes)
                    System.out.println(new String(client.getData().forPath(node)));
                break;
            }
        }
    }
}
