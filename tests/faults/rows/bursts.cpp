// SPDX-License-Identifier: MIT
//
// Many leases that are all due at once: after a stop of the process, an outage of the servers, a failover, a failover to
// an empty server.
#include "rows.hpp"

#include "../place.hpp"

#include <support/eventually.hpp>
#include <support/process.hpp>
#include <support/redis_server.hpp>
#include <support/shared.hpp>

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/validity.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::faults::bursts {
namespace {

using namespace std::chrono_literals;

/// What the process that holds the leases says of them.
struct board {
    std::atomic<bool> all_taken{false};
    std::atomic<bool> end{false};
    std::atomic<boot_clock::rep> struck_until{0};
    std::atomic<boot_clock::rep> seen{0};  ///< that value, where what follows was counted since
    std::atomic<std::size_t> held{0};
    std::atomic<std::size_t> renewed{0};  ///< since then
    std::atomic<std::size_t> told{0};     ///< of a loss
    std::atomic<std::size_t> failed{0};   ///< renewals
};

/// Effects: takes so many locks, and says what becomes of them. Returns: the exit status.
int hold(board& says, place const& where, std::size_t count)
{
    auto const client = connect(where);
    auto options = where.options();
    options.unavailable_after = 5min;
    options.on_error = [&](error const& e) { ++(e.code() == errc::lease_lost ? says.told : says.failed); };
    std::vector<std::unique_ptr<mutex>> locks;
    for (std::size_t i = 0; i < count; ++i)
        locks.push_back(std::make_unique<mutex>(client, "faults/" + std::to_string(i), options));
    {
        constexpr std::size_t threads = 8;
        std::vector<std::jthread> takers;
        for (std::size_t t = 0; t < threads; ++t)
            takers.emplace_back([&, t] {
                for (auto i = t; i < count; i += threads) locks[i]->lock();
            });
    }
    std::vector<lease> leases;
    for (auto const& one : locks) leases.push_back(one->lease());
    says.all_taken = true;
    auto const lease_time = boot_clock::duration{where.ttl} - drift(where.ttl) - announcement_margin(where.ttl);
    while (!says.end) {
        auto const struck_until = says.struck_until.load();
        boot_clock::time_point const renewed_at_least{boot_clock::duration{struck_until} + lease_time};
        std::size_t held = 0;
        std::size_t renewed = 0;
        for (auto const& one : leases) {
            held += one.still_held() ? 1U : 0U;
            renewed += one.expires_at() >= renewed_at_least ? 1U : 0U;
        }
        says.held = held;
        says.renewed = renewed;
        says.seen = struck_until;
        std::this_thread::sleep_for(5ms);
    }
    for (auto const& one : locks) {
        std::error_code ec;
        one->unlock(ec);
    }
    return 0;
}

class burst {
public:
    burst(run_options const& run, findings& to)
        : run_{run}, to_{to}, servers_{run.on == place::store::redlock ? 5U : 1U}
    {
        place const where{.what = run.on, .servers = servers_.urls(), .ttl = ttl_};
        holder_ = test::child::fork([this, where] { return hold(*says_, where, count_); });
        if (!test::eventually([&] { return says_->all_taken && says_->held == count_; }, 5min))
            throw std::runtime_error{"the locks could not be taken"};
    }

    void stop()
    {
        strike(
            "a stop", gap_,
            [&](auto d) {
                holder_.pause();
                std::this_thread::sleep_for(run_.control ? ttl_ + 1s : d);
            },
            [&] { holder_.resume(); });
    }

    void outage()
    {
        strike(
            "an outage", gap_ / 2, [&](auto d) { silence(d); }, [&] { answer(); });
    }

    void failover()
    {
        strike(
            "a failover", gap_ / 2, [&](auto d) { silence(d); },
            [&] {
                answer();
                for (int i = 0; i < 5; ++i) {  // while what has gathered is renewed
                    servers_.command({"CLIENT", "KILL", "TYPE", "normal"});
                    std::this_thread::sleep_for(20ms);
                }
            });
    }

    /// One of several masters that is empty costs no lease. With one Redis all are lost, and each is told of that.
    void emptied()
    {
        auto& server = servers_[0];
        auto const replace = [&] {
            answer();
            server.command({"FLUSHALL"});
            server.command({"CLIENT", "KILL", "TYPE", "normal"});
        };
        if (run_.on == place::store::redlock)
            return strike(
                "a failover to an empty server", gap_ / 2, [&](auto d) { silence(d); }, replace);
        look("before a failover to an empty server");
        silence(gap_ / 2);
        auto const from = boot_clock::now();
        replace();
        breaches believed;
        if (!test::eventually([&] { return says_->held == 0; }, 2min))
            believed.push_back(std::to_string(says_->held) + " leases are held of which no server knows");
        to_.check("an empty server ends its leases", believed);
        to_.figure("all lost after a failover to an empty server", milliseconds((boot_clock::now() - from).count()));
    }

    void finish()
    {
        auto const told_of_all = [&] { return says_->held + says_->told == count_; };
        breaches unsaid;
        if (!test::eventually(told_of_all, 1min))
            unsaid.push_back("of " + std::to_string(count_ - says_->held) + " losses " + std::to_string(says_->told) +
                             " were told");
        to_.check("every loss is announced", unsaid);
        says_->end = true;
        auto const status = holder_.wait_for(5min);
        to_.require(status == 0, "the process that holds the leases did not end by itself");
        to_.figure("leases", count_);
        to_.figure("renewals that failed", says_->failed.load());
        to_.check("no lease is lost", lost_);
    }

private:
    void look(std::string const& what)
    {
        if (auto const held = says_->held.load(); held != count_)
            lost_.push_back(what + ": of " + std::to_string(count_) + " leases " + std::to_string(held) + " are held");
    }

    void strike(std::string const& what, std::chrono::milliseconds gap,
                std::function<void(std::chrono::milliseconds)> const& begin, std::function<void()> const& end)
    {
        look("before " + what);
        begin(gap);
        auto const until = boot_clock::now().time_since_epoch().count();
        says_->struck_until = until;
        end();
        auto const settled = [&] { return says_->seen == until && says_->renewed >= says_->held; };
        if (!test::eventually(settled, 2min)) lost_.push_back(what + ": leases are held and not renewed");
        auto const took = boot_clock::now().time_since_epoch().count() - until;
        to_.figure("all renewed after " + what, milliseconds(took));
        look(what);
    }

    void silence(std::chrono::milliseconds d)
    {
        for (auto& one : servers_) one.pause();
        std::this_thread::sleep_for(d);
    }

    void answer()
    {
        for (auto& one : servers_) one.resume();
    }

    run_options const& run_;
    findings& to_;
    // A stop is longer than a third of the ttl, so that all are due; what is left of each then is short, and in the
    // short form long enough for a machine that does other things. Renewals that fail are tried again when a quarter of
    // what is left has passed: the servers are back before.
    std::chrono::milliseconds const ttl_{run_.full ? 6000 : 9000};
    std::chrono::milliseconds const gap_{run_.full ? 2500 : 3200};
    std::size_t const count_{run_.count(300, 10'000)};
    test::redis_fleet servers_;
    test::shared<board> says_;
    test::child holder_;
    breaches lost_;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    burst one{run, to};
    one.stop();
    if (!run.control) {
        one.outage();
        one.failover();
        one.emptied();
    }
    one.finish();
}

}  // namespace holdfast::faults::bursts
