// SPDX-License-Identifier: MIT
//
// The answer to a create that is lost: the node is there, and its owner does not know. It is ours, or it has to go; and
// where its session has ended meanwhile, what bears its name is nobody's whom we know.
#include "rows.hpp"

#ifdef HOLDFAST_TEST_ZOOKEEPER
#include "zookeeper_nodes.hpp"

#include <support/eventually.hpp>
#include <support/locks.hpp>
#include <support/proxy.hpp>
#include <support/zookeeper_server.hpp>
#include <support/zookeeper_tree.hpp>

#include <holdfast/core/options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>
#endif

#include <stdexcept>

namespace holdfast::faults::zookeeper_lost_create {

#ifdef HOLDFAST_TEST_ZOOKEEPER
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr char const* path = "/faults/0";
constexpr std::size_t digits_of_a_sequence = 10;
/// A machine that is busy does not lose a session before it has reconnected.
constexpr std::chrono::milliseconds that_lasts{20'000};
constexpr std::chrono::milliseconds that_ends{5000};

/// Somebody who locks in a thread, as far as can be seen from outside.
class acquire {
public:
    explicit acquire(zookeeper::mutex& m)
        : thread_{[this, &m] {
              try {
                  if (!m.try_lock_for(1min)) why_ = "the lock was not granted";
              } catch (error const& e) {
                  why_ = e.what();
              }
              ended_ = true;
          }}
    {
    }

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    /// Returns: why there is no lock; empty where there is.
    [[nodiscard]] std::string join()
    {
        thread_.join();
        return why_;
    }

private:
    std::string why_;
    std::atomic<bool> ended_{false};
    std::jthread thread_;  // last: it uses the others
};

/// A server, a client whose packets can be struck, and a look at the queue.
class scene {
public:
    explicit scene(std::chrono::milliseconds session_timeout)
        : here_{way.address(), {.session_timeout = session_timeout, .operation_timeout = 1min}},
          there_{server.address(), {.session_timeout = that_lasts}}
    {
        if (!here_.connect_for(1min) || !there_.connect_for(1min))
            throw std::runtime_error{"no session with ZooKeeper"};
        static_cast<void>(tree.create(
            path));  // for good: folders made by a lock are removed when they are empty, and then a create does nothing
    }

    [[nodiscard]] std::vector<std::string> queue() { return tree.children(path); }
    [[nodiscard]] std::string of(std::string const& node) const { return std::string{path} + '/' + node; }

    /// Effects: makes a node that bears the name of `node`, but is ours. Returns: its path.
    std::string forge(std::string const& node)
    {
        return tree.create(of(node.substr(0, node.size() - digits_of_a_sequence)), {}, true, true);
    }

    /// Effects: says what is wrong with a lock that was just granted, and frees it.
    void look_at_holder(std::string const& trial)
    {
        auto const nodes = queue();
        if (nodes.size() != 1) {
            wrong(trial, "there are " + std::to_string(nodes.size()) + " nodes where one has the lock");
        } else {
            auto const node = tree.get(of(nodes.front()));
            if (m.lease().fencing_token() / (most_local_handoffs + 1) != static_cast<std::uint64_t>(node.czxid))
                wrong(trial, "the node is not the one that the lock stands on");
            if (node.owner == tree.session_id()) wrong(trial, "it was taken over a node that is not its own");
        }
        if (!m.lease().still_held()) wrong(trial, "the lock is not held");
        std::error_code ec;
        m.unlock(ec);
        if (ec) wrong(trial, "the release failed: " + ec.message());
        if (!queue().empty()) wrong(trial, "a node is left");
    }

    void wrong(std::string const& trial, std::string const& what) { found.push_back(trial + ": " + what); }

    test::zookeeper_server server{{.tick = 200ms}};
    test::proxy way{server.port(), test::zookeeper_packets};
    test::zookeeper_tree tree{server.address()};
    breaches found;

private:
    zookeeper::session here_;
    zookeeper::session there_;

public:
    zookeeper::mutex m{here_, path, {.unavailable_after = 1min}};
    zookeeper::mutex rival{there_, path, {.unavailable_after = 1min}};
};

/// The session lives on: the node is adopted or deleted, and at no time are there two.
void of_a_session_that_lives(run_options const& run, findings& to)
{
    scene on{that_lasts};
    auto const trials = run.count(4, 200);
    for (std::size_t n = 0; n < trials; ++n) {
        bool const waits = n % 2 != 0;
        auto const trial = "trial " + std::to_string(n) + (waits ? ", behind another" : ", of a free lock");
        if (waits) on.rival.lock();
        auto const before = on.way.struck();
        on.way.swallow_next_reply({.matches = test::of(test::zookeeper_request::create)});
        acquire ours{on.m};
        std::size_t most = 0;
        std::string blind;
        bool const settled = eventually([&] {
            auto const nodes = on.queue();
            most = std::max(most, nodes.size());
            // What a client would do that sends its create again.
            if (run.control && blind.empty() && on.way.struck() != before && !nodes.empty())
                blind = on.forge(nodes.back());
            return ours.ended() || (waits && on.way.struck() != before && nodes.size() > 1 && on.server.watches() > 0);
        });
        if (!settled) on.wrong(trial, "nothing comes of it");
        if (waits) on.rival.unlock();
        if (auto const why = ours.join(); !why.empty()) {
            on.wrong(trial, why);
            break;
        }
        on.look_at_holder(trial);
        if (on.way.struck() == before) on.wrong(trial, "no answer was lost");
        if (most > (waits ? 2U : 1U))
            on.wrong(trial, "there were " + std::to_string(most) + " nodes in the queue at one time");
        if (!blind.empty()) on.tree.remove(blind);
    }
    to.figure("answers to a create that were lost", trials);
    to.check("held once: adopted or deleted, never doubled", on.found);
    to.check("K7", check_remains(remains_below(path, on.server.address(), 2 * that_lasts)));
}

/// The session ends before its owner is back: its next one has a node of its own.
void of_a_session_that_ends(run_options const& run, findings& to)
{
    scene lasting{that_lasts};
    scene ending{that_ends};
    auto const trials = run.count(4, 200);
    for (std::size_t n = 0; n < trials; ++n) {
        auto const trial = "session " + std::to_string(n);
        // The server hangs until the session has ended, and sometimes its end comes only after its owner is back. The
        // node of a name that outlives its session, as where a follower lags, is forged.
        bool const outlived = n % 2 == 0;
        auto& on = outlived ? lasting : ending;
        auto const before = on.way.struck();
        on.way.swallow_next_reply(
            {.matches = test::of(test::zookeeper_request::create), .then = test::aftermath::refuse});
        acquire ours{on.m};
        std::vector<std::string> nodes;
        auto const made = [&] {
            nodes = on.queue();
            return on.way.struck() != before && nodes.size() == 1;
        };
        bool const seen = eventually(made, outlived ? 60s : 5s);  // it goes with a session that ends
        std::string forged;
        if (outlived) {
            if (!seen) {
                on.way.pass();
                auto why = ours.join();
                on.wrong(trial, std::to_string(nodes.size()) + " nodes were made where there should be one; then " +
                                    (why.empty() ? "the lock was granted" : why));
                break;
            }
            on.tree.end_session(on.tree.get(on.of(nodes.front())).owner);
            forged = on.forge(nodes.front());
        } else {
            on.server.pause();
            std::this_thread::sleep_for(that_ends + 2s);
            on.server.resume();
            if (n % 4 == 1) static_cast<void>(eventually([&] { return on.queue().empty(); }));
        }
        on.way.pass();
        if (outlived) {
            if (!eventually([&] { return ours.ended() || (on.queue().size() == 2 && on.server.watches() > 0); }))
                on.wrong(trial, "nothing comes of it");
            if (ours.ended()) on.wrong(trial, "the lock was taken over the node of an earlier session, or ahead of it");
            on.tree.remove(forged);
        }
        if (auto const why = ours.join(); !why.empty()) {
            on.wrong(trial, why);
            break;
        }
        on.look_at_holder(trial);
    }
    to.figure("sessions that ended before the answer to a create", trials);
    for (auto* const on : {&lasting, &ending}) {
        to.check("the node of an earlier session is never taken for ours", on->found);
        to.check("K7", check_remains(remains_below(path, on->server.address(), 2 * that_lasts)));
    }
}

}  // namespace

void go(run_options const& run, findings& to)
{
    of_a_session_that_lives(run, to);
    if (!run.control) of_a_session_that_ends(run, to);
}

#else

void go(run_options const&, findings&) { throw std::runtime_error{"this program was built without ZooKeeper"}; }

#endif

}  // namespace holdfast::faults::zookeeper_lost_create
