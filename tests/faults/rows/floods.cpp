// SPDX-License-Identifier: MIT
//
// One of five masters that sends without end, a publisher that reports releases without end, and a value of 200 MB
// where a lock's should be.
#include "lock_requests.hpp"
#include "rows.hpp"

#include "../place.hpp"

#include <support/connection.hpp>
#include <support/eventually.hpp>
#include <support/first_waiter.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>
#include <support/requests.hpp>

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::floods {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds operation_timeout{500};
constexpr std::chrono::milliseconds deadline{300};
constexpr std::chrono::milliseconds busy_machine{3000};  // what is taken for a failure
constexpr std::chrono::milliseconds ttl{6000};

std::string word(std::string const& text) { return '$' + std::to_string(text.size()) + "\r\n" + text + "\r\n"; }

std::string message(std::string const& channel, std::string const& text = "1")
{
    return "*3\r\n" + word("message") + word(channel) + word(text);
}

/// Returns: calls of the waiters that a client has from now on, whose inbox `first` was called at. Some of them do not
/// wait any more: those that come after them are called in their place.
std::string calls_of_waiters(test::waiter_call const& first)
{
    constexpr std::size_t reserve_digits = 4;
    constexpr int waits = 128;
    std::string all;
    for (int number = 1; number <= waits; ++number)
        all += message(first.channel, first.text.substr(0, reserve_digits) + std::to_string(number) + " floods/taken");
    return all;
}

/// What is sent without end, and to the connections on which what was asked.
struct flood {
    std::string name;
    std::string bytes;
    std::string asked;
};

enum class flood_of { calls, other_messages, answers, one_reply };

/// `first`: a waiter of the client that there was.
flood make_flood(flood_of what, test::waiter_call const& first)
{
    switch (what) {
    case flood_of::calls: return {"calls of waiters", calls_of_waiters(first), "SUBSCRIBE"};
    case flood_of::other_messages: return {"releases of no lock", message("x"), "SUBSCRIBE"};
    case flood_of::answers: return {"answers", ":0\r\n", "EVAL"};
    case flood_of::one_reply: break;
    }
    return {"a reply without end", "$1000000\r\n", "EVAL"};
}

/// The calls of a client while something sends without end.
class calls {
public:
    explicit calls(findings& to) : to_{to} {}

    /// Effects: asks for a lock that others have for `time`, and sees how much later than its deadline each call
    /// returns.
    void ask(std::string const& what, mutex& taken, boot_clock::duration time)
    {
        for (auto const end = boot_clock::now() + time; boot_clock::now() < end;) {
            auto const begun = boot_clock::now();
            try {
                if (taken.try_lock_for(deadline)) found_.push_back(what + ": a lock that others have was granted");
            } catch (error const&) {  // judged is when
            }
            auto const late = boot_clock::now() - begun - deadline - operation_timeout;
            late_.push_back(std::max<std::int64_t>(late.count(), 0));
            if (late > busy_machine)
                found_.push_back(what + ": a call returned " + milliseconds(late.count()) + " too late");
        }
    }

    void finish(run_options const& run)
    {
        to_.demanded_times(run, "beyond the deadline and one operation timeout", late_, 50'000'000);
        to_.check("every call returns", found_);
    }

private:
    findings& to_;
    std::vector<std::int64_t> late_;
    breaches found_;
};

/// Effects: has `taken`, which others have, be waited for. Returns: how its waiter is called on the first server.
test::waiter_call call_of(mutex& taken, test::redis_server& server)
{
    std::jthread const waiting{[&](std::stop_token const& stop) {
        try {
            static_cast<void>(taken.lock(stop));
        } catch (error const&) {  // nobody is called then
        }
    }};
    test::connection ask{server.port()};
    test::waiter_call first;
    static_cast<void>(test::eventually([&] { return bool{(first = test::first_waiter(ask, "floods/taken"))}; }));
    return first;
}

/// One of five masters sends without end; in the control, three of them do.
void masters_that_flood(run_options const& run, findings& to, calls& c, breaches& leases,
                        std::vector<std::int64_t>& announced)
{
    auto const length = run.full ? boot_clock::duration{30s} : boot_clock::duration{2500ms};
    for (auto const kind : {flood_of::calls, flood_of::other_messages, flood_of::answers, flood_of::one_reply}) {
        test::redis_fleet fleet{5};
        std::vector<test::proxy> ways;
        for (auto const& one : fleet) ways.emplace_back(one.port());
        place const where{
            .what = place::store::redlock, .servers = test::urls(ways), .operation_timeout = operation_timeout};
        auto options = where.options();
        options.ttl = ttl;
        auto const others = connect({.what = place::store::redlock, .servers = fleet.urls(), .operation_timeout = 3s});
        auto of_others = where.options();
        of_others.ttl = 60s;
        mutex theirs{others, "floods/taken", of_others};
        auto const client = connect(where);
        mutex held{client, "floods/held", options};
        mutex taken{client, "floods/taken", of_others};
        if (!theirs.try_lock_for(20s) || !held.try_lock_for(20s)) {
            to.require(false, "the locks could not be taken beforehand");
            return;
        }
        auto const first = call_of(taken, fleet[0]);
        to.require(static_cast<bool>(first), "nobody waits in the queue of a master");
        auto const what = make_flood(kind, first);
        std::size_t const flooding = run.control ? 3 : 1;
        std::vector<std::function<int()>> struck;
        for (std::size_t i = 0; i < flooding; ++i) {
            auto const whose = test::containing(run.control ? "EVAL" : what.asked);
            struck.push_back(ways[i].count(whose));
            ways[i].flood(what.bytes, whose);
            ways[i].cut_all();
        }
        auto const lease = held.lease();
        auto const was = lease.expires_at();
        c.ask(what.name, taken, length);
        if (run.control) c.ask(what.name, taken, ttl);
        for (auto const& one : struck) to.require(one() > 0, what.name + ": no connection was flooded");
        if (!lease.still_held())
            leases.push_back(what.name + ": a lease that four masters could renew was lost");
        else if (lease.expires_at() == was)
            leases.push_back(what.name + ": a lease was not renewed");
        if (run.control) return;
        if (!run.full && what.asked != "SUBSCRIBE") continue;
        for (std::size_t i = 1; i < 4; ++i) ways[i].blackhole();
        if (!test::eventually([&] { return lease.lost_token().stop_requested(); }, ttl + 20s))
            leases.push_back(what.name + ": a loss was not announced");
        auto const late = std::max<std::int64_t>((boot_clock::now() - lease.expires_at()).count(), 0);
        announced.push_back(late);
        if (late > std::chrono::nanoseconds{busy_machine}.count())
            leases.push_back(what.name + ": a loss was announced " + milliseconds(late) + " too late");
        for (auto& way : ways) way.heal();
    }
}

/// Somebody calls the waiter again and again, while the lock is held.
void publisher(run_options const& run, findings& to, calls& c)
{
    test::redis_server server;
    place const where{.servers = {server.url()}, .operation_timeout = operation_timeout};
    auto options = where.options();
    options.ttl = 60s;
    mutex theirs{connect(where), "floods/taken", options};
    mutex taken{connect(where), "floods/taken", options};
    theirs.lock();
    std::atomic<std::size_t> heard{0};
    std::jthread const spammer{[&](std::stop_token const& stop) {
        constexpr int calls_of_each = 16;
        test::connection to_server{server.port()};
        while (!stop.stop_requested())
            if (auto const who = test::first_waiter(to_server, "floods/taken"))
                for (int n = 0; n < calls_of_each; ++n)
                    heard += to_server({"PUBLISH", who.channel, who.text}).integer >= 1 ? 1U : 0U;
    }};
    auto const before = lock_requests(server);
    auto const length = run.full ? 30s : 3s;
    auto const begun = boot_clock::now();
    c.ask("a publisher", taken, length);
    auto const seconds = std::chrono::duration<double>(boot_clock::now() - begun).count();
    auto const rate = static_cast<std::size_t>(static_cast<double>(lock_requests(server) - before) / seconds);
    to.figure("calls that a waiter heard", heard.load());
    to.require(heard > 100, "hardly a call came to a waiter: " + std::to_string(heard));
    to.figure("asks a second beside a publisher", rate);
    to.require(rate <= 700, "a waiter asks " + std::to_string(rate) +
                                " times a second");  // each call may ask 32 times before it doubts
}

/// Something of 200 MB stands where the lock should.
void great_value(run_options const& run, findings& to, calls& c)
{
    test::redis_server server;
    server.command({"SETRANGE", "floods/taken", "209715199", "x"});
    place const where{.servers = {server.url()}, .operation_timeout = operation_timeout};
    auto options = where.options();
    options.ttl = ttl;
    auto const client = connect(where);
    mutex held{client, "floods/held", options};
    mutex taken{client, "floods/taken", options};
    held.lock();
    auto const first = held.lease().expires_at();
    c.ask("a great value", taken, run.full ? 30s : 3s);
    bool const renewed = held.lease().still_held() && held.lease().expires_at() != first;
    to.require(renewed, "beside a great value a lease was not renewed");
}

}  // namespace

void go(run_options const& run, findings& to)
{
    calls c{to};
    breaches leases;
    std::vector<std::int64_t> announced;
    masters_that_flood(run, to, c, leases, announced);
    to.check("leases", leases);
    to.times("a loss is announced after the lease has ended by", announced, 0);
    if (!run.control) {
        publisher(run, to, c);
        great_value(run, to, c);
    }
    c.finish(run);
}

}  // namespace holdfast::faults::floods
