// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/redis/connection.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/identities.hpp>
#include <holdfast/redis/layout.hpp>
#include <holdfast/redis/server_news.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/server_status.hpp>
#include <holdfast/redis/subscriber.hpp>
#include <holdfast/redis/transport.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

struct pool_options {
    std::vector<endpoint> servers;
    std::shared_ptr<io::secure_layer const> tls;  ///< for the servers that ask for it
    std::chrono::milliseconds node_timeout{};
    std::string_view timeout_option = "operation_timeout";  ///< the user's name for `node_timeout`; a constant
    std::chrono::milliseconds connect_timeout{};
    std::string key_prefix;
    redis::layout layout = redis::layout::string;
    std::chrono::milliseconds restart_guard{};  ///< 0: none
    unsigned connections = 1;                   ///< to each server, at most
    bool subscribe = true;                      ///< to releases
    std::string holder{};                       ///< what the record of a holder says; empty: none is kept
    std::shared_ptr<server_news> news = std::make_shared<server_news>();
};

/// The connections to the real servers of a lock: one Redis, or the masters of a Redlock. There is one to each for
/// commands, and one for news of releases. Thread-safe. Connections are made when they are needed; waiting threads run
/// them.
class socket_transport final : public transport, private greeting_listener {
public:
    /// `orphaned`: see `io::reactor`.
    socket_transport(pool_options const& options, io::wake_up const* orphaned)
        : transport{static_cast<unsigned>(options.servers.size()), options.node_timeout, random_bits(),
                    options.restart_guard},
          options_{options},
          reactor_{2 * options_.servers.size(), orphaned},
          seed_{random_bits()}
    {
        for (unsigned i = 0; i < size(); ++i) {
            auto const& one = servers_.emplace_back(std::make_unique<server>(*this, i));
            one->commands.name_holder(options_.holder);
            add(one->commands, one->releases);
        }
    }

    // See `transport`.

    [[nodiscard]] boot_clock::time_point now() const noexcept override { return boot_clock::now(); }
    [[nodiscard]] std::chrono::milliseconds connect_timeout() const noexcept override
    {
        return options_.connect_timeout;
    }

    [[nodiscard]] std::string describe(unsigned n, std::error_code why) override
    {
        auto name = options_.servers[n].describe();
        if (!why) return name;
        std::scoped_lock guard{*this};
        auto const more = detail(n, why);
        return more.empty() ? name : name + " (" + more + ")";
    }

    /// Returns: what is known of a server.
    [[nodiscard]] server_status status(unsigned n)
    {
        std::scoped_lock guard{*this};
        auto const& commands = servers_[n]->commands;
        server_status s;
        s.reached = commands.up();
        s.why_not = commands.undecided(now()) ? make_error_code(errc::clock_not_compared) : commands.may_vote(now());
        if (!s.reached) s.why_not = commands.why_down();
        servers_[n]->record.fill(s);
        s.detail = detail(n, s.why_not);
        if (s.why_not != errc::restarted_recently) return s;
        s.guarded_for = std::chrono::ceil<std::chrono::milliseconds>(votes().guarded_for(n, now()));
        return s;
    }

    [[nodiscard]] std::error_code may_vote(unsigned n, boot_clock::time_point now) noexcept override
    {
        auto const why = transport::may_vote(n, now);
        note_vote(n, why);
        return why;
    }

    [[nodiscard]] bool queues(unsigned n) const noexcept override { return options_.subscribe && transport::queues(n); }

    std::error_code watch(unsigned n, std::string const& channel, listener* whom, bool in_line) noexcept override
    {
        if (!options_.subscribe) return std::make_error_code(std::errc::operation_not_supported);
        return transport::watch(n, channel, whom, in_line);
    }

    [[nodiscard]] owner_token fresh_token() override { return owner_token::fresh(); }
    [[nodiscard]] std::uint64_t random() noexcept override { return seed_.fetch_add(1, std::memory_order_relaxed); }

    void begin(running& one, completion& done) override { reactor_.begin(one, done); }
    void updated(running& one) noexcept override { reactor_.updated(one); }
    void ended(running& one) noexcept override
    {
        reactor_.ended(one);
        tell_unfinished();
    }
    void abandon(running& one) noexcept override
    {
        reactor_.abandon(one);
        tell_unfinished();
    }

    /// Effects: calls `f`, with the lock held, when an operation ends and `finish` has something to do. Set before use.
    void on_unfinished(std::function<void()> f) { on_unfinished_ = std::move(f); }

    /// Effects: as `transport::finish`, called without the lock; what is under way is looked at later.
    bool finish() noexcept
    {
        std::scoped_lock guard{*this};
        bool const left = transport::finish();
        if (!left) tell_unfinished();
        return left;
    }

    [[nodiscard]] io::reactor& reactor() noexcept { return reactor_; }

    /// Effects: also gives up connections that have not answered in time, since no operation is in the middle of a step
    /// here.
    void lock() override
    {
        reactor_.lock();
        discard_unanswered();
    }

    void unlock() noexcept override { reactor_.unlock(); }

private:
    struct server {
        server(socket_transport& f, unsigned i)
            : record{f.options_.servers[i].describe(), f.size() > 1, f.options_.news},
              commands{f.reactor_,
                       i,
                       f.options_.servers[i],
                       f.tls_of(i),
                       f.options_.node_timeout,
                       f.options_.connect_timeout,
                       f.compares_clocks() ? connection::hello::with_clock : connection::hello::about_itself,
                       f.votes(),
                       f,
                       record},
              releases{f.reactor_, i, f.options_.servers[i], f.tls_of(i), f.options_.connect_timeout, record}
        {
        }
        server_record record;
        connection commands;
        subscriber releases;
    };

    [[nodiscard]] bool compares_clocks() const noexcept { return size() > 1 || options_.restart_guard.count() != 0; }

    std::error_code refuses(unsigned n, greeting const& g) override
    {
        auto const wall = std::chrono::system_clock::now().time_since_epoch();
        servers_[n]->record.greeted(g, std::chrono::duration_cast<std::chrono::microseconds>(wall));
        return identities_.greeted(n, g.run_id) ? make_error_code(errc::same_server) : std::error_code{};
    }

    void on_greeting(boot_clock::time_point now) override
    {
        decide(now);
        keep_up();
        for (unsigned n = 0; n < size(); ++n)
            if (servers_[n]->commands.up()) note_vote(n, servers_[n]->commands.may_vote(now));
    }

    void on_lost(unsigned n, boot_clock::time_point now) noexcept override { servers_[n]->releases.follow(now); }

    void tell_unfinished() noexcept
    {
        if (unfinished() && on_unfinished_) on_unfinished_();
    }

    /// Effects: notes why the node has no vote, unless it has one.
    void note_vote(unsigned n, std::error_code why) noexcept
    {
        if (why) servers_[n]->record.failed(why, [&] { return detail(n, why); });
    }

    /// Returns: more about `why`, the error of a node, than its own message.
    [[nodiscard]] std::string detail(unsigned n, std::error_code why) const
    {
        if (auto const same = identities_.same_as(n); same && why == errc::same_server)
            return "the same server as " + options_.servers[*same].describe();
        if (why == errc::no_answer && undecided(n, now())) return make_error_code(errc::clock_not_compared).message();
        if (why == errc::restarted_recently) {
            auto const at = now();
            auto const left = std::chrono::ceil<std::chrono::seconds>(votes().guarded_for(n, at));
            auto const ran = std::chrono::floor<std::chrono::seconds>(votes().running_for(n, at));
            return "no vote for another " + std::to_string(left.count()) + " s: it was started " +
                   std::to_string(ran.count()) + " s ago, and restart_guard is " +
                   std::to_string(options_.restart_guard.count()) + " ms";
        }
        auto const more = servers_[n]->commands.reason(why);
        return more.empty() && why != errc::no_answer ? servers_[n]->releases.reason(why) : more;
    }

    [[nodiscard]] std::shared_ptr<io::secure_layer const> tls_of(unsigned n) const
    {
        return options_.servers[n].tls ? options_.tls : nullptr;
    }

    static std::uint64_t random_bits()
    {
        std::uint64_t bits = 0;
        owner_token::fill_random(&bits, sizeof bits);
        return bits;
    }

    pool_options options_;
    io::reactor reactor_;
    identities identities_;
    std::vector<std::unique_ptr<server>> servers_;
    std::atomic<std::uint64_t> seed_;
    std::function<void()> on_unfinished_;
};

}  // namespace holdfast::redis
