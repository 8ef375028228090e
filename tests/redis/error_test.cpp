// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>

#include <set>
#include <string>

using holdfast::redis::classify;
using holdfast::redis::errc;
using holdfast::test::contains;

namespace {

constexpr auto transient = {errc::cannot_connect,     errc::connection_lost,   errc::no_answer,
                            errc::protocol_error,     errc::loading,           errc::busy,
                            errc::read_only,          errc::out_of_memory,     errc::write_refused,
                            errc::no_replicas,        errc::master_down,       errc::cluster_down,
                            errc::restarted_recently, errc::clock_out_of_line, errc::clock_not_compared,
                            errc::too_many_clients,   errc::server_error};
constexpr auto permanent = {
    errc::authentication_failed, errc::not_permitted, errc::wrong_type, errc::moved, errc::no_script,
    errc::bad_database,          errc::other_number};

constexpr auto conditions = {holdfast::errc::contended,   holdfast::errc::timed_out,
                             holdfast::errc::lease_lost,  holdfast::errc::outcome_unknown,
                             holdfast::errc::unavailable, holdfast::errc::misconfigured,
                             holdfast::errc::not_owner};

void check_only(std::error_code code, holdfast::errc meant)
{
    CAPTURE(code.message());
    for (auto const one : conditions) CHECK((code == one) == (one == meant));
}

}  // namespace

TEST_CASE("what may pass is unavailable and nothing else, what will not is misconfigured and nothing else")
{
    for (auto const e : transient) check_only(e, holdfast::errc::unavailable);
    for (auto const e : permanent) check_only(e, holdfast::errc::misconfigured);
}

TEST_CASE("every code has a message of its own")
{
    std::set<std::string> messages;
    for (auto const& codes : {transient, permanent})
        for (auto const e : codes) {
            auto const text = make_error_code(e).message();
            CHECK(text != "unknown Redis error");
            CHECK(messages.insert(text).second);
        }
    CHECK(std::error_code(999, holdfast::redis::error_category()).message() == "unknown Redis error");
}

TEST_CASE("the category has a name, and its codes are errors")
{
    CHECK(std::string{holdfast::redis::error_category().name()} == "holdfast.redis");
    std::error_code const code = errc::cannot_connect;
    CHECK(code);
    CHECK(code.category() == holdfast::redis::error_category());
    CHECK(code != make_error_code(errc::connection_lost));
}

TEST_CASE("an error reply is known by its first word")
{
    auto const [reply, code] = GENERATE(table<std::string, errc>({
        {"LOADING Redis is loading the dataset in memory", errc::loading},
        {"BUSY Redis is busy running a script.", errc::busy},
        {"READONLY You can't write against a read only replica.", errc::read_only},
        {"OOM command not allowed when used memory > 'maxmemory'.", errc::out_of_memory},
        {"MISCONF Redis is configured to save RDB snapshots", errc::write_refused},
        {"NOREPLICAS Not enough good replicas to write.", errc::no_replicas},
        {"MASTERDOWN Link with MASTER is down", errc::master_down},
        {"CLUSTERDOWN Hash slot not served", errc::cluster_down},
        {"NOAUTH Authentication required.", errc::authentication_failed},
        {"WRONGPASS invalid username-password pair", errc::authentication_failed},
        {"NOPERM this user has no permissions", errc::not_permitted},
        {"WRONGTYPE Operation against a key", errc::wrong_type},
        {"MOVED 3999 127.0.0.1:6381", errc::moved},
        {"ASK 3999 127.0.0.1:6381", errc::moved},
        {"CROSSSLOT Keys in request don't hash to the same slot", errc::moved},
        {"NOSCRIPT No matching script.", errc::no_script},
        {"NOSCRIPT", errc::no_script},
    }));
    CAPTURE(reply);
    CHECK(classify(reply) == code);
}

TEST_CASE("an error reply that is not known is a server error, and no word of it is taken for another")
{
    for (auto const* reply : {"ERR unknown", "", " ", " LOADING", "LOADINGS x", "loading", "ERR LOADING", "OO"})
        CHECK(classify(reply) == errc::server_error);
}
