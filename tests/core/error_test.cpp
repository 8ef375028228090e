// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/error.hpp>

#include <set>
#include <string>
#include <system_error>

using holdfast::errc;
using holdfast::error;
using holdfast::test::contains;

namespace {

constexpr auto all = {errc::contended,   errc::timed_out,     errc::lease_lost, errc::outcome_unknown,
                      errc::unavailable, errc::misconfigured, errc::not_owner};

/// A store's category: every code of it is `unavailable`.
class foreign final : public std::error_category {
public:
    [[nodiscard]] char const* name() const noexcept override { return "foreign"; }
    [[nodiscard]] std::string message(int) const override { return "the disk is full"; }
    [[nodiscard]] std::error_condition default_error_condition(int) const noexcept override
    {
        return make_error_condition(errc::unavailable);
    }
};

}  // namespace

TEST_CASE("a code equals its own condition and no other, the standard's timed_out neither")
{
    for (auto const one : all)
        for (auto const other : all) CHECK((make_error_code(one) == other) == (one == other));
    for (auto const one : all) CHECK(make_error_code(one) != std::errc::timed_out);
}

TEST_CASE("a code that is no error equals no condition")
{
    for (auto const one : all) CHECK(std::error_code{} != one);
    for (auto const one : all) CHECK(make_error_code(one));
}

TEST_CASE("a store's own code keeps its category and equals its condition")
{
    foreign const category;
    std::error_code const code{7, category};
    CHECK(code == errc::unavailable);
    CHECK(code != errc::misconfigured);
    CHECK(code != make_error_code(errc::unavailable));
}

TEST_CASE("every code has a message of its own, in a category with a name")
{
    std::set<std::string> messages;
    for (auto const one : all) {
        auto const text = make_error_code(one).message();
        CHECK(text != "unknown holdfast error");
        CHECK(messages.insert(text).second);
    }
    CHECK(std::error_code(999, holdfast::error_category()).message() == "unknown holdfast error");
    CHECK(std::string{holdfast::error_category().name()} == "holdfast");
}

TEST_CASE("an error is a system_error that has a code and says what it was given")
{
    STATIC_REQUIRE(std::is_base_of_v<std::system_error, error>);
    error const own{errc::lease_lost, "lock \"orders\""};
    CHECK(own.code() == make_error_code(errc::lease_lost));
    CHECK_THAT(own.what(), contains("lock \"orders\"") && contains("the lease was lost"));

    foreign const category;
    error const theirs{std::error_code{7, category}, "lock \"orders\""};
    CHECK(theirs.code() == errc::unavailable);
    CHECK_THAT(theirs.what(), contains("lock \"orders\"") && contains("the disk is full"));
}

TEST_CASE("an error has what it is about as data, where it is about something")
{
    error const plain{errc::unavailable, "no descriptor"};
    CHECK(plain.lock_name().empty());
    CHECK(plain.server().empty());
    CHECK_FALSE(plain.over());
    error const whole{
        make_error_code(errc::unavailable), "lock", {.lock_name = "a\nb", .server = "redis://h:1", .over = true}};
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<error>);
    auto const copy = whole;
    CHECK(copy.lock_name() == "a\nb");
    CHECK(copy.server() == "redis://h:1");
    CHECK(copy.over());
    CHECK(std::string{copy.what()} == "lock: no quorum of servers could be asked");
}
