// SPDX-License-Identifier: MIT
#include "support/redis_rights.hpp"

#include "support/catch.hpp"

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

using holdfast::test::contains;
namespace rights = holdfast::test;

namespace {

/// Returns: the text of a page, each run of blanks and line ends as one blank.
std::string page_of(std::string const& path)
{
    std::ifstream file{path};
    std::string const text{std::istreambuf_iterator<char>{file}, {}};
    return std::regex_replace(text, std::regex{"\\s+"}, " ");
}

std::string code(std::string_view words) { return "`" + std::string{words} + "`"; }

}  // namespace

TEST_CASE("the rights with which the tests run are those that docs/redis.md asks for")
{
    auto const page = page_of(HOLDFAST_TEST_RIGHTS);
    CHECK_THAT(
        page,
        contains("needs, for locks whose names begin with `orders`, the keys " + code(rights::lock_keys_of("orders*")) +
                 ", the channels " + code(rights::free_channels_of("orders*")) + ", and the commands " +
                 code(rights::lock_commands) + "; for waiters to be served in turn the keys " +
                 code(rights::queue_keys_of("orders*")) + ", the channel " + code(rights::queue_channels) +
                 " and the commands " + code(rights::queue_commands) + " as well; for a `shared_mutex` the keys " +
                 code(rights::shared_keys_of("orders*")) + " and the commands " + code(rights::shared_commands) +
                 "; for Redlock " + code(rights::redlock_commands) + ", for a restart guard " +
                 code(rights::guard_commands) + ", for a database number " + code(rights::database_commands) + "."));
}

TEST_CASE("the same of locks in Redisson's layout, on the page about it")
{
    std::string path = HOLDFAST_TEST_RIGHTS;
    path.replace(path.rfind("redis.md"), std::string::npos, "redisson.md");
    CHECK_THAT(page_of(path), contains("names begin with `orders`, the keys " +
                                       code(rights::redisson_keys_of("orders*")) + ", the channels " +
                                       code(rights::redisson_channels_of("orders*")) + ", and the commands " +
                                       code(rights::redisson_commands) + "."));
}
