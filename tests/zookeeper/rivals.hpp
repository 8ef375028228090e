// SPDX-License-Identifier: MIT
//
// Programs that contend with the real kazoo and the real Curator.
#pragma once

#include "support/catch.hpp"
#include "support/curator.hpp"
#include "support/process.hpp"
#include "support/rival.hpp"

#include <holdfast/semaphore.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::test {

inline child kazoo(std::vector<std::string> words, std::string const& output)
{
    words.insert(words.begin(), {"/usr/bin/python3", beside_tests("kazoo_rival.py")});
    return start(std::move(words), output);
}

inline child curator(std::vector<std::string> const& words, std::string const& output)
{
    auto command = java_with_curator(beside_tests("CuratorRival.java"), {"-Xmx128m", "-XX:TieredStopAtLevel=1"});
    command.insert(command.end(), words.begin(), words.end());
    return start(std::move(command), output);
}

/// Effects: three threads take permits of `jobs`, and note in the folder `inside` who has one, as `theirs` do, until
/// each side has had `times` of them. Checks that never more had one than there are permits, and that `theirs` ends
/// well.
inline void share_permits(semaphore& jobs, std::filesystem::path const& inside, int times, child& theirs)
{
    using namespace std::chrono_literals;
    std::atomic<int> ours{0};
    std::atomic<int> wrong{0};
    std::atomic<bool> theirs_done{false};
    auto const work = [&](std::string const& name) {
        while (ours < times || !theirs_done) {
            leased_permit const permit{jobs};
            auto const file = inside / name;
            std::ofstream{file} << 1;
            std::this_thread::sleep_for(2ms);
            if (std::distance(std::filesystem::directory_iterator{inside}, {}) > jobs.max()) ++wrong;
            std::filesystem::remove(file);
            ++ours;
        }
    };
    {
        std::jthread a{work, "a"};
        std::jthread b{work, "b"};
        std::jthread c{work, "c"};
        CHECK(theirs.wait_for(3min) == 0);
        theirs_done = true;
    }
    CHECK(wrong == 0);
}

}  // namespace holdfast::test
