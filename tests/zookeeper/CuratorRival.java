// SPDX-License-Identifier: MIT
//
// Contends for a lock with Curator's InterProcessMutex.
//
//   java CuratorRival.java count HOSTS PATH COUNTER TIMES   adds TIMES to the number in the file COUNTER, each time under the lock
//   java CuratorRival.java hold HOSTS PATH                  takes the lock, says so, and keeps it
//   java CuratorRival.java participants HOSTS PATH          prints what the nodes of those in line hold, one a line
//   java CuratorRival.java revocable HOSTS PATH             as hold, until it is asked for the lock; then it says so, and gives it back
//   java CuratorRival.java revoke HOSTS PATH                asks the holder for the lock
//
// The same with InterProcessReadWriteLock:
//
//   java CuratorRival.java mixed HOSTS PATH COUNTER TIMES   as count; between two writes it reads the file twice under the read lock, and
//                                                           ends with status 1 when it has changed
//   java CuratorRival.java hold-read HOSTS PATH             as hold, with the read lock
//   java CuratorRival.java hold-write HOSTS PATH            as hold, with the write lock
//   java CuratorRival.java downgrade HOSTS PATH             takes the write lock, then the read lock, gives the write lock back, says so
//   java CuratorRival.java try-read HOSTS PATH              asks for a moment, and says "held" or "refused"
//   java CuratorRival.java try-write HOSTS PATH             the same with the write lock
//
// And with InterProcessSemaphoreV2:
//
//   java CuratorRival.java hold-permit HOSTS PATH MAX       as hold, with one of MAX permits
//   java CuratorRival.java try-permit HOSTS PATH MAX        asks for 5 s, and says "held" or "refused"
//   java CuratorRival.java permits HOSTS PATH MAX FOLDER TIMES   takes a permit TIMES times; meanwhile there is a file in FOLDER, and it ends with
//                                                           status 1 when there are more of them than MAX

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collection;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

public class CuratorRival {
    public static void main(String[] words) throws Exception {
        int session = words[0].startsWith("hold") || words[0].equals("downgrade") ? 20000 : 60000;  // the end of one who holds is waited for
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(words[1], session, 60000, new RetryOneTime(100))) {
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, words[2]);
            InterProcessReadWriteLock both = new InterProcessReadWriteLock(client, words[2]);
            switch (words[0]) {
            case "mixed":
                mix(both, Path.of(words[3]), Integer.parseInt(words[4]));
                break;
            case "hold-read":
            case "hold-write":
                InterProcessMutex held = words[0].equals("hold-read") ? both.readLock() : both.writeLock();
                held.acquire();
                System.out.println("held");
                Thread.sleep(Long.MAX_VALUE);
                break;
            case "downgrade":
                both.writeLock().acquire();
                both.readLock().acquire();
                both.writeLock().release();
                System.out.println("held");
                Thread.sleep(Long.MAX_VALUE);
                break;
            case "try-read":
            case "try-write":
                InterProcessMutex side = words[0].equals("try-read") ? both.readLock() : both.writeLock();
                System.out.println(side.acquire(50, TimeUnit.MILLISECONDS) ? "held" : "refused");
                break;
            case "hold-permit":
                new InterProcessSemaphoreV2(client, words[2], Integer.parseInt(words[3])).acquire();
                System.out.println("held");
                Thread.sleep(Long.MAX_VALUE);
                break;
            case "try-permit":
                Lease asked = new InterProcessSemaphoreV2(client, words[2], Integer.parseInt(words[3])).acquire(5, TimeUnit.SECONDS);
                System.out.println(asked != null ? "held" : "refused");
                break;
            case "permits":
                int max = Integer.parseInt(words[3]);
                InterProcessSemaphoreV2 permits = new InterProcessSemaphoreV2(client, words[2], max);
                for (int i = 0; i < Integer.parseInt(words[5]); ++i) {
                    Lease one = permits.acquire();
                    Path inside = Files.createTempFile(Path.of(words[4]), "java", "");
                    Thread.sleep(2);
                    if (new File(words[4]).list().length > max) System.exit(1);
                    Files.delete(inside);
                    permits.returnLease(one);
                }
                break;
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
            case "revocable":
                CountDownLatch asking = new CountDownLatch(1);
                lock.makeRevocable(of -> asking.countDown());
                lock.acquire();
                System.out.println("held");
                asking.await();
                System.out.println("asked");
                lock.release();
                break;
            case "revoke":
                Revoker.attemptRevoke(client, lock.getParticipantNodes().iterator().next());
                break;
            case "participants":
                Collection<String> nodes = lock.getParticipantNodes();
                for (String node : nodes)
                    System.out.println(new String(client.getData().forPath(node)));
                break;
            }
        }
    }

    private static void mix(InterProcessReadWriteLock both, Path counter, int times) throws Exception {
        for (int i = 0; i < times; ++i) {
            both.writeLock().acquire();
            int seen = Integer.parseInt(Files.readString(counter).trim());
            Thread.sleep(1);
            Files.writeString(counter, Integer.toString(seen + 1));
            both.writeLock().release();
            both.readLock().acquire();
            String before = Files.readString(counter);
            Thread.sleep(1);
            if (!before.equals(Files.readString(counter)) || before.isEmpty()) System.exit(1);
            both.readLock().release();
        }
    }
}
