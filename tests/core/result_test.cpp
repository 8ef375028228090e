// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/core/result.hpp>

#include <memory>
#include <new>
#include <string>
#include <utility>

using holdfast::errc;
using holdfast::failure;
using holdfast::result;

TEST_CASE("a result with a value is true, gives it, and has no error")
{
    result<std::string> r{std::string{"orders"}};
    CHECK(r);
    CHECK(*r == "orders");
    CHECK(r->size() == 6);
    CHECK_FALSE(r.code());
    *r += "/42";
    auto const& constant = r;
    CHECK(*constant == "orders/42");
    CHECK(constant->size() == 9);
}

TEST_CASE("a result with a failure is false and says why")
{
    result<int> const r{failure{make_error_code(errc::unavailable), "redis://h:6379"}};
    CHECK_FALSE(r);
    CHECK(r.code() == errc::unavailable);
    CHECK(r.why().code == errc::unavailable);
    CHECK(r.why().detail == "redis://h:6379");
}

TEST_CASE("a code or a condition is a failure without detail")
{
    result<int> const by_code{std::make_error_code(std::errc::operation_canceled)};
    CHECK_FALSE(by_code);
    CHECK(by_code.code() == std::errc::operation_canceled);
    CHECK(by_code.why().detail.empty());

    result<int> const by_condition{errc::timed_out};
    CHECK_FALSE(by_condition);
    CHECK(by_condition.code() == make_error_code(errc::timed_out));
    CHECK(by_condition.why().detail.empty());
}

TEST_CASE("a value that is false, zero or null is a value")
{
    CHECK(result<int>{0});
    CHECK(result<bool>{false});
    CHECK_FALSE(*result<bool>{false}.operator->());
    CHECK(result<std::shared_ptr<int>>{nullptr});
}

TEST_CASE("a value that can only be moved is moved in and out")
{
    result<std::unique_ptr<int>> r{std::make_unique<int>(7)};
    REQUIRE(r);
    auto const out = std::move(*r);
    CHECK(*out == 7);
}

TEST_CASE("what was thrown has its code, or is taken for a lack of memory")
{
    auto const code_after = [](auto thrown) {
        try {
            throw thrown;
        } catch (...) {
            return holdfast::detail::current_exception_code();
        }
    };
    CHECK(code_after(holdfast::error{errc::misconfigured, "why"}) == errc::misconfigured);
    CHECK(code_after(std::bad_alloc{}) == std::errc::not_enough_memory);
    CHECK(code_after(1) == std::errc::not_enough_memory);
}
