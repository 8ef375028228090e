// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/subscriptions.hpp>
#include <holdfast/sim/decision.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/inbox.hpp>
#include <holdfast/sim/network.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// One connection of a client to a server, from beginning to end. Messages keep their order, take their time, and get
/// lost together with all that come after them. If the server hangs they wait, and are then taken in order, too. Only
/// the second copy of a `repeated_request` keeps no order. It may outlive its client's interest: what is in flight may
/// still arrive.
class wire final : public network::peer, public std::enable_shared_from_this<wire> {
public:
    /// What the server says when the connection is made.
    struct greeting {
        std::chrono::microseconds time{};
        boot_clock::duration uptime{};
    };

    /// Whether a request may arrive a second time.
    enum class copies { none, possible };

    wire(host& client, network& servers, unsigned node) : client_{client}, servers_{servers}, node_{node} {}

    /// Effects: connects. Calls `done` in the client with the greeting, or with nothing if the server refuses; or
    /// never.
    void open(std::function<void(std::optional<greeting>)> done)
    {
        servers_.join(shared_from_this());
        auto const arrives = leaves();
        if (!arrives) return;
        at_server(*arrives, next_++, [done = std::move(done)](wire& self, node& server, boot_clock::time_point now) {
            std::optional<greeting> said;
            if (server.running()) {
                self.incarnation_ = server.incarnation();
                said = greeting{server.time(now), server.uptime(now)};
            }
            self.reply([done, said] { done(said); });
        });
    }

    /// Effects: sends a command, with those that are asked for together with it, as `form`. Calls `done` in the client
    /// with the answer to each, in turn, or never. If what is sent after it relies on the order, there must be no
    /// copies, which keep none.
    void send(redis::command const& c, std::function<void(redis::answer const&)> const& done,
              copies more = copies::possible, redis::script_form form = redis::script_form::by_text)
    {
        // Who leaves the queue because it has the lock has judged the lease; as in `ask`.
        if (c.what != redis::command::verb::leave) client_.stumble();
        auto const number = next_;
        std::vector<redis::command> all;
        for (auto const* one = &c; one; one = one->also) {
            all.push_back(*one);
            all.back().together = c.together;  // they are of one script
        }
        auto const arrives = request([all, form, done](wire& self, node& server, boot_clock::time_point now) {
            auto const got = self.execute(all, form, server, now);
            if (got.empty()) return;
            self.reply([&self, done, got] {
                for (auto const& a : got)
                    if (self.intact_) done(a);
            });
        });
        // A copy may come after what was sent later, on purpose, as nothing else here does; but never before the
        // request.
        if (arrives && more == copies::possible &&
            strikes(decision::kind::repeated_request, world().wrong().repeated_request)) {
            at_server(*arrives + world().severity(world().wrong().very_late), number,
                      [all, form](wire& self, node& server, boot_clock::time_point now) {
                          static_cast<void>(self.execute(all, form, server, now));
                      });
        }
    }

    /// Effects: asks for what is published on `channel`, or for no more of it. Calls `done` in the client when the
    /// server has done so, or never. Unlike in `send`, the client does not stand still: it may be in the middle of a
    /// step that has judged a lease.
    void ask(redis::subscriptions::verb what, std::string const& channel, std::function<void()> const& done)
    {
        request([what, channel, done](wire& self, node& server, boot_clock::time_point) {
            if (!self.reaches(server)) return;
            if (what == redis::subscriptions::verb::subscribe)
                self.channels_.insert(channel);
            else
                self.channels_.erase(channel);
            self.reply(done);
        });
    }

    /// Effects: calls `told` in the client with the channel and the text of each message that was asked for.
    void on_message(std::function<void(std::string const&, std::string const&)> told) { told_ = std::move(told); }

    /// Effects: calls `noticed` in the client when the connection breaks by itself.
    void on_cut(std::function<void()> noticed) { noticed_ = std::move(noticed); }

    /// Effects: the connection breaks: some of the requests in flight still arrive, no answer does, and the client
    /// notices.
    void cut()
    {
        if (!intact_) return;
        world().note("connection breaks", client_.index(), node_);
        close();
        client_.at(client_.present() + delay(),
                   [self = shared_from_this()] { std::exchange(self->noticed_, nullptr)(); });
    }

    /// Effects: the client no longer uses the connection. Some of the requests in flight still arrive.
    void close()
    {
        intact_ = false;
        cut_from_ = std::min(cut_from_, next_ - std::min(next_, client_.below(4)));
    }

    void on_crash(unsigned node) override
    {
        if (node == node_) cut();
    }

    bool on_publish(unsigned node, std::string const& channel, std::string const& text) override
    {
        if (node != node_ || !intact_ || !channels_.contains(channel)) return false;
        if (!strikes(decision::kind::lost_report, world().wrong().lost_report))
            reply([this, channel, text] { told_(channel, text); });
        return true;
    }

private:
    [[nodiscard]] sim::world& world() const noexcept { return client_.world(); }

    [[nodiscard]] boot_clock::duration delay() const { return world().delay(client_.index(), node_); }
    [[nodiscard]] bool strikes(decision::kind what, unsigned rate) const
    {
        return world().strikes(what, client_.index(), node_, rate);
    }

    /// Returns: when a request that leaves now arrives, after those that left before; nothing if it is lost.
    std::optional<boot_clock::time_point> leaves()
    {
        if (strikes(decision::kind::lost_request, world().wrong().lost_request)) return {};
        return request_arrives_ = std::max(request_arrives_, client_.present() + delay());
    }

    /// Effects: a request leaves; `f` is called at the server. Returns: when it arrives there; nothing if it is lost.
    template <class F>
    std::optional<boot_clock::time_point> request(F f)
    {
        if (strikes(decision::kind::cut, world().wrong().cut)) cut();
        auto const number = next_++;
        auto const arrives = leaves();
        if (arrives)
            at_server(*arrives, number, std::move(f));
        else
            cut_from_ = std::min(cut_from_, number);
        return arrives;
    }

    /// Effects: calls `f` at the server when it is the turn of what arrives at `t`, unless the request of that number
    /// is lost by then.
    template <class F>
    void at_server(boot_clock::time_point t, std::uint64_t number, F f)
    {
        world().at(t, [self = shared_from_this(), number, f = std::move(f)]() mutable {
            auto message = [w = self.get(), number, f = std::move(f)] {
                if (number < w->cut_from_) f(*w, w->servers_[w->node_], w->world().now());
            };
            self->inbox_.put(self->world(), std::move(message),
                             [self] { return self->servers_[self->node_].hung_until(); });
        });
    }

    /// Returns: whether the server that the connection was made to is there.
    [[nodiscard]] bool reaches(node const& server) const noexcept
    {
        return server.running() && incarnation_ == server.incarnation();
    }

    /// Effects: runs a command. Returns: the answer; none if the server that the connection was made to is gone.
    std::optional<redis::answer> execute(redis::command const& c, redis::script_form form, node& server,
                                         boot_clock::time_point now)
    {
        if (!reaches(server)) return {};
        auto const call = [&](redis::waiter_id const& w, redis::shared_keys const& of) {
            redis::waiter_text const text{w};
            return servers_.publish(node_, "holdfast:wake:" + std::string{text.inbox()},
                                    std::string{text.view().substr(text.inbox().size())} + " " + of->lock);
        };
        auto const got = server.execute(c, now, call, {client_.index(), form});
        bool const yes = got.what == redis::answer::kind::applied;
        world().note(got.error ? "refuses" : name(c.what, yes), client_.index(), node_, got.fence);
        if (server.told_all()) servers_.publish(node_, c.keys->channel().text());
        return got;
    }

    /// Returns: the answers to all; none, if there is no reply. An error is the answer to all.
    std::vector<redis::answer> execute(std::vector<redis::command> const& all, redis::script_form form, node& server,
                                       boot_clock::time_point now)
    {
        std::vector<redis::answer> got;
        for (auto const& c : all) {
            auto const one = execute(c, form, server, now);
            if (!one) return {};
            if (one->error) return {all.size(), *one};
            got.push_back(*one);
        }
        return got;
    }

    template <class F>
    void reply(F f)
    {
        if (!intact_ || deaf_) return;
        if (strikes(decision::kind::lost_reply, world().wrong().lost_reply)) {
            deaf_ = true;
            return;
        }
        reply_arrives_ = std::max(reply_arrives_, world().now() + delay());
        client_.at(reply_arrives_, [self = shared_from_this(), f = std::move(f)] {
            if (self->intact_) f();
        });
    }

    [[nodiscard]] static std::string_view name(redis::command::verb v, bool yes) noexcept
    {
        switch (v) {
        case redis::command::verb::acquire: return yes ? "acquire: yes, fence" : "acquire: held";
        case redis::command::verb::confirm: return yes ? "confirm: yes" : "confirm: no";
        case redis::command::verb::extend: return yes ? "extend: yes" : "extend: not ours";
        case redis::command::verb::reacquire: return yes ? "reacquire: yes" : "reacquire: held";
        case redis::command::verb::release: return yes ? "release: yes" : "release: not ours";
        case redis::command::verb::leave: return yes ? "leave: the lock is free" : "leave";
        case redis::command::verb::acquire_all: return yes ? "acquire all: yes" : "acquire all: held";
        default: break;
        }
        return "?";
    }

    host& client_;
    network& servers_;
    unsigned node_;
    unsigned incarnation_ = 0;
    bool intact_ = true;
    bool deaf_ = false;
    std::uint64_t next_ = 0;
    std::uint64_t cut_from_ = std::numeric_limits<std::uint64_t>::max();
    boot_clock::time_point request_arrives_{};
    boot_clock::time_point reply_arrives_{};
    inbox inbox_;
    std::function<void()> noticed_;
    std::set<std::string> channels_;  ///< subscribed to
    std::function<void(std::string const&, std::string const&)> told_;
};

}  // namespace holdfast::sim
