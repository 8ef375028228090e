// SPDX-License-Identifier: MIT
//
// Nobody is starved by a process that wants a lock all the time, whatever its options are.
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::test::eventually;

namespace {

/// How a thread asks for the lock. `anew` waits, too, with a lock object of its own for each section.
enum class asking { waits, anew, for_20_ms, tries };

template <class Mutex>
[[nodiscard]] bool locked(Mutex& m, asking how)
try {
    if (how == asking::tries) return m.try_lock();
    if (how == asking::for_20_ms) return m.try_lock_for(20ms);
    m.lock();
    return true;
} catch (holdfast::error const&) {
    if (how == asking::waits || how == asking::anew) throw;
    return false;  // nobody answered in so little time
}

/// Threads of one client that have sections of one lock, one after the other, until it is destroyed.
template <class Store>
class busy_client {
public:
    busy_client(typename Store::client& client, int threads, holdfast::lock_options options, std::atomic<int>& last,
                int me, asking how = asking::waits, std::chrono::milliseconds section = 0ms)
    {
        options.unavailable_after = 5min;  // nothing can be thrown out of a thread
        for (int i = 0; i < threads; ++i)
            threads_.emplace_back([this, &client, options, &last, me, how, section] {
                std::optional<typename Store::mutex> m{std::in_place, client, "orders", options};
                while (!stop_) {
                    if (how == asking::anew) m.emplace(client, "orders", options);
                    if (!locked(*m, how)) continue;
                    std::this_thread::sleep_for(section);
                    if (last.exchange(me) != me) ++turns_;
                    ++sections_;
                    m->unlock();
                }
            });
    }
    ~busy_client() { stop_ = true; }

    [[nodiscard]] long sections() const noexcept { return sections_; }
    /// Returns: how often it had the lock after somebody else.
    [[nodiscard]] long turns() const noexcept { return turns_; }

private:
    std::atomic<bool> stop_{false};
    std::atomic<long> sections_{0};
    std::atomic<long> turns_{0};
    std::vector<std::jthread> threads_;
};

}  // namespace

TEMPLATE_TEST_CASE("a client that only polls gets its turn beside busy threads", "", HOLDFAST_STORES)
{
    bool const deferred = GENERATE(false, true);
    int const threads = GENERATE(1, 4);
    CAPTURE(deferred, threads);
    TestType store;
    std::atomic<int> last{0};
    busy_client<TestType> const busy{store.one, threads, {.deferred_release = deferred}, last, 1};
    REQUIRE(eventually([&] { return busy.sections() > 0; }));
    typename TestType::mutex poller{store.other, "orders"};
    int turns = 0;
    // A minute's attempts at this pace. They are counted, not the time: a slow computer makes fewer of them in a minute.
    constexpr int most_attempts = 50'000;
    for (int attempts = 0; turns < 60 && attempts < most_attempts; ++attempts, std::this_thread::sleep_for(1ms)) {
        if (!poller.try_lock()) continue;
        ++turns;
        poller.unlock();
    }
    CHECK(turns == 60);
}

TEMPLATE_TEST_CASE(
    "a client that only polls gets its turn beside one with little time for each attempt, or a new lock for each section",
    "", HOLDFAST_STORES)
{
    auto const how = GENERATE(asking::anew, asking::for_20_ms, asking::tries);
    bool const deferred = GENERATE(false, true);
    CAPTURE(static_cast<int>(how), deferred);
    TestType store;
    std::atomic<int> last{0};
    auto const section =
        how == asking::for_20_ms ? 500ms : 200ms;  // for which more than 20 ms are owed; hardly ever free by chance
    busy_client<TestType> const busy{store.one, 1, {.deferred_release = deferred}, last, 1, how, section};
    REQUIRE(eventually([&] { return busy.sections() > 0; }));
    typename TestType::mutex poller{store.other, "orders"};
    int turns = 0;
    auto const before = busy.sections();
    for (; turns < 4 && busy.sections() < before + 40; std::this_thread::sleep_for(1ms)) {
        if (!poller.try_lock()) continue;
        ++turns;
        poller.unlock();
    }
    CHECK(turns == 4);
}

TEMPLATE_TEST_CASE("two busy clients take turns, whether they wait for the answer to a release or not", "",
                   HOLDFAST_STORES)
{
    bool const deferred = GENERATE(false, true);
    int const threads = GENERATE(1, 3);
    CAPTURE(deferred, threads);
    TestType store;
    std::atomic<int> last{0};
    busy_client<TestType> const one{store.one, threads, {.deferred_release = deferred}, last, 1};
    busy_client<TestType> const other{store.other, threads, {.deferred_release = deferred}, last, 2};
    CHECK(eventually([&] { return one.turns() >= 30 && other.turns() >= 30; }));
}
