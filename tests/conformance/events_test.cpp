// SPDX-License-Identifier: MIT
//
// What an observer is told of a call, and in which order.
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_stats.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::lock_event;
using holdfast::test::eventually;
using holdfast::test::renewed;
using holdfast::test::sleeper;
using kind = holdfast::lock_event::kind;

namespace {

/// Keeps what it is told of the lock `orders`, but for renewals.
class notebook {
public:
    template <class Client>
    explicit notebook(Client& of)
    {
        of.observe([to = notes_](lock_event const& e) {
            if (e.lock_name != "orders" || e.what == kind::renewed || e.what == kind::at_risk) return;
            std::scoped_lock const guard{to->mutex};
            to->all.push_back(e);
        });
    }

    /// Effects: waits until there are `n`: what asynchronous calls do is told in the background. Returns: all.
    [[nodiscard]] std::vector<lock_event> first(std::size_t n) const
    {
        static_cast<void>(eventually([&] { return all().size() >= n; }, 5min));
        return all();
    }

    /// Effects: waits until it is told that. Returns: whether it was.
    [[nodiscard]] bool is_told(kind what) const
    {
        return eventually(
            [&] {
                auto const got = all();
                return std::any_of(got.begin(), got.end(), [&](auto const& e) { return e.what == what; });
            },
            5min);
    }

private:
    /// Outlives this: the client may tell something at its end.
    struct notes {
        std::mutex mutex;
        std::vector<lock_event> all;
    };

    [[nodiscard]] std::vector<lock_event> all() const
    {
        std::scoped_lock const guard{notes_->mutex};
        return notes_->all;
    }

    std::shared_ptr<notes> notes_ = std::make_shared<notes>();
};

/// Effects: lets so much time go by, on the clock that the durations are of. Returns: whether it has.
bool goes_by(std::chrono::nanoseconds d)
{
    auto const begun = holdfast::boot_clock::now();
    return eventually([&] { return holdfast::boot_clock::now() - begun >= d; });
}

std::vector<kind> kinds(std::vector<lock_event> const& all)
{
    std::vector<kind> some;
    for (auto const& e : all) some.push_back(e.what);
    return some;
}

}  // namespace

TEMPLATE_TEST_CASE("a call that gets the lock at once is told of as attempted and acquired", "", HOLDFAST_STORES)
{
    TestType store;
    notebook told{store.one};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    m.lock();
    CHECK(goes_by(2ms));
    m.unlock();
    auto const got = told.first(3);
    REQUIRE(kinds(got) == std::vector{kind::attempted, kind::acquired, kind::released});
    CHECK(got[1].duration > 0ns);
    CHECK(got[2].duration >= 2ms);
}

TEMPLATE_TEST_CASE("a call that another client keeps waiting is told of as waiting, once, before it has the lock", "",
                   HOLDFAST_STORES)
{
    TestType store;
    notebook told{store.one};
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    sleeper waits{[&] { m.lock(); }};
    CHECK(told.is_told(kind::waiting));
    CHECK(goes_by(2ms));
    holder.unlock();
    waits.join();
    m.unlock();
    auto const got = told.first(4);
    REQUIRE(kinds(got) == std::vector{kind::attempted, kind::waiting, kind::acquired, kind::released});
    CHECK(got[2].duration >= 2ms);
    CHECK_FALSE(got[2].handed_over);
}

TEMPLATE_TEST_CASE("a call that a holder of the same client keeps waiting is told of as waiting, too", "",
                   HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    notebook told{store.one};
    std::stop_source stop;
    sleeper waits{[&] { return m.lock(stop.get_token()); }};
    CHECK(told.is_told(kind::waiting));
    stop.request_stop();
    CHECK_FALSE(waits.join());
    auto const got = told.first(3);
    REQUIRE(kinds(got) == std::vector{kind::attempted, kind::waiting, kind::not_acquired});
    CHECK(got[2].code == std::errc::operation_canceled);
}

TEMPLATE_TEST_CASE("a call whose time is over is told of as waiting before that, and a single attempt is not", "",
                   HOLDFAST_STORES)
{
    TestType store;
    typename TestType::mutex holder{store.other, "orders", renewed<TestType>()};
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    holder.lock();
    notebook told{store.one};
    auto const begun = holdfast::boot_clock::now();
    CHECK_FALSE(m.try_lock_for(50ms));
    auto const got = told.first(3);
    auto const took = holdfast::boot_clock::now() - begun;
    REQUIRE(kinds(got) == std::vector{kind::attempted, kind::waiting, kind::not_acquired});
    CHECK(got[2].code == errc::timed_out);
    CHECK(got[2].duration > 0ms);  // it begins a little later than the 50 ms
    CHECK(got[2].duration <= took);
    CHECK_FALSE(m.try_lock());
    auto all = told.first(5);
    all.erase(all.begin(), all.begin() + 3);
    REQUIRE(kinds(all) == std::vector{kind::attempted, kind::not_acquired});
    CHECK(all[1].code == errc::timed_out);
}

TEMPLATE_TEST_CASE("each of several locks is told of as attempted and acquired, once", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    typename TestType::mutex orders{store.one, "orders", renewed<TestType>()};
    typename TestType::mutex invoices{store.one, "invoices", renewed<TestType>()};
    holdfast::multi_mutex both{orders, invoices};
    notebook told{store.one};
    both.lock();
    both.unlock();
    REQUIRE(kinds(told.first(3)) == std::vector{kind::attempted, kind::acquired, kind::released});
}
