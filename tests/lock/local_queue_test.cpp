// SPDX-License-Identifier: MIT
//
// What a store knows by itself about the leases that its locks have.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using holdfast::acquire_request;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::owner_token;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

/// A store that ends the leases that it has been asked about; whoever acquires afterwards is not concerned.
struct ending_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<bool> mutable ended{false};
    std::function<void()> alarm;

    void on_loss(std::function<void()> f) { alarm = std::move(f); }
    [[nodiscard]] bool still_leased(owner_token const&) const noexcept { return !ended.exchange(false); }

    std::atomic<bool> end_when_granted{false};

    struct acquire_operation : backend::acquire_operation {
        acquire_operation(ending_backend& b, key const& name, acquire_request const& request) : backend::acquire_operation{b, name, request}, ends{b} {}

        [[nodiscard]] holdfast::result<holdfast::grant> outcome() const
        {
            auto const got = backend::acquire_operation::outcome();
            if (ends.end_when_granted) {
                ends.ended = true;
                ends.alarm();
            }
            return got;
        }

        ending_backend& ends;
    };

    struct extend_operation : backend::extend_operation {
        extend_operation(ending_backend& b, key const& name, owner_token const& token, std::chrono::milliseconds ttl)
            : backend::extend_operation{b, name, token, ttl}, ends{b}
        {
        }

        [[nodiscard]] holdfast::result<boot_clock::time_point> outcome() const
        {
            if (ends.ended) return errc::lease_lost;
            return backend::extend_operation::outcome();
        }

        ending_backend& ends;
    };
};

struct fixture {
    std::shared_ptr<ending_backend> store = std::make_shared<ending_backend>(std::make_shared<holdfast::memory::data>());
    std::shared_ptr<holdfast::detail::domain<ending_backend>> domain = std::make_shared<holdfast::detail::domain<ending_backend>>(store);
};

/// A store that notes in which order it is asked. It may say that others wait.
struct noting_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<bool> others{false};
    std::atomic<int> acquires{0};
    std::atomic<int> acquires_when_released{0};  // when the last release was answered
    std::atomic<boot_clock::time_point> asked_at{boot_clock::time_point{}};
    std::atomic<boot_clock::time_point> released_at{boot_clock::time_point{}};
    std::atomic<bool> releases_unanswered{false};
    std::atomic<bool> extends_unanswered{false};

    static void wait_while(std::atomic<bool> const& so)
    {
        while (so) std::this_thread::sleep_for(1ms);
    }

    struct acquire_operation : backend::acquire_operation {
        acquire_operation(noting_backend& b, key const& name, acquire_request const& request)
            : backend::acquire_operation{b, name, request}
        {
            ++b.acquires;
            b.asked_at = boot_clock::now();
        }
    };

    struct release_operation : backend::release_operation {
        release_operation(noting_backend& b, key const& name, owner_token const& token) : backend::release_operation{b, name, token}, notes{b} {}

        [[nodiscard]] bool wait_until(boot_clock::time_point) const
        {
            wait_while(notes.releases_unanswered);
            notes.acquires_when_released = notes.acquires.load();
            notes.released_at = boot_clock::now();
            return true;
        }
        [[nodiscard]] bool others_wait() const { return notes.others; }

        noting_backend& notes;
    };

    struct extend_operation : backend::extend_operation {
        extend_operation(noting_backend& b, key const& name, owner_token const& token, std::chrono::milliseconds ttl)
            : backend::extend_operation{b, name, token, ttl}, notes{b}
        {
        }

        [[nodiscard]] bool wait_until(boot_clock::time_point) const
        {
            wait_while(notes.extends_unanswered);
            return true;
        }

        noting_backend& notes;
    };
};

/// A store that grants nothing and answers when it is told to.
struct silent_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<int> asked{0};
    std::atomic<int> failed{0};        // so many acquires have ended
    std::atomic<int> unavailable{-1};  // those that have not say so, or do not; below 0: do not know

    struct acquire_operation {
        acquire_operation(silent_backend& b, key const&, acquire_request const&) : store{b}, number{++b.asked} {}

        void start() {}
        bool wait_until(boot_clock::time_point t) const
        {
            while (store.failed < number && boot_clock::now() < t) std::this_thread::sleep_for(1ms);
            return store.failed >= number;
        }
        void cancel() noexcept {}
        [[nodiscard]] std::optional<bool> unavailable() const noexcept
        {
            auto const known = store.unavailable.load();
            return known < 0 ? std::nullopt : std::optional{known != 0};
        }
        [[nodiscard]] static holdfast::result<holdfast::grant> outcome() { return make_error_code(errc::unavailable); }

        silent_backend& store;
        int number;
    };
};

using silent_mutex = holdfast::basic_mutex<silent_backend>;

using noting_mutex = holdfast::basic_mutex<noting_backend>;

using ending_mutex = holdfast::basic_mutex<ending_backend>;

/// Effects: gives up `m`; that takes so long that the pause for those who are known to wait is the longest there is, 100 ms.
void unlock_slowly(noting_backend& store, noting_mutex& m)
{
    store.releases_unanswered = true;
    sleeper unlocks{[&] { m.unlock(); }};
    CHECK(unlocks.sleeps());
    std::this_thread::sleep_for(50ms);
    store.releases_unanswered = false;
    unlocks.join();
}

}  // namespace

TEST_CASE("a lease that the store has ended is passed to nobody")
{
    fixture f;
    bool const ended = GENERATE(false, true);
    ending_mutex one{f.domain, "orders", lock_options{}};
    ending_mutex other{f.domain, "orders", lock_options{}};
    one.lock();
    auto const lease = one.lease();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->ended = ended;
    std::error_code ec;
    one.unlock(ec);
    next.join();
    CHECK((ec == errc::lease_lost) == ended);
    CHECK(lease.lost_token().stop_requested() == ended);
    CHECK((other.lease().fencing_token() > lease.fencing_token() + 1) == ended);  // of another batch: it asked the store
}

TEST_CASE("an alarm ends the leases that the store has ended, renewed or not")
{
    fixture f;
    ending_mutex m{f.domain, "orders", lock_options{.ttl = 1h, .renew = GENERATE(true, false)}};
    m.lock();
    auto const lease = m.lease();
    f.store->alarm();
    CHECK_FALSE(eventually([&] { return !lease.still_held(); }, 50ms));
    f.store->ended = true;
    f.store->alarm();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
}

TEST_CASE("an alarm that comes before the holder has heard of its grant ends the lease, renewed or not")
{
    fixture f;
    ending_mutex m{f.domain, "orders", lock_options{.ttl = 1h, .renew = GENERATE(true, false)}};
    f.store->end_when_granted = true;
    m.lock();
    f.store->end_when_granted = false;
    auto const lease = m.lease();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
    std::error_code ec;
    m.unlock(ec);
    CHECK(ec == errc::lease_lost);
    m.lock();
    CHECK(m.lease().still_held());
}

TEST_CASE("the callback of a loss that an extend finds may destroy the last lock")
{
    auto f = std::make_optional<fixture>();
    auto m = std::make_unique<ending_mutex>(f->domain, std::string(100, 'x'), lock_options{.ttl = 1h});
    m->lock();
    f->store->ended = true;
    std::stop_callback const on_loss{m->lease().lost_token(), [&] {
                                         f.reset();
                                         m.reset();
                                     }};
    std::error_code ec;
    if (GENERATE(false, true)) {
        CHECK_FALSE(m->extend(1h, ec));
    } else {
        try {
            m->extend(1h);
        } catch (holdfast::error const& e) {
            ec = e.code();
            CHECK(std::string{e.what()}.find(std::string(100, 'x')) != std::string::npos);
        }
    }
    CHECK(ec == errc::lease_lost);
    CHECK_FALSE(m);
}

TEST_CASE("the next in line asks when the release is answered, a deferred one, too")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    lock_options const options{.max_local_handoffs = 0, .deferred_release = GENERATE(false, true)};
    noting_mutex one{domain, "orders", options};
    noting_mutex other{domain, "orders", options};
    one.lock();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    store->releases_unanswered = true;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(unlocks.sleeps());
    CHECK(next.sleeps());
    CHECK(store->acquires == 1);
    store->releases_unanswered = false;
    unlocks.join();
    next.join();
    CHECK(store->acquires_when_released == 1);
    CHECK(store->acquires == 2);
    store->acquires_when_released = 0;
    other.unlock();
    CHECK(store->acquires_when_released == (options.deferred_release ? 0 : 2));  // nobody here waits behind it
}

TEST_CASE("where others wait, they have the time to ask before anybody here does, who has the time and wants to wait")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    noting_mutex one{domain, "orders", lock_options{.max_local_handoffs = 0}};
    noting_mutex other{domain, "orders", lock_options{.max_local_handoffs = 0}};
    store->others = true;
    one.lock();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    store->releases_unanswered = true;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(unlocks.sleeps());
    std::this_thread::sleep_for(50ms);  // which makes the pause the longest there is
    store->releases_unanswered = false;
    unlocks.join();
    next.join();
    constexpr auto pause = 100ms;
    CHECK(store->asked_at.load() - store->released_at.load() >= pause);

    other.unlock();
    CHECK(one.try_lock());  // a single attempt answers at once
    unlock_slowly(*store, one);
    auto const acquires = store->acquires.load();
    std::stop_source stop;
    sleeper stopped{[&] { return other.lock(stop.get_token()); }};
    stop.request_stop();
    if (stopped.join())
        CHECK(store->asked_at.load() - store->released_at.load() >= pause);  // its thread came late
    else
        CHECK(store->acquires == acquires);
    other.unlock();
    CHECK(other.try_lock_for(1min));
    other.unlock();
}

TEST_CASE("who has no time for the whole pause has what it has of it, and then asks once")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    noting_mutex m{domain, "orders", {}};
    store->others = true;
    m.lock();
    unlock_slowly(*store, m);
    CHECK(m.try_lock_for(20ms));
    CHECK(store->asked_at.load() - store->released_at.load() >= 20ms);
    CHECK(store->acquires == 2);
}

TEST_CASE("an attempt that has no time puts the pause off once")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    auto const time = GENERATE(0ms, 3ms);
    noting_mutex m{domain, "orders", {}};
    store->others = true;
    m.lock();
    auto const pause_of_the_next = [&] {
        unlock_slowly(*store, m);
        CHECK(eventually([&] { return time == 0ms ? m.try_lock() : m.try_lock_for(time); }));
        return store->asked_at.load() - store->released_at.load();
    };
    REQUIRE(eventually([&] { return pause_of_the_next() < 100ms; }));
    CHECK(pause_of_the_next() >= 100ms);
    CHECK(eventually([&] { return pause_of_the_next() < 100ms; }));
}

TEST_CASE("a lease that is being extended is passed to nobody, and the answer is not the next holder's")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    noting_mutex one{domain, "orders", lock_options{.ttl = 30s}};
    noting_mutex next{domain, "orders", lock_options{.ttl = 30s}};
    one.lock();
    sleeper waits{[&] { next.lock(); }};
    CHECK(waits.sleeps());
    store->extends_unanswered = true;
    std::error_code extended;
    sleeper extends{[&] { return one.extend(1h, extended); }};
    CHECK(extends.sleeps());
    sleeper unlocks{[&] { one.unlock(); }};
    waits.join();
    store->extends_unanswered = false;
    unlocks.join();
    CHECK_FALSE(extends.join());
    CHECK(extended == errc::lease_lost);
    CHECK(next.lease().still_held());
    CHECK(next.lease().remaining() <= 30s);
    next.unlock();
}

TEST_CASE("who waits behind one whose attempt is not answered yet is told what the one before it saw")
{
    auto const store = std::make_shared<silent_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<silent_backend>>(store);
    silent_mutex one{domain, "orders", {}};
    silent_mutex other{domain, "orders", {}};
    silent_mutex third{domain, "orders", {}};
    sleeper asks{[&] { return code_of([&] { (void)one.try_lock_for(1h); }) == errc::unavailable; }};
    CHECK(eventually([&] { return store->asked == 1; }));
    sleeper follows{[&] { return code_of([&] { (void)other.try_lock_for(1h); }) == errc::unavailable; }};
    CHECK(follows.sleeps());
    auto const behind = [&] { return code_of([&] { (void)third.try_lock_for(1ms); }); };
    CHECK(behind() == std::error_code{});  // nothing is known
    store->unavailable = 1;
    CHECK(behind() == errc::unavailable);
    store->failed = 1;
    CHECK(asks.join());
    CHECK(eventually([&] { return store->asked == 2; }));
    CHECK(follows.sleeps());
    store->unavailable = -1;
    CHECK(behind() == errc::unavailable);  // nothing else is known
    store->unavailable = 0;
    CHECK(behind() == std::error_code{});
    store->failed = 2;
    CHECK(follows.join());
}

TEST_CASE("a waiter whose turn comes when its time is over asks for nothing, and the next in line does")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    lock_options const options{.max_local_handoffs = 0};
    noting_mutex one{domain, "orders", options};
    noting_mutex hurried{domain, "orders", options};
    noting_mutex patient{domain, "orders", options};
    one.lock();
    auto const deadline = boot_clock::now() + 300ms;
    sleeper waits{[&] { return hurried.try_lock_until(deadline); }};
    CHECK(waits.sleeps());
    sleeper waits_long{[&] { patient.lock(); }};
    CHECK(waits_long.sleeps());
    auto const before = store->acquires.load();
    store->releases_unanswered = true;
    sleeper unlocks{[&] { one.unlock(); }};
    CHECK(eventually([&] { return boot_clock::now() > deadline && unlocks.sleeps(); }));
    store->releases_unanswered = false;
    CHECK_FALSE(waits.join());
    waits_long.join();
    CHECK(store->acquires == before + 1);
    CHECK(patient.lease().still_held());
    unlocks.join();
    patient.unlock();
    CHECK(hurried.try_lock());
    hurried.unlock();
}
