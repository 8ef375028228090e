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
    CHECK_THAT(page, contains("| every lock | " + code(rights::lock_keys_of("orders*")) + " | " +
                              code(rights::free_channels_of("orders*")) + " | " + code(rights::lock_commands) + " |"));
    CHECK_THAT(page, contains("| waiters that are served in turn | " + code(rights::queue_keys_of("orders*")) + " | " +
                              code(rights::queue_channels) + " | " + code(rights::queue_commands) + " |"));
    CHECK_THAT(page, contains("| a `shared_mutex` | " + code(rights::shared_keys_of("orders*")) + " | | " +
                              code(rights::shared_commands) + " |"));
    CHECK_THAT(page, contains("| " + code(rights::holder_keys_of("orders*")) + " | | |"));
    CHECK_THAT(page, contains("the number of waiters | | | " + code(rights::operator_commands) + " |"));
    CHECK_THAT(page, contains("| Redlock; a restart guard | | | " + code(rights::redlock_commands) + " |"));
    CHECK_THAT(page, contains("| a database number | | | " + code(rights::database_commands) + " |"));

    std::string more = rights::holder_keys_of("orders*");
    more.append(" ").append(rights::operator_commands).append(" ").append(rights::redlock_commands);
    CHECK_THAT(page, contains("``` " + rights::least_rights("password", "orders*", more) + " ```"));
}

TEST_CASE("the same of locks in Redisson's layout, on the page about it")
{
    std::string path = HOLDFAST_TEST_RIGHTS;
    path.replace(path.rfind("redis.md"), std::string::npos, "redisson.md");
    CHECK_THAT(page_of(path),
               contains("names begin with `orders`, the keys " + code(rights::redisson_keys_of("orders*")) +
                        ", the channels " + code(rights::redisson_channels_of("orders*")) + ", and the commands " +
                        code(rights::redisson_commands) + "."));
}
