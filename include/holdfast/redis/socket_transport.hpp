// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/io/reactor.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/redis/admission.hpp>
#include <holdfast/redis/connection.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/greeting_listener.hpp>
#include <holdfast/redis/identities.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redis/subscriber.hpp>
#include <holdfast/redis/transport.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::redis {

struct fleet_options {
    std::vector<endpoint> servers;
    std::shared_ptr<io::secure_layer const> tls;  ///< of those that ask for it
    std::chrono::milliseconds node_timeout{};
    std::string_view timeout_option = "operation_timeout";  ///< what the user calls `node_timeout`: a constant
    std::chrono::milliseconds connect_timeout{};
    std::string key_prefix;
    std::chrono::milliseconds restart_guard{};  ///< 0: none
    unsigned connections = 1;                                ///< to each server, at most
    bool subscribe = true;                                   ///< to releases
    std::shared_ptr<server_news> news = std::make_shared<server_news>();
};

/// A way to the real servers of a lock: one Redis, or the masters of a Redlock. Has one connection to each for commands, and one for news of
/// releases. Thread-safe. Connections are made when they are needed; waiting threads run them.
class socket_transport final : private greeting_listener {
public:
    explicit socket_transport(fleet_options const& options)
        : options_{options}, reactor_{2 * options_.servers.size()},
          admission_{size(), options_.restart_guard}, seed_{first_seed()}
    {
        bool const guarded = size() > 1 || options_.restart_guard.count() != 0;
        for (unsigned i = 0; i < size(); ++i) nodes_.push_back(std::make_unique<node>(*this, i, guarded ? &admission_ : nullptr));
    }

    // See `Transport`.

    [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(options_.servers.size()); }
    [[nodiscard]] boot_clock::time_point now() const noexcept { return boot_clock::now(); }
    [[nodiscard]] std::chrono::milliseconds node_timeout() const noexcept { return options_.node_timeout; }
    [[nodiscard]] fence_source fencing() const noexcept { return size() == 1 ? fence_source::clock : fence_source::counter; }

    [[nodiscard]] std::string describe(unsigned n, std::error_code why)
    {
        auto const name = options_.servers[n].describe();
        if (!why) return name;
        std::scoped_lock guard{*this};
        auto const more = detail(n, why);
        return more.empty() ? name : name + " (" + more + ")";
    }

    /// Returns: what is known of a server.
    [[nodiscard]] server_status status(unsigned n)
    {
        std::scoped_lock guard{*this};
        auto const& commands = nodes_[n]->commands;
        server_status s;
        s.reached = commands.up();
        s.why_not = commands.undecided(now()) ? make_error_code(errc::clock_not_compared) : commands.may_vote(now());
        if (!s.reached) s.why_not = commands.why_down();
        nodes_[n]->record.fill(s);
        s.detail = detail(n, s.why_not);
        if (s.why_not != errc::restarted_recently) return s;
        s.guarded_for = std::chrono::ceil<std::chrono::milliseconds>(admission_.guarded_for(n, now()));
        return s;
    }

    [[nodiscard]] std::uint64_t proposal(boot_clock::time_point now) const noexcept { return admission_.proposal(now); }
    [[nodiscard]] std::chrono::microseconds max_lead() const noexcept { return admission_.max_lead(); }

    std::error_code send(unsigned n, command const& c, listener* whom) noexcept
    {
        nodes_[n]->releases.keep_up(now());
        return nodes_[n]->commands.send(c, whom, now());
    }

    void forget(unsigned n, listener* whom) noexcept { nodes_[n]->commands.forget(whom); }
    void give_up(unsigned n, listener* whom) noexcept { nodes_[n]->commands.give_up(whom, now()); }

    [[nodiscard]] bool undecided(unsigned n, boot_clock::time_point now) const noexcept { return nodes_[n]->commands.undecided(now); }

    /// Where there is no connection yet, the node's vote is decided when there is one. One whose greeting showed a clock out of line a while ago
    /// is given up: the next one shows it anew.
    [[nodiscard]] std::error_code may_vote(unsigned n, boot_clock::time_point now) noexcept
    {
        auto& commands = nodes_[n]->commands;
        if (!commands.waits() && admission_.out_of_line(n) && admission_.outdated(n, now)) commands.drop(now);
        return noted_vote(n, now);
    }

    std::error_code watch(unsigned n, shared_keys const& keys, listener* whom) noexcept
    {
        if (!options_.subscribe) return std::make_error_code(std::errc::operation_not_supported);
        return nodes_[n]->releases.watch(keys->channel, whom, now());
    }

    void unwatch(shared_keys const& keys, listener* whom) noexcept
    {
        for (auto& n : nodes_) n->releases.unwatch(keys->channel, whom);
    }

    [[nodiscard]] static owner_token fresh_token() { return owner_token::fresh(); }

    /// For jitter, which needs to differ, not to be secret.
    [[nodiscard]] std::uint64_t random() noexcept { return seed_.fetch_add(1, std::memory_order_relaxed); }

    void updated(awaited& one) noexcept { reactor_.updated(one); }
    bool wait(awaited& one, boot_clock::time_point t) { return reactor_.wait(one, t); }

    /// Effects: also gives up connections that have not answered in time: here, where no operation is in the middle of a step.
    void lock()
    {
        reactor_.lock();
        for (auto& n : nodes_) {
            if (n->commands.waits()) n->commands.discard_unanswered(now());
            if (n->releases.waits()) n->releases.discard_unanswered(now());
        }
    }

    void unlock() noexcept { reactor_.unlock(); }

private:
    struct node {
        node(socket_transport& f, unsigned i, admission* a)
            : record{f.options_.servers[i].describe(), f.size() > 1, f.options_.news},
              commands{f.reactor_, i, f.options_.servers[i], f.tls_of(i), f.options_.node_timeout, f.options_.connect_timeout, a, f, record},
              releases{f.reactor_, i, f.options_.servers[i], f.tls_of(i), f.options_.connect_timeout, record}
        {
        }
        server_record record;
        connection commands;
        subscriber releases;
    };

    std::error_code refuses(unsigned n, greeting const& g) override
    {
        auto const wall = std::chrono::system_clock::now().time_since_epoch();
        nodes_[n]->record.greeted(g, std::chrono::duration_cast<std::chrono::microseconds>(wall));
        return identities_.greeted(n, g.run_id) ? make_error_code(errc::same_server) : std::error_code{};
    }

    void on_greeting(boot_clock::time_point now) override
    {
        for (auto& n : nodes_) n->commands.decide(now);
        for (unsigned n = 0; n < size(); ++n)
            if (nodes_[n]->commands.up()) static_cast<void>(noted_vote(n, now));
    }

    /// Returns: as `may_vote`; notes that the node has no vote.
    [[nodiscard]] std::error_code noted_vote(unsigned n, boot_clock::time_point now) noexcept
    {
        auto const why = nodes_[n]->commands.may_vote(now);
        if (why) nodes_[n]->record.failed(why, [&] { return detail(n, why); });
        return why;
    }

    /// Returns: what more there is to say about `why` than its own message, which a node has.
    [[nodiscard]] std::string detail(unsigned n, std::error_code why) const
    {
        if (auto const same = identities_.same_as(n); same && why == errc::same_server)
            return "the same server as " + options_.servers[*same].describe();
        if (why == errc::no_answer && undecided(n, now())) return make_error_code(errc::clock_not_compared).message();
        if (why == errc::restarted_recently) {
            auto const at = now();
            auto const left = std::chrono::ceil<std::chrono::seconds>(admission_.guarded_for(n, at));
            auto const ran = std::chrono::floor<std::chrono::seconds>(admission_.running_for(n, at));
            return "no vote for another " + std::to_string(left.count()) + " s: it was started " + std::to_string(ran.count()) +
                   " s ago, and restart_guard is " + std::to_string(options_.restart_guard.count()) + " ms";
        }
        auto const more = nodes_[n]->commands.reason(why);
        return more.empty() && why != errc::no_answer ? nodes_[n]->releases.reason(why) : more;
    }

    [[nodiscard]] std::shared_ptr<io::secure_layer const> tls_of(unsigned n) const { return options_.servers[n].tls ? options_.tls : nullptr; }

    static std::uint64_t first_seed()
    {
        std::uint64_t bits = 0;
        owner_token::fill_random(&bits, sizeof bits);
        return bits;
    }

    fleet_options options_;
    io::reactor reactor_;
    admission admission_;
    identities identities_;
    std::vector<std::unique_ptr<node>> nodes_;
    std::atomic<std::uint64_t> seed_;
};

static_assert(Transport<socket_transport>);

}  // namespace holdfast::redis
