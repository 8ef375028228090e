// SPDX-License-Identifier: MIT
#pragma once

#include "zookeeper_servers.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/world.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_lease.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A handle of ZooKeeper's C client, over a simulated network: requests and answers keep their order; when the
/// connection breaks whatever has no answer is answered `lost`, and another server is tried; watches are set again
/// there. What is under way keeps it; it tells nothing any more when it was closed.
class zookeeper_handle : public std::enable_shared_from_this<zookeeper_handle> {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;
    using kind = sim::decision::kind;
    using events = zookeeper::transport_events;

    /// No server is reached until `cut_off_until`.
    zookeeper_handle(sim::host& me, zookeeper_servers& servers, events& to, time_point const& cut_off_until)
        : me_{me}, servers_{servers}, to_{to}, cut_off_until_{cut_off_until}
    {
    }

    void open()
    {
        me_.at(me_.present(), [self = shared_from_this()] { self->look_after(); });
    }

    /// Effects: tells nothing any more; the servers are not told.
    void close()
    {
        closed_ = true;
        under_way_.clear();
        watches_.clear();
        active_.clear();
        watches_of_children_.clear();
        notices_.clear();
        hang_up();
    }

    /// Returns: whether the request is under way. The removal of a watch whose answer has not come, or whose notice
    /// has, is not.
    bool send(zookeeper::request const& what, events::call& as)
    {
        me_.stumble();
        if (what.what == zookeeper::request::kind::unwatch && !active_.contains(what.path)) return false;
        as.to = &to_;
        as.what = what.what;
        under_way_.push_back({next_++, &as, what, me_.now()});
        if (state_ != state::up) {
            me_.at(me_.present(), [self = shared_from_this(), id = under_way_.back().id] { self->answer(id, {}, 0); });
        } else if (strikes(kind::cut, world().wrong().cut)) {
            cut();
        } else {
            transmit(under_way_.back());
        }
        return true;
    }

    /// Effects: the connection breaks, if there is one.
    void cut_off()
    {
        if (!closed_ && state_ != state::down) cut();
    }

    /// Effects: that server has applied a change: if it is watched, the client will be told. Returns: whether one waits
    /// for that there, and has not just begun or ended its wait.
    bool changed(unsigned server, ensemble::change const& what)
    {
        using kind_of_change = ensemble::change::kind;
        if (closed_ || state_ != state::up || server != link_->server) return false;
        bool told = false;
        auto const tell = [&](std::set<std::string>& watched, std::string const& path) {
            if (watched.erase(path) == 0) return;
            notify(watched, path);
            told = told || std::none_of(under_way_.begin(), under_way_.end(),
                                        [&](call const& one) { return one.what.path == path; });
        };
        // A client that has left is told, too, if its request to be told no more is still on the way.
        auto const folder = std::string{zookeeper::parent_of(what.path)};
        if (what.what != kind_of_change::made) tell(watches_, what.path);
        told = told && servers_.state().is_in(server, folder, session_);
        if (what.what == kind_of_change::removed) tell(watches_of_children_, what.path);
        if (what.what != kind_of_change::written) tell(watches_of_children_, folder);
        return told;
    }

private:
    enum class state : std::uint8_t { down, connecting, up };
    struct call {
        std::uint64_t id;
        events::call* as;
        zookeeper::request what;
        time_point sent;
    };
    /// One connection; what is under way on it may arrive after the client has given it up.
    struct link {
        unsigned server;
        std::int64_t session = 0;
        bool intact = true;
        bool mute = false;  ///< nothing arrives any more, and nobody knows
        bool deaf = false;  ///< no answer does
        bool busy = false;  ///< a request is at the leader; those behind it wait
        std::uint64_t arrives_below =
            std::numeric_limits<std::uint64_t>::max();  ///< of the requests, when it is broken
        time_point arrives{};
        time_point answers{};
        std::deque<std::pair<std::uint64_t, zookeeper::request>> inbox{};
    };
    using shared_link = std::shared_ptr<link>;
    /// What the client has not been told yet.
    struct notice {
        std::set<std::string>* watched;
        std::string path;
        std::uint64_t number;
    };

    [[nodiscard]] sim::world& world() const noexcept { return me_.world(); }
    [[nodiscard]] duration delay(link const& l) const { return world().delay(me_.index(), l.server); }
    [[nodiscard]] bool strikes(kind what, unsigned rate) const
    {
        return world().strikes(what, me_.index(), link_->server, rate);
    }

    /// Effects: every sixth of the timeout: connects where that is needed, gives a silent connection up.
    void look_after()
    {
        if (closed_) return;
        if (state_ == state::down) {
            connect();
        } else if (state_ == state::connecting) {
            if (me_.now() - opened_at_ > servers_.timeout() / 3) hang_up();
        } else if (!under_way_.empty() && me_.now() - under_way_.front().sent > servers_.timeout() * 2 / 3) {
            cut();
        }
        auto const interval =
            zookeeper::session_lease::interval(std::chrono::ceil<std::chrono::milliseconds>(servers_.timeout()));
        me_.at(me_.present() + interval, [self = shared_from_this()] { self->look_after(); });
    }

    void connect()
    {
        if (world().now() < cut_off_until_) return;
        state_ = state::connecting;
        opened_at_ = me_.now();
        link_ = std::make_shared<link>();
        link_->server = static_cast<unsigned>(me_.below(zookeeper_servers::count));
        link_->arrives = me_.present() + delay(*link_);
        world().at(link_->arrives, [self = shared_from_this(), l = link_] { self->greet(l); });
    }

    /// Effects: the client does not use the connection any more.
    void hang_up()
    {
        state_ = state::down;
        if (link_) link_->intact = false;
    }

    /// Effects: at the server, which asks the leader.
    void greet(shared_link const& l)
    {
        if (!l->intact) return;
        auto const self = shared_from_this();
        auto const t = std::max(servers_.hung_until(l->server), servers_.reaches_quorum(l->server));
        if (t > world().now()) return world().at(t, [self, l] { self->greet(l); });
        if (servers_.applied(l->server) < seen_) return;  // it would show the client its past
        bool const over = session_ != 0 && !servers_.state().lives(session_);
        l->session = session_ == 0 ? servers_.open_session(me_.index()) : session_;
        if (!over) servers_.touch(l->session);
        owners_[l->session] = l;
        servers_.when_applied(l->server, session_ == 0 ? servers_.decided() : 0, [self, l, over] {
            l->answers = std::max(l->answers, self->world().now() + self->delay(*l));
            self->me_.at(l->answers, [self, l, over] {
                if (l->intact) over ? self->expired() : self->up(l->session);
            });
        });
    }

    void up(std::int64_t id)
    {
        state_ = state::up;
        if (session_ == 0) world().note("session begins", me_.index(), link_->server, static_cast<std::uint64_t>(id));
        session_ = id;
        // Watches are set again, also those whose notice was lost: of nodes that are gone, or have other children,
        // meanwhile the client is told.
        for (auto const& one : std::exchange(notices_, {})) one.watched->insert(one.path);
        for (auto const& one : std::exchange(watches_, {})) {
            zookeeper::request const look{zookeeper::request::kind::data, one};
            if (servers_.state().process(link_->server, session_, look, false).what == zookeeper::answer::ok)
                watches_.insert(one);
            else
                notify(watches_, one);
        }
        for (auto const& one : std::exchange(watches_of_children_, {}))
            if (servers_.state().children_changed(link_->server, one, seen_))
                notify(watches_of_children_, one);
            else
                watches_of_children_.insert(one);
        to_.on_state(events::state::connected, session_,
                     std::chrono::floor<std::chrono::milliseconds>(servers_.timeout()));
    }

    void expired()
    {
        world().note("learns that its session is over", me_.index(), link_->server,
                     static_cast<std::uint64_t>(session_));
        hang_up();
        watches_.clear();
        active_.clear();
        watches_of_children_.clear();
        notices_.clear();
        to_.on_state(events::state::expired, session_, {});
    }

    /// Effects: the connection breaks: of what is under way to the server a part arrives, no answer comes. The user is
    /// told behind what it does now.
    void cut()
    {
        world().note("connection breaks", me_.index(), link_->server);
        link_->arrives_below = next_ - std::min<std::uint64_t>(under_way_.size(), me_.below(4));
        bool const was_up = state_ == state::up;
        hang_up();
        auto const self = shared_from_this();
        if (was_up)
            me_.at(me_.present(), [self] {
                if (!self->closed_ && self->state_ != state::up)
                    self->to_.on_state(events::state::suspended, self->session_, {});
            });
        for (auto const& one : under_way_)
            me_.at(me_.present() + world().wrong().shortest_delay, [self, id = one.id] { self->answer(id, {}, 0); });
    }

    void transmit(call const& one)
    {
        if (strikes(kind::lost_request, world().wrong().lost_request)) link_->mute = true;
        if (link_->mute) return;
        link_->arrives = std::max(link_->arrives, me_.present() + delay(*link_));
        world().at(link_->arrives,
                   [self = shared_from_this(), l = link_, id = one.id, what = one.what] { self->arrive(l, id, what); });
    }

    void arrive(shared_link const& l, std::uint64_t id, zookeeper::request const& what)
    {
        l->inbox.emplace_back(id, what);
        serve(l);
    }

    /// Effects: at the server: the requests of a connection are done in their order, each when the one before it has
    /// been answered.
    void serve(shared_link const& l)
    {
        if (!l->inbox.empty() && servers_.hangs(l->server))
            return world().at(servers_.hung_until(l->server), [self = shared_from_this(), l] { self->serve(l); });
        while (!l->busy && !l->inbox.empty()) {
            auto const [id, what] = l->inbox.front();
            l->inbox.pop_front();
            if (!l->intact && id >= l->arrives_below) continue;
            if (!servers_.state().lives(l->session)) return refuse(l);
            servers_.hear(l->server, l->session);
            if (servers_.postpones(me_.index(), l->server)) {
                reply(l, id, {zookeeper::answer::postponed, zookeeper::errc::throttled}, what);
                continue;
            }
            if (!zookeeper::is_write(what.what)) {
                reply(l, id, servers_.state().process(l->server, l->session, what, false), what);
                continue;
            }
            l->busy = true;
            servers_.say(l->server,
                         [self = shared_from_this(), l, id = id, what = what] { self->ask_leader(l, id, what); });
        }
    }

    void ask_leader(shared_link const& l, std::uint64_t id, zookeeper::request const& what)
    {
        auto const t = servers_.reaches_quorum(l->server);
        if (t > world().now())
            return world().at(t, [self = shared_from_this(), l, id, what] { self->ask_leader(l, id, what); });
        if (!servers_.state().lives(l->session)) return refuse(l);
        if (l != owners_[l->session]) return;  // the session has moved: the leader refuses what comes another way
        auto const r = servers_.decide(l->server, l->session, what, me_.below(4) == 0);
        world().note(name(what.what, r.what), me_.index(), l->server, static_cast<std::uint64_t>(r.stat.czxid));
        servers_.answer(l->server, [self = shared_from_this(), l, id, r, what] {
            l->busy = false;
            self->reply(l, id, r, what);
            self->serve(l);
        });
    }

    /// Effects: the server closes the connection of a session that is over.
    void refuse(shared_link const& l)
    {
        l->inbox.clear();
        me_.at(world().now() + delay(*l), [self = shared_from_this(), l] {
            if (l->intact && self->state_ == state::up) self->cut();
        });
    }

    void reply(shared_link const& l, std::uint64_t id, zookeeper::reply const& r, zookeeper::request const& what)
    {
        if (!l->intact || l->deaf) return;
        bool const ok = r.what == zookeeper::answer::ok;
        if (ok && what.what == zookeeper::request::kind::watch) watches_.insert(what.path);
        if (ok && what.what == zookeeper::request::kind::watch_children) watches_of_children_.insert(what.path);
        if (strikes(kind::lost_reply, world().wrong().lost_reply)) {
            l->deaf = true;
            return;
        }
        if (ok && what.what == zookeeper::request::kind::unwatch) {
            watches_.erase(what.path);
            watches_of_children_.erase(what.path);
        }
        l->answers = std::max(l->answers, world().now() + delay(*l));
        me_.at(l->answers, [self = shared_from_this(), l, id, r, seen = servers_.applied(l->server)] {
            if (l->intact) self->answer(id, r, seen);
        });
    }

    void answer(std::uint64_t id, zookeeper::reply r, std::size_t seen)
    {
        auto const found =
            std::find_if(under_way_.begin(), under_way_.end(), [id](call const& c) { return c.id == id; });
        if (found == under_way_.end()) return;
        auto const one = std::move(*found);
        under_way_.erase(found);
        seen_ = std::max(seen_, seen);
        if (r.what == zookeeper::answer::ok) {
            if (zookeeper::sets_watch(one.what.what)) active_.insert(one.what.path);
            if (one.what.what == zookeeper::request::kind::unwatch) active_.erase(one.what.path);
        }
        to_.on_reply(*one.as, std::move(r));
    }

    /// Effects: the client is told of the end of its watch, which was one of `watched`. It keeps its watches until it is
    /// told. Source: `zoo_awget`, and `send_set_watches` of the C client 3.8.
    void notify(std::set<std::string>& watched, std::string const& path)
    {
        notices_.push_back({&watched, path, ++noticed_});
        if (link_->deaf) return;
        link_->answers = std::max(link_->answers, world().now() + delay(*link_));
        me_.at(link_->answers, [self = shared_from_this(), l = link_, path, number = noticed_] {
            if (!l->intact) return;
            std::erase_if(self->notices_, [number](notice const& one) { return one.number == number; });
            self->active_.erase(path);
            self->to_.on_notice(path);
        });
    }

    [[nodiscard]] static std::string_view name(zookeeper::request::kind k, zookeeper::answer a) noexcept
    {
        using enum zookeeper::request::kind;
        bool const ok = a == zookeeper::answer::ok;
        switch (k) {
        case create_sequential:
        case create_plain: return ok ? "create: made" : "create: not made";
        case create_container: return ok ? "container: made" : "container: not made";
        case create_persistent: return ok ? "node that stays: made" : "node that stays: not made";
        case write: return ok ? "write: done" : "write: no such node";
        case erase: return ok ? "delete: done" : "delete: gone already";
        default: return "confirms its session";
        }
    }

    sim::host& me_;
    zookeeper_servers& servers_;
    events& to_;
    time_point const& cut_off_until_;
    bool closed_ = false;
    state state_ = state::down;
    shared_link link_;
    std::map<std::int64_t, shared_link> owners_;  ///< over which the leader knows each session to come
    std::int64_t session_ = 0;
    time_point opened_at_{};
    std::size_t seen_ = 0;
    std::uint64_t next_ = 1;
    std::deque<call> under_way_;
    std::set<std::string> watches_;  ///< at the server
    std::set<std::string> watches_of_children_;
    std::set<std::string> active_;  ///< as this client knows
    std::vector<notice> notices_;   ///< under way, or lost
    std::uint64_t noticed_ = 0;
};

}  // namespace holdfast::test
