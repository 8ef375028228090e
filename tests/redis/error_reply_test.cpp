// SPDX-License-Identifier: MIT
//
// Error replies of the servers that there are, byte for byte as their sources make them: scripting.c of Redis 6.2,
// script.c, script_lua.c, acl.c and server.c of Redis 7.0, 7.2, 7.4 and 8.0, the same of Valkey 7.2 and 8.0.
#include "support/catch.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/scripts.hpp>

#include <string>
#include <string_view>
#include <vector>

using holdfast::redis::errc;
using holdfast::redis::error_reply;
using holdfast::test::contains;

namespace {

constexpr std::string_view script =
    "\nlocal a = 1\nif redis.pcall('GET', KEYS[1]) then\n  redis.call('PEXPIRE', KEYS[1], 1)\nend\n";

struct answer {
    std::string server;
    std::string text;
};

std::string const sha1(40, 'e');

std::vector<answer> const commands_denied{
    {"6.2",
     "ERR Error running script (call to f_" + sha1 +
         "): @user_script:4: @user_script: 4: The user executing the script can't run this command or subcommand "},
    {"7.0",
     "ERR The user executing the script can't run this command or subcommand script: " + sha1 + ", on @user_script:4."},
    {"7.2", "ERR ACL failure in script: User app has no permissions to run the 'pexpire' command script: " + sha1 +
                ", on @user_script:4."},
    {"valkey 8.0, by a strange user",
     "ERR ACL failure in script: User key-channel has no permissions to run the 'pexpire' command script: " + sha1 +
         ", on @user_script:4."},
};

std::vector<answer> const keys_denied{
    {"6.2",
     "ERR Error running script (call to f_" + sha1 +
         "): @user_script:4: @user_script: 4: The user executing the script can't access at least one of the keys mentioned in the command arguments "},
    {"7.0",
     "ERR The user executing the script can't access at least one of the keys mentioned in the command arguments script: " +
         sha1 + ", on @user_script:4."},
    {"7.2", "ERR ACL failure in script: No permissions to access a key script: " + sha1 + ", on @user_script:4."},
    {"6.2, no script", "NOPERM this user has no permissions to access one of the keys used as arguments"},
    {"7.2, no script", "NOPERM No permissions to access a key"},
};

}  // namespace

TEST_CASE("a command that is not permitted inside a script is named, whatever version says so", "[redis][error_reply]")
{
    for (auto const& [server, text] : commands_denied) {
        CAPTURE(server);
        CHECK(error_reply{text}.code() == errc::not_permitted);
        CHECK_THAT(error_reply{text}.detail(script), contains("the command \"") &&
                                                         (contains("PEXPIRE") || contains("pexpire")) &&
                                                         contains("is not permitted"));
    }
    CHECK(error_reply{"NOPERM this user has no permissions to run the 'evalsha' command or its subcommand"}.detail() ==
          "the command \"evalsha\" is not permitted");
    CHECK(error_reply{"NOPERM User app has no permissions to run the 'evalsha' command"}.detail() ==
          "the command \"evalsha\" is not permitted");
    CHECK(error_reply{commands_denied[1].text}.detail().empty());
    CHECK(error_reply{
        "ERR The user executing the script can't run this command or subcommand script: x, on @user_script:400."}
              .detail(script)
              .empty());
}

TEST_CASE("a key or a channel that is not permitted inside a script is a missing right", "[redis][error_reply]")
{
    for (auto const& [server, text] : keys_denied) {
        CAPTURE(server);
        CHECK(error_reply{text}.code() == errc::not_permitted);
        CHECK(error_reply{text}.detail(script) == "a key is not permitted");
    }
    for (
        std::string const text :
        {"NOPERM this user has no permissions to access one of the channels used as arguments",
         "NOPERM No permissions to access a channel",
         "ERR The user executing the script can't publish to the channel mentioned in the command script: e, on @user_script:4."}) {
        CHECK(error_reply{text}.code() == errc::not_permitted);
        CHECK(error_reply{text}.detail(script) == "a channel is not permitted");
    }
}

TEST_CASE("an error that stopped a script is the same with and without what Redis 6 and 7 put around it",
          "[redis][error_reply]")
{
    auto const [text, code] = GENERATE(table<std::string, errc>({
        {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
        {"READONLY You can't write against a read only replica.", errc::read_only},
        {"MISCONF Redis is configured to save RDB snapshots, but it is currently not able to persist on disk.",
         errc::write_refused},
        {"NOREPLICAS Not enough good replicas to write.", errc::no_replicas},
        {"WRONGTYPE Operation against a key holding the wrong kind of value", errc::wrong_type},
        {"OTHERNUMBER its number of permits is 2, and this client says 3", errc::other_number},
        {"ERR value is not an integer or out of range", errc::server_error},
    }));
    CAPTURE(text);
    CHECK(error_reply{text}.code() == code);
    CHECK(error_reply{text + " script: " + sha1 + ", on @user_script:4."}.code() == code);
    CHECK(error_reply{"ERR Error running script (call to f_" + sha1 + "): @user_script:4: @user_script: 4: -" + text +
                      "  "}
              .code() == code);
    CHECK(error_reply{"ERR Error running script (call to f_" + sha1 + "): @user_script:4: " + text + " "}.code() ==
          code);
}

TEST_CASE(
    "the first words of an unknown error are told, without what was sent, what may be a token, and what a terminal obeys",
    "[redis][error_reply]")
{
    CHECK(error_reply{"ERR broken\x1b[2J\r\n\"here\""}.detail() ==
          "the server said \"ERR broken\\x1b[2J\\x0d\\x0a\\\"here\\\"\"");
    std::string const token(32, 'a');
    CHECK(error_reply{"ERR what is " + token + "?"}.detail() ==
          "the server said \"ERR what is " + std::string(32, '.') + "?\"");
    CHECK(error_reply{"ERR unknown command 'EVALSHA', with args beginning with: 'secret' 'more' "}.code() ==
          errc::no_script);
    CHECK(error_reply{"ERR unknown command `EVALSHA`, with args beginning with: `secret`, "}.detail() ==
          "the server said \"ERR unknown command `EVALSHA`\"");
    CHECK(error_reply{"ERR " + std::string(5000, 'x')}.detail().size() < 130);
    CHECK(error_reply{"ERR " + std::string(85, 'x') + token}.detail().find("aaaa") == std::string::npos);
    CHECK(error_reply{""}.code() == errc::server_error);
    CHECK(error_reply{"LOADING Redis is loading"}.detail().empty());
    CHECK(error_reply{"NOAUTH Authentication required."}.detail() ==
          "the server asks for a password, and none is given");
    CHECK(error_reply{"WRONGPASS invalid username-password pair or user is disabled."}.detail().empty());
}

TEST_CASE("a reply that only looks like a script's is taken as it is", "[redis][error_reply]")
{
    for (std::string const text :
         {"ERR Error running script", "ERR Error running script @user_script:",
          "ERR Error running script @user_script:@user_script:", " script: @user_script:", "@user_script:",
          "ERR Error running script @user_script: : ", "ERR x script: y, on @user_script:99999999999999999999."}) {
        CAPTURE(text);
        CHECK((error_reply{text}.code() == errc::server_error));
        (void)error_reply{text}.detail(script);
    }
}
