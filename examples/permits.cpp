// SPDX-License-Identifier: MIT
//
// Five jobs, of which two may run at a time, whatever the number of processes. Start this program several times at once
// and see that they share the two permits.
//
//   permits [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <sstream>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

void run(int job, holdfast::semaphore& jobs)
{
    holdfast::leased_permit permit{jobs, 30s};
    std::ostringstream line;  // written at once, as the jobs run beside each other
    if (permit) {
        std::this_thread::sleep_for(100ms);  // the work
        line << "job " << job << " ran in slot " << permit.slot() << ", with fencing token " << permit.fencing_token();
    } else {
        line << "job " << job << " got no permit";
    }
    std::cout << line.str() + '\n';
}

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::semaphore jobs{redis, "jobs", 2, {.ttl = 10s}};
    jobs.acquire();  // throws if there is no server
    jobs.release();
    std::vector<std::jthread> threads;
    for (int job = 1; job <= 5; ++job)
        threads.emplace_back([&jobs, job] {
            try {
                run(job, jobs);
            } catch (std::exception const& e) {
                std::cerr << e.what() << '\n';
            }
        });
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
