// SPDX-License-Identifier: MIT
//
// Extensions beside what else happens to their lease: renewals, other extensions, its end.
#include "conformance/sleeper.hpp"
#include "fake_store.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/mutex.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::mutex;
using holdfast::valid_until;
using holdfast::test::eventually;
using holdfast::test::fake_client;
using holdfast::test::sleeper;

namespace {

/// A thread that extends `m` to `ttl`.
struct extending {
    extending(mutex& m, std::chrono::milliseconds ttl) : thread{[&m, ttl, this] { return m.extend(ttl, ec); }} {}

    std::error_code ec;
    sleeper thread;
};

/// Effects: the `n`th request for more time is granted.
void extend_now(fake_client const& f, std::size_t n)
{
    auto const one = f.store->extends.at(n);
    one->answer(valid_until(boot_clock::now(), one->ttl));
}

}  // namespace

TEST_CASE("an extension under way is cancelled when the lock is given back, and the mutex may be destroyed then")
{
    auto f = std::make_optional<fake_client>();
    auto m = std::make_unique<mutex>(f->locks, "orders", lock_options{.ttl = 1h});
    auto const store = f->store;
    store->extends.answered_at_once = false;
    m->lock();
    extending e{*m, 2h};
    REQUIRE(eventually([&] { return store->extends.size() == 1; }));
    CHECK(e.thread.sleeps());
    std::error_code ec;
    m->unlock(ec);
    m.reset();
    f.reset();
    CHECK_FALSE(ec);
    CHECK(store->extends.at(0)->canceled);
    store->answer_extends();  // no effect if it was canceled
    CHECK_FALSE(e.thread.join());
    CHECK(e.ec == errc::lease_lost);
    CHECK(store->broken == 0);
}

TEST_CASE("an extension under way is cancelled when the lease is lost")
{
    fake_client f;
    bool const by_deadline = GENERATE(true, false);
    mutex m{f.locks, "orders", lock_options{.ttl = by_deadline ? 10s : 1h, .renew = false}};
    f.store->extends.answered_at_once = false;
    m.lock();
    auto const lost = m.lease().lost_token();
    extending e{m, 2h};
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    if (!by_deadline) {
        f.store->ends_lease = true;
        f.store->alarm();
    }
    CHECK(eventually([&] { return f.store->extends.at(0)->canceled.load(); }));
    f.store->answer_extends();
    CHECK_FALSE(e.thread.join());
    CHECK(e.ec == errc::lease_lost);
    CHECK(eventually([&] { return lost.stop_requested(); }));
    CHECK(f.store->broken == 0);
}

TEST_CASE("an extension takes the place of a renewal under way, whose answer does not count")
{
    fake_client f;
    std::atomic<int> told{0};
    mutex m{f.locks, "orders", lock_options{.ttl = 1min, .on_error = [&](auto const&) { ++told; }}};
    f.store->extends.answered_at_once = false;
    bool const ends = GENERATE(true, false);
    f.store->cancel_ends = ends;
    m.lock();
    auto const lease = m.lease();
    f.store->alarm();  // it is renewed
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    extending e{m, 1h};
    REQUIRE(eventually([&] { return f.store->extends.size() == 2; }));
    CHECK(f.store->extends.at(0)->canceled);
    if (!ends) f.store->extends.at(0)->answer(errc::lease_lost);
    CHECK(e.thread.sleeps());
    CHECK_FALSE(e.thread.done());
    f.store->alarm();  // nothing more is asked for meanwhile
    CHECK_FALSE(eventually([&] { return f.store->extends.size() > 2; }, 50ms));
    extend_now(f, 1);
    CHECK(e.thread.join());
    CHECK(lease.remaining() > 50min);
    f.store->alarm();
    REQUIRE(eventually([&] { return f.store->extends.size() == 3; }));
    CHECK(f.store->extends.at(2)->ttl == 1h);
    f.store->cancel_ends = true;
    m.unlock();
    CHECK(told == 0);
    CHECK(f.store->broken == 0);
}

TEST_CASE("a lease is renewed after an extension that failed, or could not be started in place of a renewal")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 20s}};
    f.store->extends.answered_at_once = false;
    m.lock();
    auto const lease = m.lease();
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    std::error_code ec;
    f.store->cannot_extend = true;
    CHECK_FALSE(m.extend(1h, ec));
    CHECK(ec == std::errc::not_enough_memory);
    f.store->cannot_extend = false;
    REQUIRE(eventually([&] { return f.store->extends.size() == 2; }));
    CHECK(f.store->extends.at(1)->ttl == 20s);
    extending e{m, 25s};
    REQUIRE(eventually([&] { return f.store->extends.size() == 3; }));
    f.store->extends.at(2)->answer(errc::unavailable);
    CHECK_FALSE(e.thread.join());
    CHECK(e.ec == errc::unavailable);
    REQUIRE(eventually([&] { return f.store->extends.size() == 4; }));
    CHECK(f.store->extends.at(3)->ttl == 20s);
    auto const end = lease.expires_at();
    extend_now(f, 3);
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    m.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("of two threads that extend a lease at once one asks after the other")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1min}};
    f.store->extends.answered_at_once = false;
    m.lock();
    extending first{m, 1h};
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    extending second{m, 2h};
    CHECK(second.thread.sleeps());
    CHECK(f.store->extends.size() == 1);
    if (GENERATE(true, false)) {
        extend_now(f, 0);
        CHECK(first.thread.join());
        REQUIRE(eventually([&] { return f.store->extends.size() == 2; }));
        CHECK(m.lease().remaining() < 1h);
        extend_now(f, 1);
        CHECK(second.thread.join());
        CHECK(m.lease().remaining() > 1h);
        m.unlock();
    } else {
        m.unlock();
        f.store->answer_extends();
        CHECK_FALSE(first.thread.join());
        CHECK_FALSE(second.thread.join());
        CHECK(first.ec == errc::lease_lost);
        CHECK(second.ec == errc::lease_lost);
        CHECK(f.store->extends.size() == 1);
    }
    CHECK(f.store->broken == 0);
}

TEST_CASE("a request that is answered late concerns no later lease, and keeps none from its renewals", "[lesson-8]")
{
    fake_client f;
    mutex m{f.locks, "orders", lock_options{.ttl = 1min}};
    f.store->extends.answered_at_once = f.store->cancel_ends = false;
    m.lock();
    bool const extends = GENERATE(true, false);
    std::optional<extending> e;
    if (extends)
        e.emplace(m, 1h);
    else
        f.store->alarm();
    REQUIRE(eventually([&] { return f.store->extends.size() == 1; }));
    m.unlock();
    CHECK(f.store->extends.at(0)->canceled);
    m.lock();
    auto const lease = m.lease();
    f.store->alarm();
    CHECK(eventually([&] { return f.store->extends.size() == 2; }));
    if (GENERATE(true, false))
        extend_now(f, 0);
    else
        f.store->extends.at(0)->answer(errc::lease_lost);
    if (e) {
        CHECK_FALSE(e->thread.join());
        CHECK(e->ec == errc::lease_lost);
    }
    auto const end = lease.expires_at();
    extend_now(f, 1);
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    CHECK(lease.still_held());
    CHECK(lease.remaining() < 1min);
    f.store->cancel_ends = true;
    m.unlock();
    CHECK(f.store->broken == 0);
}

TEST_CASE("a child that is forked while threads extend a lease has no lock, and waits for none of them")
{
    auto f = std::make_optional<fake_client>();
    auto const store = f->store;
    auto m = std::make_unique<mutex>(f->locks, "orders", lock_options{.ttl = 1min});
    store->extends.answered_at_once = false;
    m->lock();
    extending first{*m, 1h};
    REQUIRE(eventually([&] { return store->extends.size() == 1; }));
    extending second{*m, 2h};
    CHECK(first.thread.sleeps());
    CHECK(second.thread.sleeps());
    auto const child = ::fork();
    if (child == 0) {
        ::alarm(60);
        std::error_code ec;
        bool const told = !m->extend(1h, ec) && ec == errc::not_owner;
        m->unlock();
        m.reset();
        f.reset();
        ::_exit(told ? 0 : 1);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    store->answer_extends();
    CHECK(first.thread.join());
    CHECK(second.thread.join());
    m->unlock();
}

TEST_CASE("a client ends when a renewal that was cancelled has been answered")
{
    auto f = std::make_optional<fake_client>();
    auto const store = f->store;
    auto m = std::make_unique<mutex>(f->locks, "orders", lock_options{.ttl = 1min});
    store->extends.answered_at_once = store->cancel_ends = false;
    m->lock();
    store->alarm();
    REQUIRE(eventually([&] { return store->extends.size() == 1; }));
    sleeper ends{[&] {
        f.reset();
        m.reset();
    }};
    CHECK(eventually([&] { return store->extends.at(0)->canceled.load(); }));
    CHECK(ends.sleeps());
    CHECK_FALSE(ends.done());
    store->answer_extends();
    ends.join();
    CHECK(store->broken == 0);
    CHECK(eventually([&] { return store.use_count() == 1; }));
}
