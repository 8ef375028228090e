// SPDX-License-Identifier: MIT
//
// What operators ask of a store: who has a lock, which locks are held, that a lock is broken or given back.
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/shared.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/election.hpp>
#include <holdfast/semaphore.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using holdfast::election;
using holdfast::leased_permit;
using holdfast::leased_permits;
using holdfast::multi_mutex;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::not_renewed;
using holdfast::test::renewed;
using holdfast::test::shared;
using names = std::vector<std::string>;

namespace {

template <class Store>
constexpr bool in_memory = std::is_base_of_v<holdfast::test::memory_store, Store>;

template <class Store>
std::string label_of(std::string const& label)
{
    return in_memory<Store> ? std::string{} : label;
}

/// Returns: whether `seen` has the fencing token; on Redlock, unless the masters differ.
template <class Store>
bool shows_token(holdfast::lock_holder const& seen, std::uint64_t token)
{
    bool const may_differ = std::is_same_v<Store, holdfast::test::redlock_store>;
    return seen.fencing_token == token || (may_differ && seen.fencing_token == 0);
}

std::string permit_of(std::string const& semaphore, std::size_t slot) { return semaphore + '#' + std::to_string(slot); }

std::string this_host()
{
    char name[256] = {};
    return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

}  // namespace

TEMPLATE_TEST_CASE("a lock that is free has no holder, cannot be broken, and is in no list", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    for (int i = 0; i < 2; ++i) {
        CHECK_FALSE(m.holder());
        CHECK_FALSE(store.other.holder("orders"));
        CHECK_FALSE(m.force_unlock());
        CHECK_FALSE(m.request_release());
        CHECK(store.other.list("order").empty());
        m.lock();
        m.unlock();
    }
}

TEMPLATE_TEST_CASE("the holder of a lock is shown to every client while it is held", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("shop 7 id=x");
    typename TestType::mutex m{client, "orders", renewed<TestType>()};
    auto const before = std::chrono::system_clock::now();
    m.lock();
    for (auto const& seen : {m.holder(), store.other.holder("orders")}) {
        REQUIRE(seen);
        CHECK(seen->label == label_of<TestType>("shop 7 id=x"));
        CHECK(seen->host == this_host());
        CHECK(seen->pid == ::getpid());
        CHECK(shows_token<TestType>(*seen, m.lease().fencing_token()));
        REQUIRE(seen->since);
        CHECK(*seen->since > before - 10min);
        CHECK(*seen->since < std::chrono::system_clock::now() + 10min);
        CHECK_FALSE(seen->release_requested);
        if constexpr (TestType::keeps_to_ttl) {
            REQUIRE(seen->remaining);
            CHECK(*seen->remaining > 0ms);
            CHECK(*seen->remaining <= TestType::lasting);
        }
        CHECK(seen->waiting.value_or(0) == 0);
    }
    m.extend(2 * TestType::lasting);
    auto const longer = store.other.holder("orders");
    REQUIRE(longer);
    if constexpr (TestType::keeps_to_ttl) CHECK(longer->remaining.value() > TestType::lasting);
    CHECK(longer->label == label_of<TestType>("shop 7 id=x"));
    m.unlock();
    CHECK_FALSE(store.other.holder("orders"));
}

TEMPLATE_TEST_CASE("who has a read-write lock is shown to every client, to write or to read", "",
                   HOLDFAST_STORES_WITH_READERS)
{
    TestType store;
    auto client = store.named("shop 7 id=x");
    typename TestType::shared_mutex m{client, "orders", renewed<TestType>()};
    auto const shown = [&] {
        std::optional<holdfast::lock_holder> seen;
        REQUIRE(eventually([&] {  // the masters go from one side to the other one by one
            seen = store.other.holder("orders");
            return seen.has_value();
        }));
        CHECK(seen->label == label_of<TestType>("shop 7 id=x"));
        CHECK(seen->host == this_host());
        CHECK(seen->pid == ::getpid());
        CHECK(seen->since);
        if constexpr (TestType::keeps_to_ttl) CHECK(seen->remaining.value() > 0ms);
        CHECK(store.other.list("orders") == names{"orders"});
        return *seen;
    };
    constexpr bool keeps_each = std::is_base_of_v<holdfast::test::on_redis, TestType>;
    m.lock();
    CHECK(shows_token<TestType>(shown(), m.lease().fencing_token()));
    m.unlock_and_lock_shared();
    auto const read = shown();
    if (keeps_each) CHECK(shows_token<TestType>(read, m.lease_shared().fencing_token()));
    REQUIRE(m.try_unlock_shared_and_lock());
    auto const written = shown();
    if (keeps_each) CHECK(shows_token<TestType>(written, m.lease().fencing_token()));
    m.unlock();
    CHECK_FALSE(store.other.holder("orders"));
    m.lock_shared();
    CHECK(shows_token<TestType>(shown(), m.lease_shared().fencing_token()));
    m.unlock_shared();
    CHECK_FALSE(store.other.holder("orders"));
}

TEMPLATE_TEST_CASE("a holder that leaves no record is held by a client that is not known", "",
                   holdfast::test::redis_store, holdfast::test::redlock_store)
{
    TestType store;
    auto const unnamed = store.unnamed();
    typename TestType::mutex m{unnamed, "orders", renewed<TestType>()};
    m.lock();
    auto const seen = store.other.holder("orders");
    REQUIRE(seen);
    CHECK(seen->remaining.value() > 0ms);
    CHECK(seen->host.empty());
    CHECK(seen->label.empty());
    CHECK(seen->pid == 0);
    CHECK(seen->fencing_token == 0);
    CHECK_FALSE(seen->since);
    std::error_code ec;
    CHECK_FALSE(store.other.request_release("orders", ec));
    CHECK(ec == holdfast::errc::misconfigured);
    CHECK(store.other.list("orders") == names{"orders"});
}

TEMPLATE_TEST_CASE("the holder in another process is shown with its process", "", HOLDFAST_SERVERS)
{
    TestType store;
    struct news {
        std::atomic<bool> held{false};
        std::atomic<bool> go_on{false};
    };
    shared<news> told;
    auto born = child::fork([&] {
        auto client = store.named("the child");
        typename TestType::mutex m{client, "orders", renewed<TestType>()};
        m.lock();
        told->held = true;
        static_cast<void>(eventually([&] { return told->go_on.load(); }, 5min));
        return 0;
    });
    REQUIRE(eventually([&] { return told->held.load(); }, 5min));
    auto const seen = store.one.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == "the child");
    CHECK(seen->pid == born.pid());
    told->go_on = true;
    CHECK(born.wait_for(5min) == 0);
    CHECK_FALSE(store.one.holder("orders"));
}

TEMPLATE_TEST_CASE("a lease that has expired has no holder", "", holdfast::test::memory_store,
                   holdfast::test::redis_store, holdfast::test::redlock_store)
{
    TestType store;
    auto client = store.named("orders");
    typename TestType::mutex m{client, "orders", {.ttl = TestType::lasting, .renew = false}};
    m.lock();
    auto const lease = m.lease();
    CHECK(store.other.holder("orders"));
    CHECK(eventually([&] { return !store.other.holder("orders"); }));
    CHECK_FALSE(lease.still_held());
    CHECK(store.other.list("orders").empty());
}

TEMPLATE_TEST_CASE("a lock that is broken is lost to its holder, and a waiter gets it with a greater token", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("old");
    auto next = store.named("new");
    std::atomic<int> losses{0};
    auto options = renewed<TestType>();
    options.on_error = [&](holdfast::error const& e) { losses += e.code() == holdfast::errc::lease_lost ? 1 : 0; };
    typename TestType::mutex m{client, "orders", options};
    typename TestType::mutex waiting{next, "orders", renewed<TestType>()};
    m.lock();
    auto const lease = m.lease();
    auto const lost = lease.lost_token();
    holdfast::test::sleeper waiter{[&] { waiting.lock(); }};
    CHECK(waiter.sleeps());
    CHECK(store.other.force_unlock("orders"));
    waiter.join();
    CHECK(waiting.lease().fencing_token() > lease.fencing_token());
    auto const seen = store.other.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == label_of<TestType>("new"));
    CHECK(eventually([&] { return lost.stop_requested() && losses == 1; }, 5min));
    CHECK_FALSE(lease.still_held());
    m.unlock();
    CHECK(waiting.lease().still_held());
    CHECK(store.other.holder("orders"));
    waiting.unlock();
}

TEMPLATE_TEST_CASE("an extension finds that the lock was broken", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders", renewed<TestType>()};
    m.lock();
    CHECK(m.force_unlock());
    std::error_code ec;
    CHECK_FALSE(m.extend(TestType::lasting, ec));
    CHECK(ec == holdfast::errc::lease_lost);
    m.unlock();
    CHECK_FALSE(m.holder());
    m.lock();
    m.unlock();
}

TEMPLATE_TEST_CASE("a holder is told that it is asked for the lock, keeps it, and gives it back in earnest", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("holder");
    std::atomic<int> told{0};
    std::atomic<int> called{0};
    client.observe([&](holdfast::lock_event const& e) {
        told += e.what == holdfast::lock_event::kind::release_requested && e.lock_name == "orders" ? 1 : 0;
    });
    typename TestType::mutex m{client, "orders", renewed<TestType>()};
    m.lock();
    auto const lease = m.lease();
    std::stop_callback const at_request{lease.release_requested(), [&] { ++called; }};
    CHECK(called == 0);
    CHECK(store.other.request_release("orders"));
    CHECK(store.other.holder("orders").value().release_requested);
    m.extend(TestType::lasting);
    m.extend(TestType::lasting);
    CHECK(eventually([&] { return told == 1 && called == 1; }));
    CHECK(lease.release_requested().stop_requested());
    CHECK(lease.still_held());
    CHECK_FALSE(lease.lost_token().stop_requested());
    auto const seen = store.other.holder("orders");
    REQUIRE(seen);
    CHECK(seen->label == label_of<TestType>("holder"));
    CHECK(shows_token<TestType>(*seen, lease.fencing_token()));
    m.unlock();
    m.lock();  // another lease, for which nobody was asked
    CHECK_FALSE(store.other.holder("orders").value().release_requested);
    m.extend(TestType::lasting);
    CHECK_FALSE(m.lease().release_requested().stop_requested());
    CHECK(told == 1);
}

TEMPLATE_TEST_CASE("a writer and a reader are told that they are asked for a read-write lock, and keep it", "",
                   HOLDFAST_SERVERS_WITH_READERS)
{
    TestType store;
    auto client = store.named("holder");
    typename TestType::shared_mutex m{client, "orders", renewed<TestType>()};
    std::error_code ec;
    m.lock();
    CHECK(store.other.request_release("orders"));
    CHECK(store.other.holder("orders").value().release_requested);
    m.extend(TestType::lasting);
    CHECK(m.lease().release_requested().stop_requested());
    CHECK(m.lease().still_held());
    m.unlock();
    m.lock_shared();
    CHECK_FALSE(store.other.holder("orders").value().release_requested);
    CHECK(store.other.request_release("orders"));
    CHECK(store.other.holder("orders").value().release_requested);
    CHECK(m.extend_shared(TestType::lasting, ec));
    CHECK(m.lease_shared().release_requested().stop_requested());
    CHECK(m.lease_shared().still_held());
}

TEMPLATE_TEST_CASE("readers whose lock is broken lose it, and a writer gets it with a greater token", "",
                   HOLDFAST_STORES_WITH_READERS)
{
    TestType store;
    auto client = store.named("old");
    typename TestType::shared_mutex here{client, "orders", renewed<TestType>()};
    typename TestType::shared_mutex there{store.one, "orders", renewed<TestType>()};
    typename TestType::shared_mutex writing{store.other, "orders", renewed<TestType>()};
    here.lock_shared();
    there.lock_shared();
    auto const ours = here.lease_shared();
    auto const theirs = there.lease_shared();
    CHECK(eventually(
        [&] {  // on ZooKeeper it ends one hold; on Redlock a renewal may take votes back
            static_cast<void>(store.other.force_unlock("orders"));
            return !ours.still_held() && !theirs.still_held();
        },
        5min));
    CHECK(eventually([&] { return !store.other.holder("orders"); }));
    writing.lock();
    CHECK(writing.lease().fencing_token() > ours.fencing_token());
    CHECK(writing.lease().fencing_token() > theirs.fencing_token());
    here.unlock_shared();
    there.unlock_shared();
    CHECK(writing.lease().still_held());
    CHECK(store.other.holder("orders"));
}

TEMPLATE_TEST_CASE("a renewal tells the holder that it is asked for the lock", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("holder");
    typename TestType::mutex m{client, "orders", renewed<TestType>()};
    m.lock();
    auto const asked = m.lease().release_requested();
    CHECK(store.other.request_release("orders"));
    CHECK(eventually([&] { return asked.stop_requested(); }, 5min));
}

TEMPLATE_TEST_CASE("a list has the names that begin with its prefix and are held", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    names wanted;
    std::vector<std::unique_ptr<typename TestType::mutex>> held;
    auto const hold = [&](std::string const& name) {
        held.push_back(std::make_unique<typename TestType::mutex>(store.one, name, renewed<TestType>()));
        held.back()->lock();
    };
    for (int i = 100; i < 350; ++i) wanted.push_back("order/s" + std::to_string(i));
    for (auto const& name : wanted) hold(name);
    hold("order/t1");
    hold("order[*]?");
    hold("orders");
    typename TestType::mutex freed{store.one, "order/s999"};
    freed.lock();
    freed.unlock();
    CHECK(store.other.list("order/s") == wanted);
    CHECK(store.other.list("order[*]") == names{"order[*]?"});
    CHECK(store.other.list("order?").empty());
    CHECK(store.other.list("order*").empty());
    CHECK(store.other.list("order/s1").size() == 100);
    std::error_code ec;
    CHECK(store.other.list("orders", ec) == names{"orders"});
    CHECK_FALSE(ec);
}

TEMPLATE_TEST_CASE("the permits that are held are listed and shown, and nothing else of their semaphore", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("shop 7 id=x");
    typename TestType::semaphore jobs{client, "orders", 3, renewed<TestType>()};
    {
        leased_permits const both{jobs, 2};
        names held;
        for (std::size_t i = 0; i < 2; ++i) {
            held.push_back(permit_of("orders", both.slots().at(i)));
            auto const seen = store.other.holder(held.back());
            REQUIRE(seen);
            CHECK(seen->label == label_of<TestType>("shop 7 id=x"));
            CHECK(seen->host == this_host());
            CHECK(seen->pid == ::getpid());
            CHECK(shows_token<TestType>(*seen, both.lease_of(i).fencing_token()));
            CHECK(seen->since);
            if constexpr (TestType::keeps_to_ttl) CHECK(seen->remaining.value() > 0ms);
        }
        std::sort(held.begin(), held.end());
        CHECK(store.other.list("orders") == held);
        CHECK(store.other.list("orders#m").empty());
        CHECK_FALSE(store.other.holder(permit_of("orders", 3 - both.slots()[0] - both.slots()[1])));
        CHECK_FALSE(store.other.holder("orders"));
        CHECK_FALSE(store.other.force_unlock("orders"));
        CHECK(both.still_held());
    }
    CHECK(store.other.list("orders").empty());
}

TEMPLATE_TEST_CASE("a permit, a term and one of several locks that are broken are lost to their holders", "",
                   HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto const options = renewed<TestType>();
    typename TestType::semaphore jobs{store.one, "orders", 2, options};
    typename TestType::mutex lead{store.one, "invoices", options};
    typename TestType::mutex a{store.one, "a", options};
    typename TestType::mutex b{store.one, "b", options};
    multi_mutex both{a, b};
    std::atomic<int> deposed{0};
    leased_permit permit{jobs};
    both.lock();
    election leader{lead, {.on_deposed = [&] { ++deposed; }, .on_error = holdfast::test::hear, .pause = 1h}};
    REQUIRE(eventually([&] { return leader.still_leader(); }, 2min));
    auto const term = leader.term();
    auto const lost = {permit.lost_token(), both.lease().lost_token(), term.stop_token()};
    for (auto const& name : {permit_of("orders", permit.slot()), std::string{"b"}, std::string{"invoices"}}) {
        CAPTURE(name);
        CHECK(store.other.force_unlock(name));
        CHECK_FALSE(store.other.holder(name));
    }
    CHECK(eventually(
        [&] {
            return deposed == 1 &&
                   std::all_of(lost.begin(), lost.end(), [](auto const& l) { return l.stop_requested(); });
        },
        5min));
    CHECK_FALSE(permit.still_held());
    CHECK_FALSE(both.lease().still_held());
    CHECK_FALSE(term.still_held());
    CHECK(store.one.stats().lost_in_store == 3);
    std::error_code ec;
    permit.release(ec);
    CHECK(ec == holdfast::errc::lease_lost);
    both.unlock(ec);
    CHECK(ec == holdfast::errc::lease_lost);
    for (auto const* const name : {"a", "b", "invoices"}) CHECK(holdfast::test::is_free(store, name));
    typename TestType::semaphore theirs{store.other, "orders", 2, options};
    CHECK(leased_permits{theirs, 2, 1min}.owns_permits());
}

TEMPLATE_TEST_CASE("a name of any bytes is listed, and its holder shown", "", holdfast::test::memory_store,
                   holdfast::test::redis_store, holdfast::test::redlock_store)
{
    TestType store;
    std::string every = "orders";
    for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
    auto client = store.named(every);
    typename TestType::mutex m{client, every, renewed<TestType>()};
    m.lock();
    CHECK(store.other.list(every.substr(0, 200)) == names{every});
    CHECK(store.other.holder(every).value().label == label_of<TestType>(every));
    CHECK(store.other.force_unlock(every));
    CHECK(store.other.list("orders").empty());
}

TEMPLATE_TEST_CASE("those who wait are known where the store knows them", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    auto client = store.named("first");
    auto next = store.named("second");
    typename TestType::mutex m{client, "orders", renewed<TestType>()};
    typename TestType::mutex waiting{next, "orders", renewed<TestType>()};
    m.lock();
    holdfast::test::sleeper waiter{[&] { waiting.lock(); }};
    CHECK(eventually([&] { return store.other.holder("orders").value().waiting == 1U; }));
    std::error_code ec;
    auto const line = store.other.contenders("orders", ec);
    if (ec) {
        CHECK(ec == holdfast::errc::misconfigured);
        CHECK(std::is_base_of_v<holdfast::test::on_redis, TestType>);
    } else {
        REQUIRE(line.size() == 2);
        CHECK(line[0].label == label_of<TestType>("first"));
        CHECK(line[1].label == label_of<TestType>("second"));
        CHECK(line[1].pid == ::getpid());
    }
    m.unlock();
    waiter.join();
    waiting.unlock();
}

TEMPLATE_TEST_CASE("a forked child may ask nothing of its parent's client", "", HOLDFAST_BLOCKING_STORES)
{
    TestType store;
    typename TestType::mutex m{store.one, "orders"};
    auto born = child::fork([&] {
        std::error_code ec;
        int wrong = 0;
        auto const refused = [&] { wrong += ec == holdfast::errc::misconfigured ? 0 : 1; };
        static_cast<void>(store.one.holder("orders", ec)), refused();
        static_cast<void>(m.holder(ec)), refused();
        static_cast<void>(store.one.list({}, ec)), refused();
        static_cast<void>(m.force_unlock(ec)), refused();
        static_cast<void>(m.request_release(ec)), refused();
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
}
