// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/commands.hpp>
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
#include <string_view>
#include <utility>

namespace holdfast::sim {

/// One connection of a client to a server, from its making to its end: messages keep their order, take their time, and get lost together
/// with all that are behind them; a server that hangs has them wait, and takes them in that order, too. Only a `repeated_request` keeps to no
/// order, the second time. Outlives its client's interest: what is under way may still arrive.
class wire : public std::enable_shared_from_this<wire> {
public:
    /// What the server says when the connection is made.
    struct greeting {
        std::chrono::microseconds time{};
        boot_clock::duration uptime{};
    };

    /// Whether a request may arrive a second time.
    enum class copies { none, possible };

    wire(host& client, network& servers, unsigned node) : client_{client}, servers_{servers}, node_{node} {}

    /// Effects: connects. `done` is called in the client with the greeting, or with nothing where the server refuses; or never.
    void open(std::function<void(std::optional<greeting>)> done)
    {
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

    /// Effects: sends a command. `done` is called in the client with the answer, or never. Where what is sent behind it counts on the order, there
    /// are no copies of it, which keep to none.
    void send(redis::command const& c, std::function<void(redis::answer const&)> const& done, copies more = copies::possible)
    {
        client_.stumble();
        if (strikes(decision::kind::cut, world().wrong().cut)) cut();
        auto const number = next_++;
        auto const arrives = leaves();
        if (!arrives) cut_from_ = std::min(cut_from_, number);
        if (!arrives) return;
        at_server(*arrives, number, [c, done](wire& self, node& server, boot_clock::time_point now) {
            auto const got = self.execute(c, server, now);
            if (got) self.reply([done, a = *got] { done(a); });
        });
        // A copy comes behind what was sent after it, on purpose, which nothing else here does; never before the request itself.
        if (more == copies::possible && strikes(decision::kind::repeated_request, world().wrong().repeated_request)) {
            at_server(*arrives + world().severity(world().wrong().very_late), number, [c](wire& self, node& server, boot_clock::time_point now) {
                static_cast<void>(self.execute(c, server, now));
            });
        }
    }

    /// Effects: has `noticed` called in the client when the connection breaks by itself.
    void on_cut(std::function<void()> noticed) { noticed_ = std::move(noticed); }

    /// Effects: the connection breaks: some of the requests under way still arrive, no answer does, and the client notices.
    void cut()
    {
        if (!intact_) return;
        world().note("connection breaks", client_.index(), node_);
        close();
        client_.at(client_.present() + delay(), [self = shared_from_this()] { std::exchange(self->noticed_, nullptr)(); });
    }

    /// Effects: the client does not use the connection any more. Some of the requests under way still arrive.
    void close()
    {
        intact_ = false;
        cut_from_ = std::min(cut_from_, next_ - std::min(next_, client_.below(4)));
    }

private:
    [[nodiscard]] sim::world& world() const noexcept { return client_.world(); }

    [[nodiscard]] boot_clock::duration delay() const { return world().delay(client_.index(), node_); }
    [[nodiscard]] bool strikes(decision::kind what, unsigned rate) const { return world().strikes(what, client_.index(), node_, rate); }

    /// Returns: when a request arrives that leaves now, behind those that left before; nothing where it is lost.
    std::optional<boot_clock::time_point> leaves()
    {
        if (strikes(decision::kind::lost_request, world().wrong().lost_request)) return {};
        return request_arrives_ = std::max(request_arrives_, client_.present() + delay());
    }

    /// Effects: has `f` called at the server when what arrives at `t` has its turn there, unless the request of that number is lost by then.
    template <class F>
    void at_server(boot_clock::time_point t, std::uint64_t number, F f)
    {
        world().at(t, [self = shared_from_this(), number, f = std::move(f)]() mutable {
            auto message = [w = self.get(), number, f = std::move(f)] {
                if (number < w->cut_from_) f(*w, w->servers_[w->node_], w->world().now());
            };
            self->inbox_.put(self->world(), std::move(message), [self] { return self->servers_[self->node_].hung_until(); });
        });
    }

    /// Effects: runs a command. Returns: the answer; none where the server that the connection was made to is gone.
    std::optional<redis::answer> execute(redis::command const& c, node& server, boot_clock::time_point now)
    {
        if (!server.running() || incarnation_ != server.incarnation()) return {};
        auto const got = server.execute(c, now);
        bool const yes = got.what == redis::answer::kind::yes;
        world().note(name(c.what, yes), client_.index(), node_, got.fence);
        if (c.what == redis::command::verb::release && yes) servers_.publish(node_, c.keys);
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
        case redis::command::verb::regain: return yes ? "regain: yes" : "regain: held";
        case redis::command::verb::release: return yes ? "release: yes" : "release: not ours";
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
};

}  // namespace holdfast::sim
