// SPDX-License-Identifier: MIT
//
// A reply is swallowed, a request dropped, a connection reset: at an acquire or a release, once or for good. A rival on a way of its own
// takes the lock between the trials, and would show a hold that nobody admits to.
#include "rows.hpp"

#include "../journal.hpp"
#include "../place.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <holdfast/core/error.hpp>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;
using test::aftermath;
using test::containing;
using test::eventually;

constexpr char const* name = "faults/0";
constexpr std::chrono::milliseconds ttl{400};

/// One client, and what it does written down.
class client {
public:
    client(std::string const& url, std::filesystem::path const& folder, std::uint32_t number)
        : journal_{folder, number}, client_{connect({.servers = {url}, .ttl = ttl})},
          lock_{client_->lock(name, {.ttl = ttl, .renew = false, .retry = {.most = 1h}})}
    {
    }

    enum class outcome { granted, refused, unknown };

    outcome acquire(std::chrono::milliseconds limit)
    try {
        ++hold_;
        note({.what = event::acquire_begun});
        bool const got = limit.count() == 0 ? lock_->try_lock() : lock_->try_lock_for(limit);
        if (!got) {
            note({.what = event::acquire_failed});
            return outcome::refused;
        }
        auto const granted = monotonic_now();
        auto const l = lock_->lease();
        note({.at = granted, .valid_until = to_monotonic(l.expires_at()), .token = l.fencing_token(), .what = event::acquire_ok});
        return outcome::granted;
    } catch (error const&) {
        note({.what = event::acquire_unknown});
        return outcome::unknown;
    }

    void release()
    {
        note({.what = event::release_begun});
        std::error_code ec;
        lock_->release(ec);
        auto const result = !ec ? release_result::freed : ec == errc::lease_lost ? release_result::lost : release_result::unknown;
        note({.value = static_cast<std::uint64_t>(result), .what = event::release_done});
    }

private:
    void note(record r)
    {
        r.hold = hold_;
        journal_.write(r);
    }

    journal journal_;
    std::unique_ptr<any_client> client_;
    std::unique_ptr<any_lock> lock_;
    std::uint32_t hold_ = 0;
};

enum class manner { swallow, drop, reset };

void arm(test::proxy& way, manner how, int times, std::mt19937_64& random)
{
    auto const then = random() % 4 == 0 ? aftermath::silence : aftermath::reset;
    switch (how) {
    case manner::swallow: way.swallow_next_reply({.matches = containing(name), .times = times, .then = then}); break;
    case manner::drop: way.drop_next_request({.matches = containing(name), .times = times, .then = then}); break;
    case manner::reset: way.cut_mid_reply(random() % 6, {.matches = containing(name), .times = times}); break;
    }
}

}  // namespace

void unknown_outcome(run_options const& run, findings& to)
{
    test::redis_server server;
    test::proxy way{server.port()};
    auto const folder = to.folder("journals");
    client one{way.url(), folder, 1};
    client rival{server.url(), folder, 2};
    std::mt19937_64 random{run.seed};
    std::array<std::size_t, 3> outcomes{};
    std::vector<std::int64_t> orphans;
    breaches found;

    auto const trials = run.count(40, 1000);
    for (auto const how : {manner::swallow, manner::drop, manner::reset}) {
        for (std::size_t n = 0; n < trials; ++n) {
            bool const at_release = random() % 3 == 0;
            auto const limit = random() % 2 == 0 ? 0ms : 60ms;
            if (!at_release) arm(way, how, random() % 3 == 0 ? 3 : 1, random);
            auto const outcome = one.acquire(at_release ? 500ms : limit);
            ++outcomes[static_cast<std::size_t>(outcome)];
            auto const left_for = server.command({"PTTL", name}).integer;
            bool const there = left_for != -2;
            if (left_for == -1 || left_for > ttl.count()) found.push_back("a key lives for longer than the ttl");
            if (outcome == client::outcome::granted) {
                if (!there) found.push_back("a lock was reported as held that is not there");
                if (at_release) arm(way, how, random() % 3 == 0 ? 3 : 1, random);
                one.release();
            } else if (outcome == client::outcome::refused && there) {
                found.push_back("a lock was reported as refused, and it is our own that is there");
            }
            // The control: a roll-back that does not compare takes the lock from whoever has it.
            bool const robbed = run.control && one.acquire(500ms) == client::outcome::granted;
            if (robbed) server.command({"DEL", name});
            auto const left = monotonic_now();
            if (rival.acquire(ttl + 5s) != client::outcome::granted) found.push_back("what was left behind did not go away");
            if (there) orphans.push_back(monotonic_now() - left);
            if (robbed) one.release();
            rival.release();
            way.heal();
        }
    }
    to.figure("trials: reply swallowed, request dropped, connection reset", trials);
    to.figure("faults that struck", static_cast<std::size_t>(way.struck()));
    to.require(static_cast<std::size_t>(way.struck()) >= trials, "too few faults struck");
    to.figure("granted, refused, unknown", std::to_string(outcomes[0]) + ", " + std::to_string(outcomes[1]) + ", " + std::to_string(outcomes[2]));
    to.times("until the rival has what was there, ttl 400 ms", orphans, std::chrono::nanoseconds{ttl + 100ms}.count());
    to.check("reported as it is", found);
    auto records = read_journals(folder);
    verify(run, to, records, refused_by::holder);
    to.check("K7", check_remains(remains_on(server, ttl + 5s)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults
