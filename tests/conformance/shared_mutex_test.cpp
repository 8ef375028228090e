// SPDX-License-Identifier: MIT
//
// A read-write lock is the same on every store.
#include "mostly.hpp"
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <holdfast/shared_mutex.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::leased_lock;
using holdfast::leased_shared_lock;
using holdfast::shared_mutex;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::mostly;
using holdfast::test::renewed;
using holdfast::test::sleeper;

namespace {

std::error_code code_of(auto const& f)
{
    try {
        f();
    } catch (holdfast::error const& e) {
        return e.code();
    }
    return {};
}

/// What a resource keeps: see `shared_mutex`.
class resource {
public:
    void write(std::uint64_t token)
    {
        std::scoped_lock guard{mutex_};
        good_ = good_ && token > seen_;
        seen_ = written_ = token;
    }
    void read(std::uint64_t token)
    {
        std::scoped_lock guard{mutex_};
        good_ = good_ && token > written_;
        seen_ = std::max(seen_, token);
    }
    [[nodiscard]] bool good() const { return good_; }

private:
    std::mutex mutex_;
    std::uint64_t seen_ = 0;
    std::uint64_t written_ = 0;
    bool good_ = true;
};

template <class Store>
constexpr bool is_memory = std::is_base_of_v<holdfast::test::memory_store, Store>;
template <class Store>
constexpr bool is_redis = std::is_base_of_v<holdfast::test::on_redis, Store>;

/// Returns: whether each server knows of a writer that waits for "orders"; and of a reader, if there is one. In memory
/// a waiter is known before it sleeps.
template <class Store>
bool wait_there([[maybe_unused]] Store& store, [[maybe_unused]] bool reader)
{
    if constexpr (is_memory<Store>) {
        return true;
    } else if constexpr (is_redis<Store>) {
        auto const each_says_one = [&](std::vector<std::string> const& command) {
            std::vector<holdfast::test::reply> said;
            if constexpr (requires { store.servers; })
                said = store.servers.command(command);
            else
                said = {store.server.command(command)};
            return std::all_of(said.begin(), said.end(), [](auto const& one) { return one.integer == 1; });
        };
        return eventually([&] {
            return each_says_one({"ZCARD", "holdfast:queue:{orders}"}) &&
                   (!reader || each_says_one({"HEXISTS", "holdfast:phase:{orders}", "reader"}));
        });
    } else {
        return eventually([&] {
            auto const seen = store.one.holder("orders");
            return seen && seen->waiting == (reader ? 2U : 1U);
        });
    }
}

}  // namespace

TEMPLATE_TEST_CASE("readers are together, and a writer is alone", "", HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    std::atomic<int> readers{0};
    std::atomic<int> writers{0};
    std::atomic<bool> good{true};
    resource fenced;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 6; ++i)
        threads.emplace_back([&, i] {
            auto& m = i % 2 == 0 ? ours : theirs;
            std::error_code ec;  // a section is as long as a request
            for (int n = 0; n < 8; ++n) {
                if ((n + i) % 3 == 0) {
                    leased_lock hold{m};
                    if (++writers > 1 || readers > 0 || !hold.still_held()) good = false;
                    fenced.write(hold.fencing_token());
                    static_cast<void>(hold.extend(TestType::lasting, ec));
                    --writers;
                } else {
                    leased_shared_lock hold{m};
                    ++readers;
                    if (writers > 0 || !hold.still_held()) good = false;
                    fenced.read(hold.fencing_token());
                    static_cast<void>(hold.extend(TestType::lasting, ec));
                    --readers;
                }
            }
        });
    threads.clear();
    CHECK(good);
    CHECK(fenced.good());
}

TEMPLATE_TEST_CASE("the standard's guards and every form of a try work on both sides", "",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    std::stop_source stopped;
    stopped.request_stop();
    {
        std::shared_lock one{ours};
        std::shared_lock const two{theirs, 1min};
        CHECK(two.owns_lock());
        std::shared_lock three{theirs, std::try_to_lock};
        CHECK(three.owns_lock());
        CHECK(ours.lease_shared().still_held());
        CHECK_FALSE(theirs.try_lock());
        CHECK_FALSE(ours.try_lock_for(20ms));
        CHECK_FALSE(ours.try_lock_until(std::chrono::system_clock::now() + 20ms));
        CHECK_FALSE(ours.lock(stopped.get_token()));
        CHECK_FALSE(ours.lock_shared(stopped.get_token()));
        std::stop_source later;
        std::atomic<bool> held{true};
        std::jthread waits{[&] { held = ours.lock(later.get_token()); }};
        CHECK(eventually([&] { return store.one.stats().waiting == 1; }));
        later.request_stop();
        waits.join();
        CHECK_FALSE(held);
    }
    CHECK_FALSE(ours.lease_shared().still_held());
    {
        std::unique_lock const one{theirs, 1min};
        CHECK(one.owns_lock());
        CHECK(theirs.lease().still_held());
        CHECK_FALSE(ours.try_lock());
        CHECK_FALSE(ours.try_lock_shared());
        CHECK_FALSE(ours.try_lock_shared_for(20ms));
        CHECK_FALSE(ours.try_lock_shared_until(std::chrono::steady_clock::now() + 20ms));
    }
    std::error_code ec;
    ours.unlock(ec);
    CHECK(ec == errc::not_owner);
    ours.unlock_shared(ec);
    CHECK(ec == errc::not_owner);
    CHECK_FALSE(ours.extend_shared(TestType::lasting, ec));
    CHECK(ec == errc::not_owner);
    CHECK(code_of([&] { ours.extend_shared(TestType::lasting); }) == errc::not_owner);
    REQUIRE(ours.try_lock_shared_for(1min));
    CHECK(ours.extend_shared(TestType::lasting, ec));
    ours.extend_shared(TestType::lasting);
    ours.unlock_shared(ec);
    CHECK_FALSE(ec);
    leased_shared_lock mine{ours, 1min};
    leased_shared_lock taken{std::move(mine)};
    CHECK(taken.still_held());
    taken.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(taken.still_held());
    CHECK_FALSE(leased_shared_lock{ours, std::adopt_lock});
    REQUIRE(ours.try_lock_shared_for(1min));
    auto const kept = ours.lease_shared();
    leased_shared_lock adopted{ours, std::adopt_lock};
    CHECK(adopted.lease() == kept);
    ours.unlock_shared(ec);
    CHECK(ec == errc::not_owner);
    CHECK(adopted.still_held());
    adopted.unlock(ec);
    CHECK_FALSE(ec);
    CHECK_FALSE(kept.still_held());
    CHECK(theirs.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("a mutex of the same name and a read-write lock exclude each other", "",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    typename TestType::mutex plain{store.one, "orders", renewed<TestType>()};
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    {
        std::scoped_lock const hold{plain};
        CHECK_FALSE(ours.try_lock());
        CHECK_FALSE(theirs.try_lock_shared());
    }
    {
        leased_shared_lock const hold{theirs, 1min};
        CHECK_FALSE(plain.try_lock_for(20ms));
    }
    {
        leased_lock const hold{theirs, 1min};
        CHECK_FALSE(plain.try_lock_for(20ms));
    }
    CHECK(plain.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("readers that come without end keep no writer out", "", HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    std::atomic<bool> done{false};
    std::atomic<int> inside{0};
    std::atomic<int> sections{0};
    std::vector<std::jthread> readers;
    for (int i = 0; i < 3; ++i)
        readers.emplace_back([&, i] {
            while (!done) {
                leased_shared_lock const hold{i % 2 == 0 ? ours : theirs};
                ++inside;
                ++sections;
                // One stays until the next is in, so that the lock is never free of itself.
                static_cast<void>(eventually([&] { return inside > 1 || done; }, 200ms));
                --inside;
            }
        });
    CHECK(eventually([&] { return sections >= 9; }));
    for (int n = 0; n < 5; ++n) {
        leased_lock const hold{n % 2 == 0 ? ours : theirs, 2min};
        CHECK(hold.owns_lock());
    }
    done = true;
}

TEMPLATE_TEST_CASE("writers that come without end keep no reader out", "", HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    std::atomic<bool> done{false};
    std::atomic<int> sections{0};
    std::vector<std::jthread> writers;
    for (int i = 0; i < 3; ++i)
        writers.emplace_back([&, i] {
            while (!done) {
                std::scoped_lock const hold{i % 2 == 0 ? ours : theirs};
                ++sections;
            }
        });
    CHECK(eventually([&] { return sections >= 9; }));
    for (int n = 0; n < 5; ++n) {
        leased_shared_lock const hold{n % 2 == 0 ? ours : theirs, 2min};
        CHECK(hold.owns_lock());
    }
    done = true;
}

TEMPLATE_TEST_CASE("when a writer leaves, a reader that waits goes before a writer that came earlier", "",
                   HOLDFAST_STORES_WITH_READERS)
{
    TestType store;
    constexpr bool in_order = !is_memory<TestType> && !is_redis<TestType>;  // that of arrival
    auto third = store.another();
    shared_mutex held{store.one, "orders", renewed<TestType>()};
    shared_mutex writing{store.other, "orders", renewed<TestType>()};
    shared_mutex reading{third, "orders", renewed<TestType>()};
    reading.lock_shared();  // it has connected then
    reading.unlock_shared();
    auto const reader_is_first = [&] {
        std::atomic<int> came{0};
        int wrote = 0;
        int read = 0;
        held.lock();
        sleeper writer{[&] {
            std::scoped_lock const hold{writing};
            wrote = ++came;
        }};
        CHECK(writer.sleeps());
        CHECK(wait_there(store, false));
        sleeper reader{[&] {
            std::shared_lock const hold{reading};
            read = ++came;
        }};
        CHECK(reader.sleeps());
        CHECK(wait_there(store, true));
        held.unlock();
        reader.join();
        writer.join();
        CHECK(read + wrote == 3);
        return read == 1;
    };
    if (in_order)
        CHECK_FALSE(reader_is_first());
    else
        CHECK(mostly(reader_is_first));
}

TEMPLATE_TEST_CASE("a reader that is gone keeps no writer out, and a live one beside it does", "[lesson-10]",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    auto brief = store.another(TestType::ttl);
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex gone{brief, "orders", holdfast::test::not_renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    leased_shared_lock live{ours, 1min};
    leased_shared_lock dead{gone, 1min};
    auto const told = dead.lost_token();
    CHECK(eventually([&] { return told.stop_requested(); }, 2min));
    CHECK(live.still_held());
    CHECK_FALSE(theirs.try_lock());
    live.unlock();
    CHECK(theirs.try_lock_for(2min));
    std::error_code ec;
    dead.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(theirs.lease().still_held());
}

TEMPLATE_TEST_CASE("the loss of each hold is announced", "", HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    auto client = store.another(TestType::ttl);
    shared_mutex ours{client, "orders", holdfast::test::brief<TestType>()};
    leased_shared_lock one{ours, 1min};
    REQUIRE(ours.try_lock_shared_for(1min));
    auto const hold = ours.lease_shared();
    auto const told = one.lost_token();
    auto const told_too = hold.lost_token();
    store.break_lock("orders");
    CHECK(eventually([&] { return told.stop_requested() && told_too.stop_requested(); }, 2min));
    CHECK_FALSE(one.still_held());
    CHECK_FALSE(hold.still_held());
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    leased_lock next{theirs, 2min};
    CHECK(next.fencing_token() > one.fencing_token());
    std::error_code ec;
    ours.unlock_shared(ec);
    CHECK(ec == errc::lease_lost);
    one.unlock(ec);
    CHECK(ec == errc::lease_lost);
    CHECK(next.still_held());
    next.unlock();
    leased_lock mine{ours, 2min};
    auto const told_of_writer = mine.lost_token();
    store.break_lock("orders");
    CHECK(eventually([&] { return told_of_writer.stop_requested(); }, 2min));
    CHECK_FALSE(mine.still_held());
}

TEMPLATE_TEST_CASE("an exclusive hold becomes a shared one, and no writer comes in between", "",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    CHECK(code_of([&] { ours.unlock_and_lock_shared(); }) == errc::not_owner);
    std::atomic<int> written{0};
    ours.lock();
    auto const writer = ours.lease();
    std::jthread waits{[&] {
        leased_lock const hold{theirs, 2min};
        if (hold) ++written;
    }};
    CHECK(eventually([&] { return store.other.stats().waiting == 1; }));
    for (int n = 0; n < 3; ++n) {
        auto const before = ours.lease().fencing_token();
        ours.unlock_and_lock_shared();
        CHECK_FALSE(ours.lease().still_held());
        auto const reader = ours.lease_shared();
        CHECK(reader.still_held());
        CHECK(reader.fencing_token() > before);
        CHECK_FALSE(theirs.try_lock());
        CHECK(written == 0);
        if (n < 2) {  // and back: no other reads
            REQUIRE(ours.try_unlock_shared_and_lock());
            CHECK(ours.lease().fencing_token() > reader.fencing_token());
            CHECK_FALSE(ours.lease_shared().still_held());
            CHECK_FALSE(theirs.try_lock_shared());
        }
    }
    CHECK_FALSE(writer.still_held());
    CHECK(ours.lease_shared().still_held());
    std::error_code ec;
    ours.unlock_shared(ec);
    CHECK_FALSE(ec);
    waits.join();
    CHECK(written == 1);
}

TEMPLATE_TEST_CASE("two readers that want to write do not wait for each other", "",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    CHECK(code_of([&] { static_cast<void>(ours.try_unlock_shared_and_lock()); }) == errc::not_owner);
    REQUIRE(ours.try_lock_shared_for(1min));
    REQUIRE(theirs.try_lock_shared_for(1min));
    for (int n = 0; n < 10; ++n) {
        std::array<bool, 2> wrote{};
        std::array<std::jthread, 2> both;
        both[0] = std::jthread{[&] { wrote[0] = ours.try_unlock_shared_and_lock(); }};
        both[1] = std::jthread{[&] { wrote[1] = theirs.try_unlock_shared_and_lock(); }};
        for (auto& one : both) one.join();
        CHECK_FALSE(wrote[0]);
        CHECK_FALSE(wrote[1]);
    }
    CHECK(ours.lease_shared().still_held());
    CHECK(theirs.lease_shared().still_held());
    std::error_code ec;
    theirs.unlock_shared(ec);
    CHECK_FALSE(ec);
    CHECK(ours.try_unlock_shared_and_lock());
    ours.unlock(ec);
    CHECK_FALSE(ec);
    CHECK(theirs.try_lock_for(1min));
}

TEMPLATE_TEST_CASE("a forked child can neither use nor harm the shared holds of its parent", "[lesson-7]",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    auto ours = std::make_optional<shared_mutex>(store.one, "orders", renewed<TestType>());
    auto guard = std::make_optional<leased_shared_lock>(*ours);
    ours->lock_shared();
    auto born = child::fork([&] {
        int wrong = guard->still_held() || ours->lease_shared().still_held() ? 1 : 0;
        std::error_code ec;
        ours->unlock_shared(ec);
        wrong += ec == errc::not_owner ? 0 : 2;
        wrong += code_of([&] { ours->lock_shared(); }) == errc::misconfigured ? 0 : 4;
        guard->unlock(ec);
        wrong += ec == errc::not_owner ? 0 : 8;
        guard.reset();
        ours.reset();
        return wrong;
    });
    CHECK(born.wait_for(2min) == 0);
    CHECK(guard->still_held());
    CHECK(ours->lease_shared().still_held());
    shared_mutex theirs{store.other, "orders", renewed<TestType>()};
    CHECK_FALSE(theirs.try_lock());
    std::error_code ec;
    ours->unlock_shared(ec);
    CHECK_FALSE(ec);
}

TEMPLATE_TEST_CASE("a process that is killed while it reads or waits to write stops the others for a while only", "",
                   HOLDFAST_SERVERS_WITH_READERS)
{
    TestType store;
    shared_mutex ours{store.one, "orders", renewed<TestType>()};
    leased_shared_lock first{ours, 1min};
    auto reads = child::fork([&]() -> int {
        auto client = store.another(TestType::ttl);
        shared_mutex theirs{client, "orders", holdfast::test::brief<TestType>()};
        theirs.lock_shared();
        for (;;) ::pause();  // until it is killed
    });
    auto writes = child::fork([&] {
        auto client = store.another(TestType::ttl);
        shared_mutex theirs{client, "orders", holdfast::test::brief<TestType>()};
        theirs.lock();
        return 1;
    });
    // The writer is seen to wait: a reader is kept out.
    shared_mutex probe{store.other, "orders", renewed<TestType>()};
    CHECK(eventually(
        [&] {
            if (!probe.try_lock_shared()) return true;
            probe.unlock_shared();
            return false;
        },
        2min));
    CHECK(reads.running());
    writes.kill();
    reads.kill();
    leased_shared_lock second{probe, 2min};
    CHECK(second);
    first.unlock();
    second.unlock();
    CHECK(ours.try_lock_for(2min));
}

TEMPLATE_TEST_CASE("a reader that is given back without a wait is not in the way of the next one", "",
                   HOLDFAST_STORES_AND_LAYOUTS_WITH_READERS)
{
    TestType store;
    shared_mutex m{store.one, "orders", renewed<TestType>()};
    std::atomic<int> given_back{0};
    auto const leave = [&] { m.async_unlock_shared([&](std::error_code ec) { given_back += ec ? 1000 : 1; }); };
    for (int i = 0; i < 20; ++i) {
        m.lock_shared();
        leave();
        CHECK(m.try_lock_shared());
        leave();
        m.lock();
        CHECK_NOTHROW(m.unlock_and_lock_shared());
        m.unlock_shared();
    }
    CHECK(eventually([&] { return given_back == 40; }));
}
