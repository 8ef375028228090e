// SPDX-License-Identifier: MIT
//
// Clients of one lock on a modelled ensemble, in every order that a seed makes of: requests that arrive, answers and
// notices that come back, servers that lag, connections that break with anything under way, sessions that end, or are
// given up by their clients while the servers still keep them, containers that are collected.
//
// In half of the schedules some are readers, and what is held is converted from one mode to the other.
//
// Looked for: two holders that exclude each other (K1), a fencing token that is not greater (K2), somebody who never gets the lock although
// nothing fails any more (K6), a node that is left (K7). That a holder stops in time when its session ends is the
// lease's matter, and not looked at here.
#include "schedule.hpp"
#include "../ensemble.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/random.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/convert_recipe.hpp>
#include <holdfast/zookeeper/erase_machine.hpp>
#include <holdfast/zookeeper/sequential_recipe.hpp>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace holdfast::test {
namespace {

using namespace zookeeper;
using holdfast::detail::random_sequence;

struct client {
    struct message {
        unsigned job;  // of the acquire or the erase that it belongs to
        unsigned tag;
        request what;
    };
    struct letter {
        unsigned job;
        unsigned tag;
        reply answer;
        bool notice;
        std::size_t seen;  // what the server had applied
    };
    struct watch {
        unsigned job;
        unsigned tag;
        std::string path;
    };

    std::unique_ptr<acquire_machine> acquiring;
    access mode{};  // that it asks for
    std::optional<erase_machine> erasing;
    unsigned job = 0;
    std::optional<leftover> held;  // what it holds; while it is converted, there is an acquire, too
    std::uint64_t token = 0;
    access held_mode{};
    std::int64_t session = 0;
    bool connected = false;
    std::size_t server = 0;
    std::size_t seen = 0;
    std::deque<message> sent;
    std::deque<letter> inbox;
    std::vector<watch> watches;
    unsigned wins = 0;
    bool create_only = false;  // it may neither list who waits nor remove anything
};

class world {
public:
    explicit world(std::uint64_t seed) : random_{seed}, ensemble_{3, first_number()}, clients_(2 + random_.below(4))
    {
        faults_until_ = 200 + random_.below(1500);
        fault_weight_ = random_.below(30);
        shared_ = random_.below(2) == 0;
        if (random_.below(4) == 0) {
            ensemble_.make_lasting("/l");
            clients_.front().create_only = true;
        }
    }

    zookeeper_verdict run()
    {
        for (step_ = 0; step_ < faults_until_ || !settled(); ++step_) {
            if (step_ > faults_until_ + 60'000) {
                breach("somebody waits for ever");
                break;
            }
            if (step_ < faults_until_ && random_.below(400) < fault_weight_)
                fail();
            else
                move();
            if (!v_.breaches.empty()) break;
        }
        if (v_.breaches.empty() && !ensemble_.left().empty()) breach("a node is left");
        if (v_.breaches.empty() && ensemble_.barren()) breach("a container is left that never had a child");
        return v_;
    }

private:
    std::int32_t first_number()
    {
        auto const kind = random_.below(4);
        if (kind == 0) return static_cast<std::int32_t>(0x7FFFFFFF - static_cast<std::int32_t>(random_.below(20)));
        return kind == 1 ? 5 : 95;
    }

    bool calm() const { return step_ >= faults_until_; }

    /// Returns: whether nobody has anything to do any more.
    bool settled() const
    {
        return abandoned_.empty() && std::all_of(clients_.begin(), clients_.end(), [](client const& c) {
                   return !c.acquiring && !c.held && !c.erasing && c.inbox.empty() && c.sent.empty();
               });
    }

    void note(std::uint64_t what) { v_.hash = v_.hash * 0x9fb21c651e98df25U + what + 1; }
    void breach(std::string what)
    {
        v_.breaches.push_back(std::move(what) + ", after " + std::to_string(step_) + " steps");
    }

    void fail()
    {
        auto& c = clients_[random_.below(clients_.size())];
        auto const kind = random_.below(7);
        note(100 + kind);
        if (kind < 3) {
            cut(c);
        } else if (kind == 3 && c.session != 0) {
            cut(c);
            end(c);
        } else if (kind == 4 && c.acquiring) {
            c.acquiring->give_up(std::make_error_code(std::errc::operation_canceled));
            ++v_.given_up;
            conclude(c);
        } else if (kind == 5) {
            ensemble_.collect();
            ++v_.collected;
        } else if (kind == 6 && c.session != 0) {
            abandon(c);
        }
    }

    /// Effects: the client gives its session up and makes another one, while the servers still keep the old one and its
    /// nodes: no server could be told.
    void abandon(client& c)
    {
        cut(c);
        abandoned_.push_back(c.session);
        ++v_.abandoned;
        c.session = 0;
        c.held.reset();
        if (c.acquiring) c.acquiring->expired();
        if (c.erasing) c.erasing->expired();
        conclude(c);
    }

    /// Effects: the servers end a session that its client has given up.
    void expire_abandoned()
    {
        ensemble_.end_session(abandoned_.front());
        abandoned_.pop_front();
    }

    /// Effects: the connection breaks: of what was under way a part is done, and no answer comes.
    void cut(client& c)
    {
        if (!c.connected) return;
        for (auto left = random_.below(c.sent.size() + 1); left > 0; --left) {
            static_cast<void>(ensemble_.process(c.server, c.session, c.sent.front().what, random_.below(4) == 0));
            lost_.push_back(c.sent.front());
            c.sent.pop_front();
        }
        // Answers that had arrived are still read; what is sent upon them, and those to come, are lost in the order in
        // which they were sent.
        for (auto n = random_.below(c.inbox.size() + 1); n > 0; --n) read(c);
        std::deque<client::message> lost;
        for (auto& one : c.inbox)
            if (!one.notice) lost.push_back({one.job, one.tag, {}});
        lost.insert(lost.end(), lost_.begin(), lost_.end());
        lost.insert(lost.end(), c.sent.begin(), c.sent.end());
        lost_.clear();
        c.sent.clear();
        c.inbox.clear();
        c.watches.clear();
        c.connected = false;
        v_.lost_answers += lost.size();
        for (auto const& one : lost) c.inbox.push_back({one.job, one.tag, reply{}, false, c.seen});
        while (!c.inbox.empty()) read(c);
    }

    void end(client& c)
    {
        ensemble_.end_session(c.session);
        ++v_.expired;
        // It learns so when it connects again; what it holds is lost by its own clock.
        c.held.reset();
    }

    void move()
    {
        auto& c = clients_[random_.below(clients_.size())];
        auto const kind = random_.below(6);
        note(kind);
        if (!abandoned_.empty() && random_.below(calm() ? 2 : 60) == 0) expire_abandoned();
        if (kind == 0) catch_up(random_.below(3));
        if (!c.connected) return connect(c);
        if (kind == 1) return decide(c);
        if (kind <= 3) return arrive(c);
        read(c);
    }

    void catch_up(std::size_t server)
    {
        if (ensemble_.lag(server) == 0) return;
        auto const change = ensemble_.catch_up(server);
        if (change.what != ensemble::change::kind::removed) return;
        auto const& gone = change.path;
        for (auto& c : clients_) {
            if (!c.connected || c.server != server) continue;
            for (auto const& one : c.watches)
                if (one.path == gone) c.inbox.push_back({one.job, one.tag, {}, true, ensemble_.applied(server)});
            std::erase_if(c.watches, [&](auto const& one) { return one.path == gone; });
        }
    }

    void connect(client& c)
    {
        auto const server = random_.below(3);
        if (ensemble_.applied(server) < c.seen) return;  // it would show the client its past
        if (c.session != 0 && !ensemble_.lives(c.session)) {
            c.session = 0;
            if (c.acquiring) c.acquiring->expired();
            if (c.erasing) c.erasing->expired();
            conclude(c);
        }
        c.server = server;
        c.connected = true;
        if (c.session == 0) {
            // A session is made by a write, which the server has applied when it says so.
            c.session = ensemble_.open_session();
            if (c.create_only) ensemble_.permit_create_only(c.session);
            while (ensemble_.lag(server) > 0) catch_up(server);
        }
        if (c.acquiring) c.acquiring->connected(c.session);
        if (c.erasing) c.erasing->connected(c.session);
        conclude(c);  // a hold that went with its session is not converted
        // The client sets its watches again: those whose nodes went meanwhile are told so.
        if (c.acquiring) rewatch(c);
        flush(c);
    }

    void rewatch(client& c)
    {
        if (!waiting_for_.count(&c)) return;
        auto const w = waiting_for_[&c];
        if (w.job != c.job) return;
        auto const r = ensemble_.process(c.server, c.session, {request::kind::data, w.path}, false);
        if (r.what == answer::ok)
            c.watches.push_back(w);
        else
            c.inbox.push_back({w.job, w.tag, {}, true, ensemble_.applied(c.server)});
    }

    void decide(client& c)
    {
        if (c.held && !c.acquiring && !c.erasing) {
            ++c.job;
            if (c.held_mode != access::sole && !calm() && random_.below(2) == 0) {
                c.mode = c.held_mode == access::shared ? access::exclusive : access::shared;
                c.acquiring =
                    std::make_unique<convert_recipe>(plan(false, true), naming::curator, c.mode, *c.held, c.token);
                c.acquiring->connected(c.session);
            } else {
                c.erasing.emplace(*c.held);
                c.held.reset();
                c.erasing->connected(c.session);
            }
        } else if (!c.held && !c.acquiring && !c.erasing && (!calm() || (c.wins == 0 && !c.create_only))) {
            ++c.job;
            c.mode = !shared_                ? access::sole
                     : random_.below(2) == 0 ? access::shared
                     : random_.below(3) == 0 ? access::sole
                                             : access::exclusive;
            c.acquiring = std::make_unique<sequential_recipe>(
                plan(c.create_only || random_.below(2) == 0, random_.below(5) == 0 && !calm()), naming::curator,
                c.mode);
            c.acquiring->connected(c.session);
        }
        flush(c);
    }

    acquire_plan plan(bool look_first, bool once)
    {
        return {.lock = "/l", .once = once, .look_first = look_first, .tokens = [this] {
                    return owner_token::from_bits(random_.next(), random_.next());
                }};
    }

    void flush(client& c)
    {
        auto const actions = c.acquiring ? c.acquiring->take_actions()
                             : c.erasing ? c.erasing->take_actions()
                                         : std::vector<action>{};
        for (auto const& one : actions) c.sent.push_back({c.job, one.tag, one.what});
    }

    /// Effects: the next request reaches its server.
    void arrive(client& c)
    {
        if (c.sent.empty()) return;
        if (!ensemble_.lives(c.session)) return cut(c);
        auto const next = c.sent.front();
        while (ensemble_.must_catch_up(c.server, next.what)) catch_up(c.server);
        auto const r = ensemble_.process(c.server, c.session, next.what, random_.below(4) == 0);
        while (is_write(next.what.what) && ensemble_.lag(c.server) > 0) catch_up(c.server);
        c.sent.pop_front();
        if (next.what.what == request::kind::watch && r.what == answer::ok)
            c.watches.push_back(waiting_for_[&c] = {next.job, next.tag, next.what.path});
        if (r.text.ends_with("-2147483648") || r.text.ends_with("2147483647")) ++v_.exhausted;
        c.inbox.push_back({next.job, next.tag, r, false, ensemble_.applied(c.server)});
    }

    /// Effects: the client reads the next answer or notice.
    void read(client& c)
    {
        if (c.inbox.empty()) return;
        auto const next = c.inbox.front();
        c.inbox.pop_front();
        c.seen = std::max(c.seen, next.seen);
        if (next.job != c.job) return;
        if (c.acquiring) {
            if (next.notice)
                c.acquiring->noticed(next.tag);
            else
                c.acquiring->answered(next.tag, next.answer);
        } else if (c.erasing && !next.notice) {
            c.erasing->answered(next.tag, next.answer);
        }
        conclude(c);
        if (c.connected) flush(c);
    }

    void conclude(client& c)
    {
        if (c.erasing && c.erasing->done()) c.erasing.reset();
        if (!c.acquiring || c.acquiring->now() == acquire_machine::phase::working) return;
        auto const one = std::move(c.acquiring);
        if (one->now() == acquire_machine::phase::failed) {
            if (one->why() == zookeeper::errc::may_not_read) ++v_.refused;
            if (c.held && one->why() == holdfast::errc::timed_out) ++v_.not_converted;
            if (one->left_something()) erase(c, one->what_is_left());
            if (c.connected) flush(c);
            return;
        }
        if (!ensemble_.lives(c.session)) return;  // granted too late: the lease is over
        ++v_.acquired;
        ++c.wins;
        auto const before = std::exchange(c.held, one->what_is_left());
        c.held_mode = c.mode;
        c.token = one->first_token();
        if (before) ++v_.converted;
        look_at_others(c);
        look_at_token(c.token, c.mode);
        note(c.token);
        if (before) erase(c, *before);
    }

    void erase(client& c, leftover const& what)
    {
        c.erasing.emplace(what);
        ++c.job;
        if (c.connected) c.erasing->connected(c.session);
    }

    void look_at_others(client const& c)
    {
        for (auto const& other : clients_) {
            if (&other == &c || !other.held) continue;
            if (c.held_mode != access::shared || other.held_mode != access::shared)
                breach("two clients have the lock that exclude each other");
            else
                ++v_.beside;
        }
    }

    void look_at_token(std::uint64_t first, access mode)
    {
        if (first <= (mode == access::shared ? last_of_writers_ : last_token_))
            breach("a fencing token is not greater than those before");
        auto const last = mode == access::sole ? first + tokens_of_a_node - 1 : first;
        last_token_ = std::max(last_token_, last);
        if (mode != access::shared) last_of_writers_ = last;
    }

    random_sequence random_;
    ensemble ensemble_;
    std::vector<client> clients_;
    std::map<client*, client::watch> waiting_for_;
    std::deque<client::message> lost_;
    std::deque<std::int64_t> abandoned_;  // sessions that the servers still keep
    std::uint64_t faults_until_ = 0;
    std::uint64_t fault_weight_ = 0;
    std::uint64_t step_ = 0;
    bool shared_ = false;
    std::uint64_t last_token_ = 0;
    std::uint64_t last_of_writers_ = 0;
    zookeeper_verdict v_;
};

}  // namespace

zookeeper_verdict run_zookeeper_schedule(std::uint64_t seed) { return world{seed}.run(); }

}  // namespace holdfast::test
