// SPDX-License-Identifier: MIT
//
// A fleet in which half of the processes are of version 0.1: fleet SERVERS OLD NEW [least], OLD and NEW being the
// programs of the members. They share one lock, on one Redis or on several masters; with `least`, as a user with no
// more rights than 0.1 asked for. One of each version is killed on the way. All others get the lock again and again, no
// two at once, with greater and greater fencing tokens.
#include "board.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/redis_rights.hpp"
#include "support/redis_server.hpp"
#include "support/temporary_folder.hpp"

#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using holdfast::test::child;

child start(std::string const& program, std::string const& file, std::size_t seat, std::vector<std::string> const& urls)
{
    std::vector<std::string> words{program, file, std::to_string(seat)};
    words.insert(words.end(), urls.begin(), urls.end());
    return child::fork([&]() -> int {
        std::vector<char*> arguments;
        for (auto& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        ::execv(arguments[0], arguments.data());
        return 127;
    });
}

int fail(char const* what)
{
    std::fprintf(stderr, "mixed fleet: %s\n", what);
    return 1;
}

/// Returns: whether each of those that live has had the lock `count` times more.
bool all_go_on(board const& all, std::uint64_t count)
{
    std::vector<std::uint64_t> before;
    for (auto const& one : all.seats) before.push_back(one.sections.load());
    return holdfast::test::eventually(
        [&] {
            for (std::size_t i = 0; i < all.seats.size(); ++i)
                if (!all.seats[i].killed && all.seats[i].sections < before[i] + count) return false;
            return true;
        },
        3min);
}

}  // namespace

int main(int argc, char* argv[])
try {
    if (argc != 4 && argc != 5) return 2;
    bool const least = argc == 5;
    auto const count = static_cast<std::size_t>(std::atoi(argv[1]));
    auto const more = count > 1 ? holdfast::test::redlock_commands : std::string_view{};
    auto const rights = holdfast::test::least_rights("secret", "orders", more, false);
    holdfast::test::redis_fleet servers{count, {.config = least ? std::vector{rights} : std::vector<std::string>{}}};
    holdfast::test::temporary_folder const folder;
    auto const file = (folder.path() / "board").string();
    auto& all = map_board(file.c_str(), true);
    std::vector<child> members;
    for (std::size_t i = 0; i < most_members; ++i)
        members.push_back(start(argv[2 + i % 2], file, i, least ? servers.urls("app", "secret") : servers.urls()));
    if (!all_go_on(all, 50)) return fail("not all get the lock");
    for (std::size_t i = 0; i < 2; ++i) {
        all.seats[i].killed = true;
        members[i].kill();
        if (!all_go_on(all, 20)) return fail("not all get the lock after one of them was killed");
    }
    all.stop = true;
    for (std::size_t i = 2; i < most_members; ++i)
        if (members[i].wait_for(1min) != 0) return fail("a member does not end well");
    for (std::size_t i = 0; i < most_members; ++i)
        std::printf("%s %zu: %llu sections\n", i % 2 == 0 ? "0.1" : "new", i,
                    static_cast<unsigned long long>(all.seats[i].sections));
    // A member whose lease is over before its section begins meets another one there, and so does the next one.
    if (all.overlaps > 2 * all.lost) return fail("two had the lock at once");
    if (all.fences_in_disorder != 0) return fail("a fencing token was not greater than the one before");
    return 0;
} catch (std::exception const& e) {
    return fail(e.what());
}
