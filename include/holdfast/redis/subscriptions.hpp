// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/listener.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What one node reports, and to whom: its channels, joined to a connection, which a derived class makes over a socket
/// or a simulated wire. One connection for all channels, made for the first watcher. A channel is subscribed to while
/// it is wanted, which means that it has a watcher. No I/O and no clock of its own.
///
/// | a channel | meaning | left by |
/// |---|---|---|
/// | pending > 0 | that many SUBSCRIBEs are not confirmed | the last confirmation: its watchers are told |
/// | pending = 0 | subscribed | a new watcher: SUBSCRIBE again; it can rely on reports from the confirmation on |
/// | not wanted | UNSUBSCRIBE is sent | the last confirmation: forgotten |
///
/// A connection on which a question is not answered in time is given up: more and more of them would wait there. So is
/// one on which more arrives than releases can be. Its watchers use the clock instead.
class subscriptions {
public:
    enum class verb : std::uint8_t { subscribe, unsubscribe };

    subscriptions(unsigned node, std::chrono::milliseconds answer_timeout)
        : node_{node}, answer_timeout_{answer_timeout}
    {
    }

    subscriptions(subscriptions const&) = delete;
    subscriptions& operator=(subscriptions const&) = delete;

    /// Effects: tells `whom` when releases on `channel` are reported, and then of each. Never calls it from inside.
    /// Returns: no error, or why releases cannot be reported now; `whom` is told when they can, but without memory
    /// perhaps only after the next call.
    std::error_code watch(std::string const& channel, listener* whom, boot_clock::time_point now) noexcept
    try {
        auto& c = channels_[channel];
        if (std::find(c.watchers.begin(), c.watchers.end(), whom) == c.watchers.end()) c.watchers.push_back(whom);
        if (!up_) return connect(now);
        subscribe(channel, c, now);
        return {};
    } catch (std::bad_alloc const&) {
        if (auto const made = channels_.find(channel);
            made != channels_.end() && !made->second.wanted() && made->second.pending == 0)
            channels_.erase(made);
        return std::make_error_code(std::errc::not_enough_memory);
    }

    void unwatch(std::string const& channel, listener* whom, boot_clock::time_point now) noexcept
    try {
        auto const found = channels_.find(channel);
        if (found == channels_.end()) return;
        auto& [name, c] = *found;
        std::erase(c.watchers, whom);
        if (c.wanted()) return;
        if (up_) ask(verb::unsubscribe, name, now);
        if (c.pending == 0) channels_.erase(found);
    } catch (std::bad_alloc const&) {  // it stays subscribed until the connection ends; no watcher is told
    }

    /// Effects: gives up a connection that has not answered in time; its watchers are told.
    void discard_unanswered(boot_clock::time_point now) noexcept
    {
        if (!waits() || now - asked_.front().at <= answer_timeout_) return;
        if (!readable() || received() - asked_.front().behind > most_before_answer)
            disconnect(errc::no_answer, now, {});
    }

    /// Returns: whether it waits for answers.
    [[nodiscard]] bool waits() const noexcept { return !asked_.empty(); }

    /// Effects: connects again if a connection is wanted and there is none.
    virtual void keep_up(boot_clock::time_point now) noexcept
    try {
        if (!up_ && !channels_.empty()) connect(now);
    } catch (std::bad_alloc const&) {  // the next call tries again; waiters use the clock until then
    }

protected:
    ~subscriptions() = default;

    /// Effects: begins to connect if necessary. Returns: no error if the node is being connected to; otherwise why not.
    virtual std::error_code connect(boot_clock::time_point now) = 0;

    /// Effects: ends the connection, if there is one, because of `why`; `reason` says more about it, for messages.
    virtual void disconnect(std::error_code why, boot_clock::time_point now, std::string reason) = 0;

    /// Effects: puts a question on the wire; does not disconnect. Throws: `std::bad_alloc`.
    virtual void write(verb what, std::string const& channel) = 0;

    /// Returns: whether something has arrived that was not taken yet; how many bytes came over this connection.
    [[nodiscard]] virtual bool readable() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t received() const noexcept = 0;

    [[nodiscard]] bool up() const noexcept { return up_; }

    /// Effects: the node is connected, and asked for every channel. Throws: `std::bad_alloc`.
    void came_up(boot_clock::time_point now)
    {
        up_ = true;
        counts_since_ = now;
        counts_from_ = received();
        longest_name_ = 0;
        for (auto& [name, c] : channels_) subscribe(name, c, now);
    }

    /// Effects: the node confirms the oldest question. Returns: whether it now reports releases to a watcher. Throws:
    /// `std::bad_alloc`.
    bool confirmed(verb what, std::string_view channel, boot_clock::time_point now)
    {
        if (!waits() || asked_.front().what != what || asked_.front().channel != channel) {
            disconnect(errc::protocol_error, now, {});
            return false;
        }
        auto const c = answered();
        if (c == channels_.end() || c->second.pending != 0) return false;
        tell(c->second, [&](listener& l) { l.on_watching(node_, now); });
        return true;
    }

    /// Effects: the node refuses the oldest question, because of `why`; an error does not say what it is for. Returns:
    /// whether a watcher was told. Throws: `std::bad_alloc`.
    bool refused(std::error_code why, boot_clock::time_point now)
    {
        if (!waits()) {
            disconnect(errc::protocol_error, now, {});
            return false;
        }
        auto const c = answered();
        if (c == channels_.end()) return false;
        tell(c->second, [&](listener& l) { l.on_watch_failed(node_, why, now); });
        if (why != holdfast::errc::misconfigured) disconnect(why, now, {});
        return true;
    }

    /// Effects: the node reports a release, or says `text`. Throws: `std::bad_alloc`.
    void reported(std::string_view channel, std::string_view text, boot_clock::time_point now)
    {
        if (now - counts_since_ >= std::chrono::seconds{1}) {
            counts_since_ = now;
            counts_from_ = received();
        }
        counts_from_ += std::min(channel.size(), longest_name_) + std::min(text.size(), longest_call);
        if (received() > counts_from_ + most_in_a_second)
            return disconnect(errc::protocol_error, now, "it reports more releases than there can be");
        if (auto const found = channels_.find(channel); found != channels_.end())
            tell(found->second, [&](listener& l) { l.on_message(node_, text, now); });
    }

    /// Effects: the connection is gone, or could not be made, because of `why`.
    void went_down(std::error_code why, boot_clock::time_point now) noexcept
    try {
        up_ = false;
        asked_.clear();
        std::erase_if(channels_, [](auto const& one) { return !one.second.wanted(); });
        for (auto& [name, c] : channels_) c.pending = 0;
        std::vector<listener*> all;
        for (auto const& [name, c] : channels_) all.insert(all.end(), c.watchers.begin(), c.watchers.end());
        for (auto* const l : all) l->on_watch_failed(node_, why, now);
    } catch (std::bad_alloc const&) {  // they use the clock
    }

private:
    struct channel_state {
        std::vector<listener*> watchers;
        unsigned pending = 0;

        [[nodiscard]] bool wanted() const noexcept { return !watchers.empty(); }
    };
    struct question {
        verb what;
        std::string channel;
        std::uint64_t behind;  ///< how many bytes had come when it was asked
        boot_clock::time_point at;
    };

    /// An answer is overdue only when this many bytes have come instead: it may be among those not read yet.
    static constexpr std::uint64_t most_before_answer = 1'048'576;

    /// More bytes in a second than a server needs to report releases, not counting the names of locks: a release takes
    /// about 40, and no server runs 100,000 of its scripts in a second.
    static constexpr std::uint64_t most_in_a_second = 4'194'304;

    /// Of what calls a waiter.
    static constexpr std::size_t longest_call = 600;

    using channel_map = std::map<std::string, channel_state, std::less<>>;

    void subscribe(std::string const& channel, channel_state& c, boot_clock::time_point now)
    {
        longest_name_ = std::max(longest_name_, channel.size());
        ask(verb::subscribe, channel, now);
        ++c.pending;
    }

    void ask(verb what, std::string const& channel, boot_clock::time_point now)
    {
        asked_.push_back({what, channel, received(), now});
        try {
            write(what, channel);
        } catch (...) {
            asked_.pop_back();
            throw;
        }
    }

    /// Effects: the oldest question is answered. Returns: the channel, if it is wanted, and that was a question for it.
    channel_map::iterator answered()
    {
        auto const asked = std::move(asked_.front());
        asked_.pop_front();
        auto const found = channels_.find(asked.channel);
        if (asked.what != verb::subscribe || found == channels_.end() || found->second.pending == 0)
            return channels_.end();
        --found->second.pending;
        if (found->second.wanted()) return found;
        if (found->second.pending == 0) channels_.erase(found);
        return channels_.end();
    }

    /// A watcher that is told may stop watching, or make another one stop.
    template <class F>
    static void tell(channel_state const& c, F&& f)
    {
        auto const now_watching = c.watchers;
        for (auto* const l : now_watching) f(*l);
    }

    unsigned node_;
    std::chrono::milliseconds answer_timeout_;
    bool up_ = false;
    boot_clock::time_point counts_since_{};
    std::uint64_t counts_from_ = 0;
    std::size_t longest_name_ = 0;  // of the channels subscribed to over this connection
    channel_map channels_;
    std::list<question> asked_;  ///< what is not answered yet
};

}  // namespace holdfast::redis
