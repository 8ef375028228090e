// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/link.hpp>
#include <holdfast/redis/request.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/transport.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::redis {

/// Has one node report releases to those who watch. One connection for all channels, made for the first watcher; a channel is subscribed
/// to while somebody watches it.
///
/// | a channel    | meaning                                       | left by |
/// |--------------|-----------------------------------------------|---------|
/// | pending > 0  | that many SUBSCRIBEs are not confirmed        | the last confirmation: its watchers are told |
/// | pending = 0  | subscribed                                    | a new watcher: SUBSCRIBE again, whose confirmation is the earliest moment it can rely on |
/// | no watchers  | UNSUBSCRIBE is sent                           | the last confirmation: forgotten |
///
/// A connection on which a question is not answered for the connect timeout is given up: more and more of them would wait there. So is one on
/// which more comes than releases can be: its watchers look by the clock instead.
class subscriber final : private link {
public:
    subscriber(io::reactor& reactor, unsigned node, endpoint const& server, std::shared_ptr<io::secure_layer const> tls,
               std::chrono::milliseconds connect_timeout, server_record& record)
        : link{reactor, server, std::move(tls), connect_timeout, hello::plain},
          node_{node},
          answer_timeout_{connect_timeout},
          record_{record}
    {
    }

    using link::reason;

    /// Effects: has `whom` told when releases on `channel` are reported, and then of each. Never calls it from inside.
    /// Returns: no error, or why releases cannot be reported now; it is told when they can.
    std::error_code watch(std::string const& channel, listener* whom, boot_clock::time_point now) noexcept
    try {
        auto& c = channels_[channel];
        c.watchers.push_back(whom);
        if (!up()) return connect(now);
        subscribe(channel, c);
        return {};
    } catch (std::bad_alloc const&) {  // where it did become a watcher, it is told with the next ones
        return std::make_error_code(std::errc::not_enough_memory);
    }

    void unwatch(std::string const& channel, listener* whom) noexcept
    {
        auto const found = channels_.find(channel);
        if (found == channels_.end()) return;
        std::erase(found->second.watchers, whom);
        if (!found->second.watchers.empty()) return;
        if (!up())
            channels_.erase(found);
        else
            unsubscribe(found);
    }

    /// Effects: gives up a connection that has not answered in time; its watchers are told.
    void discard_unanswered(boot_clock::time_point now) noexcept
    {
        if (!up() || asked_.empty() || now - asked_.front().asked <= answer_timeout_) return;
        if (!readable() || received() - asked_.front().behind > most_before_answer) disconnect(errc::no_answer, now);
    }

    /// Returns: whether it waits for answers.
    [[nodiscard]] bool waits() const noexcept { return !asked_.empty(); }

    /// Effects: connects again where a connection is wanted and there is none.
    void keep_up(boot_clock::time_point now) noexcept
    try {
        if (up()) record_.subscription_stands(now);
        if (!up() && !channels_.empty()) connect(now);
    } catch (std::bad_alloc const&) {  // the next one tries again; waiters look by the clock meanwhile
    }

private:
    struct channel_state {
        std::vector<listener*> watchers;
        unsigned pending = 0;
    };
    struct question {
        std::string channel;
        bool subscribe;
        std::uint64_t behind;  ///< so many bytes that came before
        boot_clock::time_point asked = boot_clock::now();
    };

    /// An answer that is not there when its time is over may still be behind so many bytes, for they were not read in time.
    static constexpr std::uint64_t most_before_answer = 1'048'576;

    /// So many bytes, besides the names of locks, are more than a server can have releases to report: a release has about 40
    /// of them, and no server runs 100,000 of its scripts in a second.
    static constexpr std::uint64_t most_in_a_second = 4'194'304;

    using channel_map = std::map<std::string, channel_state, std::less<>>;

    void subscribe(std::string const& channel, channel_state& c)
    {
        longest_name_ = std::max(longest_name_, channel.size());
        send({channel, true, received()});
        ++c.pending;
    }

    void send(question q)
    {
        std::array<std::string_view, 2> const words{q.subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE", q.channel};
        auto const bytes = format(words);
        asked_.push_back(std::move(q));
        try {
            write(bytes);
        } catch (...) {
            asked_.pop_back();
            throw;
        }
    }

    void unsubscribe(channel_map::iterator c) noexcept
    try {
        send({c->first, false, received()});
        if (c->second.pending == 0) channels_.erase(c);
    } catch (std::bad_alloc const&) {  // it stays subscribed until the connection ends; nobody is told
    }

    void on_up(greeting const&, boot_clock::time_point now) override
    {
        asked_.clear();
        counts_since_ = now;
        counts_from_ = received();
        longest_name_ = 0;
        for (auto& [name, c] : channels_) {
            c.pending = 0;
            subscribe(name, c);
        }
    }

    void on_reply(reply const& r, boot_clock::time_point now) override
    {
        bool const refused = r.what() == reply::kind::error;
        if (!refused && r.size() != 3) return disconnect(errc::protocol_error, now);
        if (!refused && r[0].text() == "message") return on_message(r[1].text(), now);
        if (asked_.empty()) return disconnect(errc::protocol_error, now);
        auto const expected = asked_.front().subscribe ? std::string_view{"subscribe"} : std::string_view{"unsubscribe"};
        if (!refused && (r[0].text() != expected || r[1].text() != asked_.front().channel)) return disconnect(errc::protocol_error, now);
        auto const asked = std::move(asked_.front());  // an error does not say what it is for
        asked_.pop_front();
        auto const found = channels_.find(asked.channel);
        if (!asked.subscribe || found == channels_.end() || found->second.pending == 0) return;
        bool const last = --found->second.pending == 0;
        if (found->second.watchers.empty()) {
            if (last) channels_.erase(found);
        } else if (refused) {
            auto const why = classify(r.text());
            note_error(why, r, {});
            on_refused(found->second, why, now);
        } else if (last) {
            record_.subscribed(now);
            tell(found->second, [&](listener& l) { l.on_watching(node_, now); });
        }
    }

    void on_message(std::string_view channel, boot_clock::time_point now)
    {
        if (now - counts_since_ >= std::chrono::seconds{1}) {
            counts_since_ = now;
            counts_from_ = received();
        }
        counts_from_ += std::min(channel.size(), longest_name_);
        if (received() > counts_from_ + most_in_a_second)
            return disconnect(errc::protocol_error, now, "it reports more releases than there can be");
        if (auto const found = channels_.find(channel); found != channels_.end())
            tell(found->second, [&](listener& l) { l.on_released(node_, now); });
    }

    void on_refused(channel_state const& c, std::error_code why, boot_clock::time_point now)
    {
        if (why == holdfast::errc::misconfigured) note_failure(why);  // otherwise the end of the connection is
        tell(c, [&](listener& l) { l.on_watch_failed(node_, why, now); });
        if (why != holdfast::errc::misconfigured) disconnect(why, now);
    }

    void note_failure(std::error_code why) noexcept
    {
        record_.subscription_failed(why, [&] { return reason(why); });
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override
    try {
        note_failure(why);
        std::erase_if(channels_, [](auto const& one) { return one.second.watchers.empty(); });
        for (auto& [name, c] : channels_) c.pending = 0;
        for (auto& l : all_watchers()) l->on_watch_failed(node_, why, now);
    } catch (std::bad_alloc const&) {  // they look again by the clock
    }

    [[nodiscard]] std::vector<listener*> all_watchers() const
    {
        std::vector<listener*> all;
        for (auto const& [name, c] : channels_) all.insert(all.end(), c.watchers.begin(), c.watchers.end());
        return all;
    }

    /// A watcher that is told may stop watching, or have another one stop.
    template <class F>
    void tell(channel_state const& c, F&& f)
    {
        auto const now_watching = c.watchers;
        for (auto* const l : now_watching) f(*l);
    }

    unsigned node_;
    std::chrono::milliseconds answer_timeout_;
    server_record& record_;
    boot_clock::time_point counts_since_{};
    std::uint64_t counts_from_ = 0;
    std::size_t longest_name_ = 0;  // that was subscribed to over this connection
    channel_map channels_;
    std::deque<question> asked_;  ///< what is not answered yet
};

}  // namespace holdfast::redis
