// SPDX-License-Identifier: MIT
//
// A process dies, or stands still, at each step that a lock and its queue have: those that live get the lock.
#include "conformance/sleeper.hpp"
#include "line_of_orders.hpp"
#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/proxy.hpp"
#include "support/shared.hpp"

#include <holdfast/redis.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::fair_mutex;
using holdfast::redis::mutex;
using holdfast::test::calls_of;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::exists;
using holdfast::test::for_ever;
using holdfast::test::lasting_reservation;
using holdfast::test::nothing_left;
using holdfast::test::proxy;
using holdfast::test::queue_of;
using holdfast::test::redis_server;
using holdfast::test::request_predicate;
using holdfast::test::reservations;
using holdfast::test::shared;
using holdfast::test::sleeper;
using holdfast::test::unhurried;
using holdfast::test::waiters;
namespace scripts = holdfast::redis::scripts;

namespace {

enum class role { newcomer, holder, head, later, called };
enum class step { asks, asks_again, extends, releases, leaves };
enum class fate { lost, done };  ///< of the script that is sent last: the process dies before it arrives, or after

/// Who dies at which step, and whether the lock is its own then, for the time of its lease.
struct death {
    role of;
    step at;
    bool has_it_if_lost = false;
    bool has_it_if_done = false;
};

constexpr death deaths[]{
    {role::newcomer, step::asks, false, true},
    {role::holder, step::extends, true, true},
    {role::holder, step::releases, true, false},
    {role::head, step::asks},
    {role::head, step::asks_again},
    {role::head, step::leaves},
    {role::later, step::asks},
    {role::later, step::asks_again},
    {role::later, step::leaves},
    {role::called, step::asks, false, true},
    {role::called, step::leaves},
};

std::string_view name_of(role r)
{
    constexpr std::string_view all[]{"one that comes to a free lock", "the holder", "the head of the queue",
                                     "a later waiter", "the one that is called"};
    return all[static_cast<std::size_t>(r)];
}

std::string_view name_of(step s)
{
    constexpr std::string_view all[]{"asks", "asks again, as it can be called now", "extends", "releases", "leaves"};
    return all[static_cast<std::size_t>(s)];
}

request_predicate calls_at(step s)
{
    if (s == step::extends) return calls_of(scripts::extend_and_hear);
    if (s == step::releases) return calls_of(scripts::release_and_erase);
    if (s == step::leaves)  // one that was called may have the lock
        return [waits = calls_of(scripts::give_back), called = calls_of(scripts::give_back_and_erase)](auto request) {
            return waits(request) || called(request);
        };
    return holdfast::test::nth(s == step::asks ? 1 : 2, calls_of(scripts::acquire_by_clock_and_tell));
}

struct told {
    std::atomic<std::uint16_t> port{0};  ///< of the server; set before `begin`
    std::atomic<bool> begin{false};
    std::atomic<bool> held{false};
    std::atomic<bool> go_on{false};
    std::atomic<int> served{0};  ///< so many have given the lock back
};

std::string redis_url(std::uint16_t port) { return "redis://127.0.0.1:" + std::to_string(port); }

/// Effects: what the process does that is to die. It does not return.
template <class Lock>
int live(step last, told& with)
{
    auto const comes = [](std::atomic<bool> const& what) { return eventually([&] { return what.load(); }, 1h); };
    auto const goes_on = [&] { return comes(with.go_on); };
    if (!comes(with.begin)) return 1;
    client const mine{redis_url(with.port), {.operation_timeout = 5min, .connect_timeout = 1min}};
    Lock m{mine, "orders", for_ever()};
    if (last == step::leaves) {
        std::stop_source stop;
        std::jthread const stopper{[&] {
            if (goes_on()) stop.request_stop();
        }};
        static_cast<void>(m.lock(stop.get_token()));
    } else {
        m.lock();
    }
    with.held = true;
    if (last == step::extends && goes_on()) {
        std::error_code ec;
        static_cast<void>(m.extend(1h, ec));
    }
    if (last == step::releases && goes_on()) {
        m.unlock();
        ++with.served;
    }
    for (;;) std::this_thread::sleep_for(1h);
}

/// Those that live, each a client of its own.
template <class Lock>
class living {
public:
    explicit living(redis_server& server) : server_{server} {}
    ~living() { server_.command({"DEL", "orders"}); }  // a test that fails ends
    living(living const&) = delete;
    living& operator=(living const&) = delete;

    /// Effects: one more wants the lock, once.
    void comes()
    {
        auto& mine = *clients_.emplace_back(std::make_unique<client>(server_.url(), unhurried()));
        all_.push_back(std::make_unique<sleeper>([&mine] {
            Lock m{mine, "orders", for_ever()};
            std::scoped_lock const hold{m};
        }));
    }

    [[nodiscard]] bool any_served() const
    {
        return std::any_of(all_.begin(), all_.end(), [](auto const& one) { return one->done(); });
    }

    [[nodiscard]] bool all_served() const
    {
        return eventually(
            [&] { return std::all_of(all_.begin(), all_.end(), [](auto const& one) { return one->done(); }); }, 2min);
    }

private:
    redis_server& server_;
    std::vector<std::unique_ptr<client>> clients_;
    std::vector<std::unique_ptr<sleeper>> all_;
};

/// Returns: whether it died then. If not, the machine was so slow that the lock was no longer kept for it.
template <class Lock>
bool dies_then(death const& who, fate last)
{
    auto const of = who.of;
    auto const at = who.at;
    shared<told> with;
    auto dies = child::fork([&] { return live<Lock>(at, *with); });  // before there are threads
    redis_server server;
    proxy way{server.port()};
    with->port = way.port();
    client here{server.url(), unhurried()};
    Lock held{here, "orders", for_ever()};
    living<Lock> others{server};
    long in_line = 0;
    auto const one_more_in_line = [&] {
        ++in_line;
        return eventually([&] { return waiters(server) == in_line; });
    };
    bool const waits = of != role::newcomer && of != role::holder;
    if (waits) held.lock();
    if (of == role::later) {
        others.comes();
        REQUIRE(one_more_in_line());
    }

    // It has sent its last script when it is killed.
    bool const asks = at == step::asks || at == step::asks_again;
    auto const sent = way.count(calls_at(at));
    if (of != role::called && asks) way.hold(calls_at(at));
    with->begin = true;
    if (at == step::asks_again) {
        REQUIRE(eventually([&] { return way.held() > 0; }));
        CHECK(holdfast::test::subscriptions(server) == 1 + in_line);
    }
    if (of == role::holder) REQUIRE(eventually([&] { return with->held.load(); }));
    if (of == role::called || at == step::leaves) REQUIRE(one_more_in_line());
    if (of != role::newcomer) {
        others.comes();
        REQUIRE(one_more_in_line());
    }
    auto const in_queue = queue_of(server);
    reservations reserved{server};
    std::optional<lasting_reservation> kept;
    bool in_time = true;
    if (of == role::called) {
        way.hold(calls_of(scripts::acquire_by_clock_and_tell));
        held.unlock();
        kept.emplace(server, in_queue.front());
        auto const is_kept = [&] { return server.command({"PTTL", "holdfast:next:{orders}"}).integer > 900; };
        in_time = eventually([&] { return is_kept() || others.any_served(); }) && !others.any_served();
        REQUIRE(eventually([&] { return way.held() > 0; }));
    } else if (!asks) {
        way.hold(calls_at(at));
    }
    with->go_on = true;
    REQUIRE(eventually([&] { return sent() > 0 && way.held() > 0; }));
    dies.kill();
    last == fate::done ? way.let_go() : way.cut_all();
    REQUIRE(eventually([&] { return way.open_connections() == 0; }));  // the server has done what arrived
    kept.reset();
    bool const has_it = last == fate::done ? who.has_it_if_done : who.has_it_if_lost;
    if (of == role::called && has_it) in_time = in_time && !others.any_served();

    if (of == role::newcomer) others.comes();
    if (in_time && has_it) {
        CHECK(exists(server, "orders"));
        CHECK_FALSE(others.any_served());
        server.command({"PEXPIRE", "orders", "1"});  // its time is over
    } else if (waits && of != role::called) {
        held.unlock();
    }
    CHECK(others.all_served());
    CHECK(reserved.for_the_dead() == (of == role::called ? 1 : 0));
    CHECK(nothing_left(server));
    return in_time;
}

}  // namespace

TEMPLATE_TEST_CASE("whatever client is killed, at whatever step, those that live get the lock", "", mutex, fair_mutex)
{
    auto const who = GENERATE(from_range(std::begin(deaths), std::end(deaths)));
    auto const last = GENERATE(fate::lost, fate::done);
    CAPTURE(name_of(who.of), name_of(who.at), last == fate::done);
    int tries = 0;
    while (tries < 12 && !dies_then<TestType>(who, last)) ++tries;
    CHECK(tries < 12);
}

TEMPLATE_TEST_CASE(
    "ten waiters that are killed at once cost the next one a reservation at most, and those that stand still one each",
    "", mutex, fair_mutex)
{
    bool const killed = GENERATE(true, false);
    CAPTURE(killed);
    constexpr long count = 10;
    shared<told> with;
    std::vector<child> ten;
    for (long i = 0; i < count; ++i) ten.push_back(child::fork([&] { return live<TestType>(step::releases, *with); }));
    redis_server server;
    with->port = server.port();
    client here{server.url(), unhurried()};
    TestType held{here, "orders", for_ever()};
    held.lock();
    with->begin = true;
    REQUIRE(eventually([&] { return waiters(server) == count; }));
    auto const theirs = queue_of(server);
    living<TestType> others{server};
    others.comes();
    REQUIRE(eventually([&] { return waiters(server) == count + 1; }));
    reservations reserved{server};
    for (auto& one : ten) killed ? one.kill() : one.pause();
    held.unlock();
    CHECK(others.all_served());
    auto const all = reserved.so_far();
    std::vector<std::ptrdiff_t> times;
    for (auto const& who : theirs) times.push_back(std::count(all.begin(), all.end(), who));
    if (killed) {
        CHECK(std::accumulate(times.begin(), times.end(), std::ptrdiff_t{0}) <= 1);  // they may still seem to listen
    } else {
        CHECK(*std::max_element(times.begin(), times.end()) <= 1);
        with->go_on = true;
        for (auto& one : ten) one.resume();
        CHECK(eventually([&] { return with->served == count; }, 5min));
    }
    CHECK(nothing_left(server));
}
