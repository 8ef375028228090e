// SPDX-License-Identifier: MIT
//
// A reply is swallowed, a request dropped, a connection reset: at an acquire or a release, once or for good; of five
// masters, at one or at three of them. A rival on a way of its own takes the lock between the trials, and would show a
// hold that nobody admits to.
#include "rows.hpp"

#include "../journal.hpp"
#include "../place.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#ifdef HOLDFAST_TEST_ZOOKEEPER
#endif

#include <holdfast/core/error.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::unknown_outcome {
namespace {

using namespace std::chrono_literals;
using test::aftermath;
using test::containing;

constexpr char const* name = "faults/0";

/// One client, and what it does written down.
class client {
public:
    client(place const& where, std::filesystem::path const& folder, std::uint32_t number)
        : journal_{folder, number},
          client_{connect(where)},
          lock_{std::make_unique<mutex>(client_, name,
                                        lock_options{.ttl = where.ttl, .renew = false, .retry = {.most = 1h}})},
          timeouts_are_open_{where.what == place::store::zookeeper}
    {
    }

    enum class outcome { granted, refused, unknown };

    outcome acquire(std::chrono::milliseconds limit)
    try {
        ++hold_;
        note({.what = event::acquire_begun});
        bool const got = limit.count() == 0 ? lock_->try_lock() : lock_->try_lock_for(limit);
        if (!got) {
            // Servers that were asked, and whose answer was not there in time: a wait that is over, of which ZooKeeper
            // says no more than that.
            note({.what = timeouts_are_open_ && limit.count() != 0 ? event::acquire_unknown : event::acquire_failed});
            return outcome::refused;
        }
        auto const granted = monotonic_now();
        auto const l = lock_->lease();
        note({.at = granted,
              .valid_until = to_monotonic(l.expires_at()),
              .token = l.fencing_token(),
              .what = event::acquire_ok});
        return outcome::granted;
    } catch (error const&) {
        note({.what = event::acquire_unknown});
        return outcome::unknown;
    }

    [[nodiscard]] bool still_held() const { return lock_->lease().still_held(); }

    void release()
    {
        note({.what = event::release_begun});
        std::error_code ec;
        lock_->unlock(ec);
        auto const result = !ec                      ? release_result::freed
                            : ec == errc::lease_lost ? release_result::lost
                                                     : release_result::unknown;
        note({.value = static_cast<std::uint64_t>(result), .what = event::release_done});
    }

private:
    void note(record r)
    {
        r.hold = hold_;
        journal_.write(r);
    }

    journal journal_;
    store client_;
    std::unique_ptr<mutex> lock_;
    bool timeouts_are_open_;
    std::uint32_t hold_ = 0;
};

enum class manner { swallow, drop, reset };
enum class moment { acquire, release };

/// A way to the servers on which messages are lost.
class lossy_way {
public:
    virtual ~lossy_way() = default;
    [[nodiscard]] virtual std::vector<std::string> servers() const = 0;
    virtual void arm(moment at, manner how, std::mt19937_64& random) = 0;
    virtual void heal() = 0;
    /// Returns: how many messages were lost, and how many connections were reset.
    [[nodiscard]] virtual std::size_t struck() const = 0;
};

class way_to_redis final : public lossy_way {
public:
    explicit way_to_redis(std::vector<std::uint16_t> const& ports)
    {
        for (auto const port : ports) ways_.emplace_back(port);
    }

    [[nodiscard]] std::vector<std::string> servers() const override { return test::urls(ways_); }

    void arm(moment, manner how, std::mt19937_64& random) override
    {
        int const times = random() % 3 == 0 ? 3 : 1;
        auto const then = random() % 4 == 0 ? aftermath::silence : aftermath::reset;
        auto const passed = random() % 6;
        std::shuffle(ways_.begin(), ways_.end(), random);
        auto const most = random() % 2 == 0 ? std::size_t{1} : ways_.size() / 2 + 1;
        for (std::size_t i = 0; i < most; ++i) {
            auto& way = ways_[i];
            switch (how) {
            case manner::swallow:
                way.swallow_next_reply({.matches = containing(name), .times = times, .then = then});
                break;
            case manner::drop:
                way.drop_next_request({.matches = containing(name), .times = times, .then = then});
                break;
            case manner::reset: way.cut_mid_reply(passed, {.matches = containing(name), .times = times}); break;
            }
        }
    }

    void heal() override
    {
        for (auto& one : ways_) one.heal();
    }

    [[nodiscard]] std::size_t struck() const override
    {
        std::size_t sum = 0;
        for (auto const& one : ways_) sum += static_cast<std::size_t>(one.struck());
        return sum;
    }

private:
    std::vector<test::proxy> ways_;
};

#ifdef HOLDFAST_TEST_ZOOKEEPER
class way_to_zookeeper final : public lossy_way {
public:
    explicit way_to_zookeeper(std::uint16_t port) : way_{port, test::zookeeper_packets} {}

    [[nodiscard]] std::vector<std::string> servers() const override { return {way_.address()}; }

    void arm(moment at, manner how, std::mt19937_64& random) override
    {
        auto const request = at == moment::acquire ? test::zookeeper_request::create : test::zookeeper_request::erase;
        switch (how) {
        case manner::swallow: way_.swallow_next_reply({.matches = test::of(request)}); break;
        case manner::drop: way_.drop_next_request({.matches = test::of(request)}); break;
        case manner::reset:
            cuts_ += way_.open_connections() != 0 ? 1U : 0U;
            way_.refuse();
            mending_ = std::jthread{[this, length = std::chrono::milliseconds{random() % 200}] {
                std::this_thread::sleep_for(length);
                way_.pass();
            }};
            break;
        }
    }

    void heal() override
    {
        if (mending_.joinable()) mending_.join();
        way_.heal();
    }

    [[nodiscard]] std::size_t struck() const override { return static_cast<std::size_t>(way_.struck()) + cuts_; }

private:
    test::proxy way_;
    std::size_t cuts_ = 0;
    std::jthread mending_;
};
#endif

std::unique_ptr<lossy_way> way_to(site const& servers)
{
    if (servers.where().what != place::store::zookeeper) return std::make_unique<way_to_redis>(servers.ports());
#ifdef HOLDFAST_TEST_ZOOKEEPER
    return std::make_unique<way_to_zookeeper>(servers.ports().at(0));
#else
    throw std::runtime_error{"this program was built without ZooKeeper"};
#endif
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto const way = way_to(*servers);
    auto const folder = to.folder("journals");
    auto there_by_the_way = servers->where();
    there_by_the_way.servers = way->servers();
    auto const ttl = there_by_the_way.ttl;
    client one{there_by_the_way, folder, 1};
    client rival{servers->where(), folder, 2};
    std::mt19937_64 random{run.seed};
    std::array<std::size_t, 3> outcomes{};
    std::vector<std::int64_t> orphans;
    breaches found;

    auto const trials = run.count(run.on == place::store::redis ? 40 : 10, 1000);
    for (auto const how : {manner::swallow, manner::drop, manner::reset}) {
        auto const struck_before = way->struck();
        for (std::size_t n = 0; n < trials; ++n) {
            bool const at_release = random() % 3 == 0;
            auto const limit = random() % 2 == 0 ? 0ms : 60ms;
            if (!at_release) way->arm(moment::acquire, how, random);
            auto const begun = monotonic_now();
            auto const outcome = one.acquire(at_release ? 5000ms : limit);
            bool const slow = monotonic_now() - begun >=
                              std::chrono::nanoseconds{ttl}.count();  // what was left behind may have come and gone
            ++outcomes[static_cast<std::size_t>(outcome)];
            auto const seen = servers->copies_of(name);
            bool const held = seen.of_one_owner >= servers->quorum();
            bool const expires =
                run.on == place::store::zookeeper || (seen.ms_left >= 0 && seen.ms_left <= ttl.count());
            if (!expires) found.push_back("a key lives for longer than the ttl");
            if (run.on == place::store::zookeeper && seen.all > 1) found.push_back("there are two nodes of one owner");
            if (outcome == client::outcome::granted) {
                if (!held && one.still_held()) found.push_back("a lock was reported as held that is not there");
                if (at_release) way->arm(moment::release, how, random);
                one.release();
            } else if (outcome == client::outcome::refused && held && !slow && run.on != place::store::zookeeper) {
                found.push_back(
                    "a lock was reported as refused, and it is our own that is there");  // a node is still being removed then
            }
            // The control: a roll-back that does not compare takes the lock from whoever has it.
            bool const robbed = run.control && one.acquire(500ms) == client::outcome::granted;
            if (robbed) servers->remove(name);
            auto const left = monotonic_now();
            if (rival.acquire(servers->freed_within() + 1min) != client::outcome::granted)
                found.push_back("what was left behind did not go away");
            if (seen.all != 0) orphans.push_back(monotonic_now() - left);
            if (robbed) one.release();
            rival.release();
            way->heal();
        }
        auto const struck = way->struck() - struck_before;
        std::string const what = how == manner::swallow ? "swallowed" : how == manner::drop ? "dropped" : "reset";
        to.require(2 * struck >= trials, what + ": only " + std::to_string(struck) + " faults struck");
    }
    to.figure("trials: reply swallowed, request dropped, connection reset", trials);
    to.figure("faults that struck", way->struck());
    to.figure("granted, refused, unknown",
              std::to_string(outcomes[0]) + ", " + std::to_string(outcomes[1]) + ", " + std::to_string(outcomes[2]));
    auto const aim = std::chrono::nanoseconds{servers->freed_within()}.count();
    to.demanded_times(run, "until the rival has what was there, ttl " + std::to_string(ttl.count()) + " ms", orphans,
                      aim);
    to.check("reported as it is", found);
    auto records = read_journals(folder);
    verify(run, to, records, servers->whom());
    to.check("K7", check_remains(servers->left(2 * ttl + 10s, waiters::killed)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults::unknown_outcome
