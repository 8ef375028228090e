// SPDX-License-Identifier: MIT
//
// A crowd with Curator's InterProcessMutex, each thread with a client of its own.
//
//   java CuratorCrowd.java HOSTS PATH THREADS SECONDS
//
// Says "ready" when each has had the lock once. For each line that it is sent, the threads want the lock again and
// again for so many seconds; then it says how many sections they had, and in how many seconds.

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public class CuratorCrowd {
    private static volatile boolean stop = true;

    /** Returns: how many sections there were until all were told to stop. */
    private static long use(InterProcessMutex lock) throws Exception {
        long sections = 0;
        do {
            lock.acquire();
            lock.release();
            ++sections;
        } while (!stop);
        return sections;
    }

    private static long sum(List<Future<Long>> all) throws Exception {
        long sum = 0;
        for (Future<Long> one : all) {
            sum += one.get();
        }
        return sum;
    }

    public static void main(String[] words) throws Exception {
        int threads = Integer.parseInt(words[2]);
        long slice = Math.round(Double.parseDouble(words[3]) * 1000);
        List<Callable<Long>> users = new ArrayList<>();
        for (int i = 0; i < threads; ++i) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(words[0], 60000, 60000, new RetryOneTime(100));
            client.start();
            InterProcessMutex lock = new InterProcessMutex(client, words[1]);
            users.add(() -> use(lock));
        }
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        sum(pool.invokeAll(users));
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        while (in.readLine() != null) {
            stop = false;
            long begun = System.nanoTime();
            List<Future<Long>> running = new ArrayList<>();
            for (Callable<Long> one : users) {
                running.add(pool.submit(one));
            }
            Thread.sleep(slice);
            stop = true;
            long sections = sum(running);
            System.out.println(sections + " " + (System.nanoTime() - begun) / 1e9);
        }
        System.exit(0);
    }
}
