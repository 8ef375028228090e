// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/admission.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/transport.hpp>
#include <holdfast/redis/votes.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/wire.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::sim {

/// The way of one client to one node: connects when there is something to send, and again after a connection is lost.
///
/// | state      | left by |
/// |------------|---------|
/// | down       | send, a moment after the last failure → connecting |
/// | connecting | greeting → up, what waited is sent; refused, or no greeting in time → down |
/// | up         | cut, crash; give_up, where nothing was answered since that was sent → down |
class channel {
public:
    channel(host& client, network& servers, redis::admission& admitted, unsigned node, std::chrono::milliseconds connect_timeout,
            std::chrono::milliseconds fence_lifetime)
        : client_{client}, servers_{servers}, admitted_{admitted}, node_{node}, connect_timeout_{connect_timeout}, fence_lifetime_{fence_lifetime}
    {
    }

    [[nodiscard]] bool up() const noexcept { return state_ == state::up; }

    /// Effects: see `redis::Transport`.
    std::error_code send(redis::command const& c, redis::listener* whom)
    {
        if (c.what == redis::command::verb::release) redis::votes::released(c, node_);
        auto const why = connect();
        if (why && whom) return why;
        entries_.push_back({.id = next_id_++, .what = c, .whom = whom});
        if (c.what == redis::command::verb::regain && state_ != state::up) entries_.back().what.what = redis::command::verb::extend;
        if (state_ == state::up) transmit(entries_.back());
        return {};
    }

    void forget(redis::listener* whom)
    {
        for (auto e = entries_.begin(); e != entries_.end(); ++e)
            if (e->whom == whom) {
                e->whom = nullptr;
                if (!e->sent && redis::asks_for_vote(e->what)) entries_.erase(e);
                return;
            }
    }

    void give_up(redis::listener* whom)
    {
        auto const e = std::find_if(entries_.begin(), entries_.end(), [whom](entry const& one) { return one.whom == whom; });
        bool const silent = e != entries_.end() && e->sent && answered_ <= e->left;
        forget(whom);
        if (silent) drop();
    }

    /// Effects: ends the connection, where there is one.
    void drop()
    {
        if (state_ == state::up) down(redis::errc::connection_lost);
    }

    /// Effects: the node is gone; the client will notice.
    void on_crash()
    {
        if (wire_) wire_->cut();
    }

    /// Effects: begins to connect where there is no connection.
    /// Returns: why that cannot be done now.
    std::error_code connect()
    {
        if (state_ != state::down) return {};
        if (client_.present() < not_before_) return redis::errc::cannot_connect;
        state_ = state::connecting;
        since_ = client_.now();
        wire_ = std::make_shared<wire>(client_, servers_, node_);
        auto const mine = ++generation_;
        wire_->on_cut([this, mine] {
            if (mine == generation_) down(state_ == state::up ? redis::errc::connection_lost : redis::errc::cannot_connect);
        });
        wire_->open([this, mine](std::optional<wire::greeting> g) {
            if (mine != generation_) return;
            if (g)
                on_greeting(*g);
            else
                down(redis::errc::cannot_connect);
        });
        client_.at(client_.present() + connect_timeout_, [this, mine] {
            if (mine == generation_ && state_ == state::connecting) down(redis::errc::cannot_connect);
        });
        return {};
    }

private:
    enum class state : std::uint8_t { down, connecting, up };

    struct entry {
        std::uint64_t id = 0;
        redis::command what{};
        redis::listener* whom = nullptr;
        boot_clock::time_point left{};  ///< when it was sent, on the client's clock
        bool sent = false;              ///< over the connection that there is
        bool written = false;           ///< over any
        bool undoes = false;            ///< what was asked for and not answered: it is sent ahead of another asking
        std::error_code failed{};

        [[nodiscard]] bool rolls_back() const noexcept { return !whom && what.what == redis::command::verb::release; }
    };

    static constexpr std::chrono::milliseconds pause_after_refusal{5};

    void transmit(entry& e)
    {
        e.sent = e.written = true;
        e.left = client_.now();
        if (e.what.what == redis::command::verb::regain && !redis::votes::may_regain(e.what, node_)) e.what.what = redis::command::verb::extend;
        e.what.floor = admitted_.floor(node_);
        e.what.fence_lifetime = fence_lifetime_;
        wire_->send(e.what, [this, mine = generation_, id = e.id](redis::answer const& a) {
            if (mine == generation_) answer(id, a);
        }, e.undoes ? wire::copies::none : wire::copies::possible);
    }

    void answer(std::uint64_t id, redis::answer const& a)
    {
        auto const e = std::find_if(entries_.begin(), entries_.end(), [id](entry const& one) { return one.id == id; });
        if (e == entries_.end()) return;
        auto* const whom = e->whom;
        if (!e->failed) answered_ = client_.now();
        if (!e->failed) redis::votes::note(e->what, node_, a);
        entries_.erase(e);
        if (whom) whom->on_answer(node_, a, client_.now());
    }

    void on_greeting(wire::greeting const& g)
    {
        auto const took = client_.now() - since_;
        if (took > connect_timeout_) return down(redis::errc::cannot_connect);
        state_ = state::up;
        answered_ = client_.now();
        admitted_.connected(node_, g.time, g.uptime, client_.now(), took);
        auto const extended = [this](entry const& undo) {
            return undo.rolls_back() && !undo.written && redis::votes::intact(undo.what, node_) && std::any_of(entries_.begin(), entries_.end(), [&](entry const& e) {
                return e.whom && !e.failed && redis::extends(e.what) && e.what.token == undo.what.token;
            });
        };
        for (auto e = entries_.begin(); e != entries_.end();) e = extended(*e) ? entries_.erase(e) : std::next(e);
        for (auto& e : entries_) {
            if (e.failed) continue;
            if (redis::asks_for_vote(e.what)) e.failed = admitted_.may_vote(node_, client_.now());
            if (!e.failed) transmit(e);
        }
        report_failures();
    }

    /// A release that nobody waits for rolls something back: it is sent again, ahead of all else, and so is one of what was asked for and
    /// not answered. Nothing else is.
    void down(std::error_code why)
    {
        bool const was_up = state_ == state::up;
        state_ = state::down;
        ++generation_;
        wire_->close();
        wire_.reset();
        admitted_.disconnected(node_);
        not_before_ = client_.present() + (was_up ? boot_clock::duration{} : boot_clock::duration{pause_after_refusal});
        std::vector<redis::command> undone;
        for (auto& e : entries_) {
            if (!e.sent) continue;
            redis::votes::lost(e.what, node_);
            if (e.whom && redis::asks_for_vote(e.what) && !redis::extends(e.what)) undone.push_back(e.what);
            e.sent = false;
        }
        std::erase_if(entries_, [](entry const& e) { return !e.whom && !e.rolls_back(); });
        for (auto& e : entries_)
            if (e.whom) e.failed = why;
        for (auto& c : undone) {
            c.what = redis::command::verb::release;
            entries_.push_front({.id = next_id_++, .what = std::move(c), .undoes = true});
        }
        report_failures();
    }

    /// Effects: has the listeners told, later, of what has failed.
    void report_failures()
    {
        auto const failed = [](entry const& e) { return static_cast<bool>(e.failed); };
        if (std::none_of(entries_.begin(), entries_.end(), failed)) return;
        client_.at(client_.present(), [this, failed] {
            for (;;) {
                auto const e = std::find_if(entries_.begin(), entries_.end(), failed);
                if (e == entries_.end()) return;
                answer(e->id, redis::answer::failed(e->failed));
            }
        });
    }

    host& client_;
    network& servers_;
    redis::admission& admitted_;
    unsigned node_;
    boot_clock::duration connect_timeout_;
    std::chrono::milliseconds fence_lifetime_;
    state state_ = state::down;
    boot_clock::time_point since_{};  ///< on the client's clock
    boot_clock::time_point not_before_{};
    std::uint64_t generation_ = 0;
    std::shared_ptr<wire> wire_;
    boot_clock::time_point answered_{};  // the last command that was, or the greeting
    std::uint64_t next_id_ = 0;
    std::deque<entry> entries_;
};

}  // namespace holdfast::sim
