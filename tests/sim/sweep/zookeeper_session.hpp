// SPDX-License-Identifier: MIT
#pragma once

#include "zookeeper_servers.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What a session tells whoever uses it.
class session_listener {
public:
    virtual void on_answer(unsigned tag, zookeeper::reply const& r) = 0;
    virtual void on_notice(unsigned tag) = 0;
    virtual void on_connected(std::int64_t session) = 0;
    virtual void on_expired() = 0;
    virtual ~session_listener() = default;
};

/// A session of one process, as ZooKeeper's C client keeps one up, over a simulated network: requests and answers keep their order; when the
/// connection breaks whatever has no answer is answered `lost`, and another server is tried; watches are set again there. By its answers it
/// keeps the shipped `session_lease`.
class zookeeper_session {
public:
    using time_point = boot_clock::time_point;
    using duration = boot_clock::duration;
    using kind = sim::decision::kind;

    zookeeper_session(sim::host& me, zookeeper_servers& servers) : me_{me}, servers_{servers} { look_after(); }

    [[nodiscard]] bool connected() const noexcept { return state_ == state::up; }
    [[nodiscard]] std::int64_t session() const noexcept { return session_; }
    [[nodiscard]] zookeeper::session_lease const& lease() const noexcept { return lease_; }

    void attach(session_listener& who)
    {
        listeners_.push_back(&who);
        if (connected()) who.on_connected(session_);
    }
    void detach(session_listener& who)
    {
        std::erase(listeners_, &who);
        for (auto& one : under_way_)
            if (one.from == &who) one.from = nullptr;
        std::erase_if(watches_, [&](watch const& w) { return w.from == &who; });
    }

    void send(session_listener* from, unsigned tag, zookeeper::request const& what)
    {
        me_.stumble();
        last_sent_ = me_.now();
        under_way_.push_back({next_++, from, tag, what, last_sent_});
        if (!connected()) {
            me_.at(me_.present(), [this, id = under_way_.back().id] { answer(id, {}, 0); });
            return;
        }
        if (strikes(kind::cut, world().wrong().cut)) cut();
        if (!connected()) return;
        transmit(under_way_.back());
    }

    /// Effects: shows that the session lives; to a quorum, where that has to answer.
    void show_life(bool to_quorum)
    {
        if (connected()) send(nullptr, 0, {to_quorum ? zookeeper::request::kind::confirm : zookeeper::request::kind::touch});
    }

    /// Effects: no server is reached for a while.
    void cut_off(duration d)
    {
        cut_off_until_ = std::max(cut_off_until_, world().now() + d);
        if (state_ != state::down) cut();
    }

    /// Effects: the process is killed, and another one begins in its place, in a session of its own.
    void die()
    {
        listeners_.clear();
        under_way_.clear();
        watches_.clear();
        hang_up();
        session_ = 0;
        seen_ = 0;
        lease_.end();
    }

    /// Effects: the node at `path` is gone at that server: whoever watches it will be told.
    void gone(unsigned server, std::string const& path)
    {
        if (!connected() || server != link_->server) return;
        for (auto const& one : watches_)
            if (one.path == path) notify(one);
        std::erase_if(watches_, [&](watch const& w) { return w.path == path; });
    }

private:
    enum class state : std::uint8_t { down, connecting, up };
    struct call {
        std::uint64_t id;
        session_listener* from;
        unsigned tag;
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
        std::uint64_t arrives_below = std::numeric_limits<std::uint64_t>::max();  ///< of the requests, when it is broken
        time_point arrives{};
        time_point answers{};
        std::deque<std::pair<std::uint64_t, zookeeper::request>> inbox{};
    };
    using shared_link = std::shared_ptr<link>;

    struct watch {
        session_listener* from;
        unsigned tag;
        std::string path;
    };

    [[nodiscard]] sim::world& world() const noexcept { return me_.world(); }
    [[nodiscard]] duration delay(link const& l) const { return world().delay(me_.index(), l.server); }
    [[nodiscard]] bool strikes(kind what, unsigned rate) const { return world().strikes(what, me_.index(), link_->server, rate); }

    [[nodiscard]] static bool is_write(zookeeper::request::kind k) noexcept
    {
        using enum zookeeper::request::kind;
        return k == create_sequential || k == create_plain || k == create_container || k == erase || k == confirm;
    }

    /// Effects: every eighth of the timeout: connects where that is needed, gives a silent connection up, touches the session.
    void look_after()
    {
        auto const interval = zookeeper::session_lease::interval(std::chrono::ceil<std::chrono::milliseconds>(servers_.timeout()));
        me_.at(me_.present() + interval, [this, interval] {
            if (state_ == state::down) {
                connect();
            } else if (state_ == state::connecting) {
                if (me_.now() - opened_at_ > servers_.timeout() / 3) hang_up();
            } else if (!under_way_.empty() && me_.now() - under_way_.front().sent > servers_.timeout() * 2 / 3) {
                cut();
            } else if (me_.now() - last_sent_ >= interval) {
                show_life(false);
            }
            look_after();
        });
    }

    void connect()
    {
        if (world().now() < cut_off_until_) return;
        state_ = state::connecting;
        opened_at_ = me_.now();
        link_ = std::make_shared<link>();
        link_->server = static_cast<unsigned>(me_.below(zookeeper_servers::count));
        link_->arrives = me_.present() + delay(*link_);
        world().at(link_->arrives, [this, l = link_] { greet(l); });
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
        auto const t = std::max(servers_.hung_until(l->server), servers_.reaches_quorum(l->server));
        if (t > world().now()) return world().at(t, [this, l] { greet(l); });
        if (servers_.applied(l->server) < seen_) return;  // it would show the client its past
        bool const over = session_ != 0 && !servers_.state().lives(session_);
        l->session = session_ == 0 ? servers_.open_session() : session_;
        if (!over) servers_.touch(l->session);
        owners_[l->session] = l;
        servers_.when_applied(l->server, session_ == 0 ? servers_.decided() : 0, [this, l, over] {
            l->answers = std::max(l->answers, world().now() + delay(*l));
            me_.at(l->answers, [this, l, over] {
                if (l->intact) over ? expired() : up(l->session);
            });
        });
    }

    void up(std::int64_t id)
    {
        state_ = state::up;
        last_sent_ = me_.now();
        if (id != session_) {
            session_ = id;
            lease_.begin(opened_at_, std::chrono::floor<std::chrono::milliseconds>(servers_.timeout()));
            last_answered_ = opened_at_;
            world().note("session begins", me_.index(), link_->server, static_cast<std::uint64_t>(id));
        } else {
            lease_.reconnected(last_answered_);
        }
        // Watches are set again: of nodes that are gone meanwhile the client is told.
        auto const before = std::exchange(watches_, {});
        for (auto const& one : before) {
            if (servers_.state().process(link_->server, session_, {zookeeper::request::kind::data, one.path}, false).what == zookeeper::answer::ok)
                watches_.push_back(one);
            else
                notify(one);
        }
        tell([this](session_listener& l) { l.on_connected(session_); });
    }

    void expired()
    {
        world().note("learns that its session is over", me_.index(), link_->server, static_cast<std::uint64_t>(session_));
        hang_up();
        session_ = 0;
        lease_.end();
        watches_.clear();
        tell([](session_listener& l) { l.on_expired(); });
    }

    template <class F>
    void tell(F f)
    {
        auto const all = listeners_;
        for (auto* const one : all)
            if (std::find(listeners_.begin(), listeners_.end(), one) != listeners_.end()) f(*one);
    }

    /// Effects: the connection breaks: of what is under way to the server a part arrives, no answer comes.
    void cut()
    {
        world().note("connection breaks", me_.index(), link_->server);
        link_->arrives_below = next_ - std::min<std::uint64_t>(under_way_.size(), me_.below(4));
        hang_up();
        for (auto const& one : under_way_) me_.at(me_.present() + world().wrong().shortest_delay, [this, id = one.id] { answer(id, {}, 0); });
    }

    void transmit(call const& one)
    {
        if (strikes(kind::lost_request, world().wrong().lost_request)) link_->mute = true;
        if (link_->mute) return;
        link_->arrives = std::max(link_->arrives, me_.present() + delay(*link_));
        world().at(link_->arrives, [this, l = link_, id = one.id, what = one.what] { arrive(l, id, what); });
    }

    void arrive(shared_link const& l, std::uint64_t id, zookeeper::request const& what)
    {
        l->inbox.emplace_back(id, what);
        serve(l);
    }

    /// Effects: at the server: the requests of a connection are done in their order, each when the one before it has been answered.
    void serve(shared_link const& l)
    {
        if (!l->inbox.empty() && servers_.hangs(l->server)) return world().at(servers_.hung_until(l->server), [this, l] { serve(l); });
        while (!l->busy && !l->inbox.empty()) {
            auto const [id, what] = l->inbox.front();
            l->inbox.pop_front();
            if (!l->intact && id >= l->arrives_below) continue;
            if (!servers_.state().lives(l->session)) return refuse(l);
            servers_.hear(l->server, l->session);
            if (!is_write(what.what)) {
                reply(l, id, servers_.state().process(l->server, l->session, what, false), what);
                continue;
            }
            l->busy = true;
            servers_.say(l->server, [this, l, id = id, what = what] { ask_leader(l, id, what); });
        }
    }

    void ask_leader(shared_link const& l, std::uint64_t id, zookeeper::request const& what)
    {
        auto const t = servers_.reaches_quorum(l->server);
        if (t > world().now()) return world().at(t, [=, this] { ask_leader(l, id, what); });
        if (!servers_.state().lives(l->session)) return refuse(l);
        if (l != owners_[l->session]) return;  // the session has moved: the leader refuses what comes another way
        auto const r = servers_.decide(l->server, l->session, what, me_.below(4) == 0);
        world().note(name(what.what, r.what), me_.index(), l->server, static_cast<std::uint64_t>(r.stat.czxid));
        servers_.answer(l->server, [=, this] {
            l->busy = false;
            reply(l, id, r, what);
            serve(l);
        });
    }

    /// Effects: the server closes the connection of a session that is over.
    void refuse(shared_link const& l)
    {
        l->inbox.clear();
        me_.at(world().now() + delay(*l), [this, l] {
            if (l->intact && state_ == state::up) cut();
        });
    }

    void reply(shared_link const& l, std::uint64_t id, zookeeper::reply const& r, zookeeper::request const& what)
    {
        if (!l->intact || l->deaf) return;
        if (what.what == zookeeper::request::kind::watch && r.what == zookeeper::answer::ok)
            for (auto const& one : under_way_)
                if (one.id == id && one.from) watches_.push_back({one.from, one.tag, what.path});
        if (strikes(kind::lost_reply, world().wrong().lost_reply)) {
            l->deaf = true;
            return;
        }
        l->answers = std::max(l->answers, world().now() + delay(*l));
        me_.at(l->answers, [this, l, id, r, seen = servers_.applied(l->server)] {
            if (l->intact) answer(id, r, seen);
        });
    }

    void answer(std::uint64_t id, zookeeper::reply const& r, std::size_t seen)
    {
        auto const found = std::find_if(under_way_.begin(), under_way_.end(), [id](call const& c) { return c.id == id; });
        if (found == under_way_.end()) return;
        auto const one = std::move(*found);
        under_way_.erase(found);
        seen_ = std::max(seen_, seen);
        if (r.what != zookeeper::answer::lost) {
            lease_.answered(one.sent, me_.now(), is_write(one.what.what));
            last_answered_ = std::max(last_answered_, one.sent);
        }
        if (one.from) one.from->on_answer(one.tag, r);
    }

    void notify(watch const& w)
    {
        if (link_->deaf) return;
        link_->answers = std::max(link_->answers, world().now() + delay(*link_));
        me_.at(link_->answers, [this, l = link_, w] {
            if (l->intact && std::find(listeners_.begin(), listeners_.end(), w.from) != listeners_.end()) w.from->on_notice(w.tag);
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
        case erase: return ok ? "delete: done" : "delete: gone already";
        default: return "confirms its session";
        }
    }

    sim::host& me_;
    zookeeper_servers& servers_;
    state state_ = state::down;
    shared_link link_;
    std::map<std::int64_t, shared_link> owners_;  ///< over which the leader knows each session to come
    std::int64_t session_ = 0;
    zookeeper::session_lease lease_;
    time_point opened_at_{};
    time_point last_sent_{};
    time_point last_answered_{};
    std::size_t seen_ = 0;
    std::uint64_t next_ = 1;
    time_point cut_off_until_{};
    std::deque<call> under_way_;
    std::vector<watch> watches_;
    std::vector<session_listener*> listeners_;
};

}  // namespace holdfast::test
