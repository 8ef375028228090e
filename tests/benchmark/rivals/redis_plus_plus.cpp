// SPDX-License-Identifier: MIT
//
// One process of a crowd, with redis-plus-plus's mutex as it is by default: redis_plus_plus SECONDS SECTION_US PORT...;
// as redis_py.py. What waits at the end is counted as a wait, and given up, as in node_redlock.cjs.
#include <sw/redis++/patterns/redlock.h>
#include <sw/redis++/redis++.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

struct crowd_member {
    std::atomic<clock_type::time_point> begun{clock_type::now()};
    std::atomic<long> sections{0};
    std::atomic<double> longest{0};
    std::atomic<bool> told{false};

    [[nodiscard]] double waited() const
    {
        return std::chrono::duration<double>(clock_type::now() - begun.load()).count();
    }

    void once(sw::redis::RedMutex& lock, std::chrono::microseconds section)
    {
        begun = clock_type::now();
        lock.lock();
        longest = std::max(longest.load(), waited());
        if (section.count() > 0) std::this_thread::sleep_for(section);
        lock.unlock();
    }

    /// Called by two threads: the first one ends the process.
    void tell()
    {
        if (told.exchange(true)) std::this_thread::sleep_for(std::chrono::minutes{1});
        std::printf("%ld %f\n", sections.load(), std::max(longest.load(), waited()));
        std::fflush(stdout);
        ::_exit(0);
    }
};

}  // namespace

int main(int count, char** words)
{
    if (count < 4) return 2;
    std::chrono::duration<double> const seconds{std::atof(words[1])};
    std::chrono::microseconds const section{std::atol(words[2])};
    std::vector<std::shared_ptr<sw::redis::Redis>> masters;
    for (int i = 3; i < count; ++i)
        masters.push_back(std::make_shared<sw::redis::Redis>("tcp://127.0.0.1:" + std::string{words[i]}));
    sw::redis::RedMutex warm_up{masters.begin(), masters.end(), "warm-up of " + std::to_string(::getpid())};
    sw::redis::RedMutex orders{masters.begin(), masters.end(), "orders of redis-plus-plus"};

    crowd_member me;
    me.once(warm_up, section);
    std::cout << "ready" << std::endl;
    std::string go;
    std::getline(std::cin, go);
    me.longest = 0;
    auto const end = clock_type::now() + std::chrono::duration_cast<clock_type::duration>(seconds);
    std::thread{[&] {
        std::this_thread::sleep_until(end + std::chrono::milliseconds{100});
        me.tell();
    }}.detach();
    while (clock_type::now() < end) {
        me.once(orders, section);
        ++me.sections;
    }
    me.tell();
}
