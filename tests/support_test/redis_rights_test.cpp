// SPDX-License-Identifier: MIT
#include "support/redis_rights.hpp"

#include "support/catch.hpp"

#include <fstream>
#include <iterator>
#include <regex>
#include <string>

using namespace holdfast::test;

TEST_CASE("the rights with which the tests run are those that README asks for")
{
    std::ifstream file{HOLDFAST_TEST_README};
    std::string const text{std::istreambuf_iterator<char>{file}, {}};
    auto const readme = std::regex_replace(text, std::regex{"\\s+"}, " ");
    auto const code = [](std::string_view words) { return "`" + std::string{words} + "`"; };
    CHECK_THAT(readme, contains("needs the keys `~<your names>` and " + code(fence_keys) + ", the channels " + code(free_channels) + ", and the commands " +
                                code(lock_commands) + "; for Redlock " + code(redlock_commands) + " as well, for a restart guard " + code(guard_commands) +
                                ", for a database number " + code(database_commands) + "."));
}
