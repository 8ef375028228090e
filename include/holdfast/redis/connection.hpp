// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/eligibility.hpp>
#include <holdfast/redis/greeting.hpp>
#include <holdfast/redis/link.hpp>
#include <holdfast/redis/node.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/server_record.hpp>

#include <chrono>
#include <memory>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Is told what a node says about itself, which may decide the votes of other nodes.
class greeting_listener {
public:
    /// `node` says `g`. Returns: no error, or why the connection is given up.
    [[nodiscard]] virtual std::error_code refuses(unsigned node, greeting const& g) = 0;

    /// A connection is up.
    virtual void on_greeting(boot_clock::time_point now) = 0;

    /// The connection to `node` is gone, or could not be made.
    virtual void on_lost(unsigned node, boot_clock::time_point now) noexcept = 0;

protected:
    ~greeting_listener() = default;
};

/// A node over a socket: its connection is a `link`. What the server does is noted in its `server_record`.
class connection final : private link, public node {
public:
    using link::hello;

    connection(io::reactor& reactor, unsigned index, endpoint const& server,
               std::shared_ptr<io::secure_layer const> tls, std::chrono::milliseconds node_timeout,
               std::chrono::milliseconds connect_timeout, hello h, eligibility& votes, greeting_listener& told,
               server_record& record)
        : link{reactor, server, std::move(tls), connect_timeout, h},
          node{index, node_timeout, votes},
          reactor_{reactor},
          told_{told},
          record_{record}
    {
    }

    using link::reason, link::why_down;
    using node::up;

private:
    std::error_code connect(boot_clock::time_point now) override
    {
        record_.asked();
        return link::connect(now);
    }

    void disconnect(std::error_code why, boot_clock::time_point now) override { link::disconnect(why, now); }

    void disconnect_silent(boot_clock::time_point now) override
    {
        if (readable()) return;
        overdue_ = true;
        link::disconnect(errc::connection_lost, now);
    }

    void write(pending_command const& next) override
    {
        encode(request_, next.what, next.form);
        link::write(request_.bytes());
    }

    std::error_code refuses(greeting const& g) override { return told_.refuses(index(), g); }

    void on_up(greeting const& g, boot_clock::time_point now) override
    {
        came_up(g.server_time, eligibility::certain_uptime(g.uptime), g.took, now);
        told_.on_greeting(now);
    }

    bool keeps_back() noexcept override { return reactor_.send_later(*this); }

    void compose(boot_clock::time_point now) noexcept override
    try {
        write_all(now);
    } catch (std::bad_alloc const&) {
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
    }

    void flush() noexcept override
    {
        compose(boot_clock::now());
        link::flush();
    }

    void on_reply(reply const& r, boot_clock::time_point now) override
    {
        if (commands().answered_all()) return disconnect(errc::protocol_error, now);
        auto const together = commands().oldest().what.together;
        bool const each = together > 1 && r.what() != reply::kind::error;
        if (each && r.size() != together) return disconnect(errc::protocol_error, now);
        // It is not up again before the next greeting, and `r` is there for as long as it is up.
        for (unsigned k = 0; k < together && up(); ++k) on_answer(each ? r[k] : r, now);
    }

    void on_answer(reply const& r, boot_clock::time_point now)
    {
        auto const& asked = commands().oldest();
        auto const a = decode(asked.what, r);
        if (a.error && !asked.follows()) note_error(a.error, r, &script_of(asked.what));
        if (!commands().repeats(a)) note(asked, a, now);
        answered(a, now);
        // It has become a replica. The next connection finds out whether the name leads to its master now; not more
        // often than once a second, as a user without the right to INFO does not see what the server is.
        bool const replica = a.error && (a.error == errc::read_only || a.error == errc::master_down);
        if (!replica || !up() || now - left_at_ < std::chrono::seconds{1}) return;
        left_at_ = now;
        disconnect(a.error, now);
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override
    {
        bool const overdue = std::exchange(overdue_, false);
        record_.failed(overdue ? make_error_code(errc::no_answer) : why, [&] { return reason(why); });
        went_down(why, now);
        told_.on_lost(index(), now);
    }

    [[nodiscard]] bool harmful_later() const noexcept override { return commands().harmful_later(); }

    void note(pending_command const& asked, answer const& a, boot_clock::time_point now) noexcept
    {
        bool const yes = a.what == answer::kind::applied;
        bool const own = !a.error && !of_operator(asked.what);
        if (own && asked.what.queue_refused)
            record_.refused(server_news::queue,
                            ": the user may not use the queues of waiters, so that they are not served in turn");
        if (own && asked.what.holder_refused)
            record_.refused(server_news::holder, ": the user may not use the records of holders, so that holder() does "
                                                 "not say who has a lock");
        if (a.fence_replaced) record_.replaced_fence(*asked.what.keys);
        if (a.error && a.error != errc::other_number)  // that is about a semaphore, not about the server
            record_.failed(a.error, [&] { return reason(a.error); });
        else if (a.error || asked.asks_for_vote() || (asked.extends() && yes && !may_vote(now)))
            record_.answered(asked.written, now);
    }

    io::reactor& reactor_;
    greeting_listener& told_;
    server_record& record_;
    request request_;                   // what is written; its memory is used again
    boot_clock::time_point left_at_{};  // when it was left last because it is a replica
    bool overdue_ = false;              // the connection is given up because an answer was overdue
};

}  // namespace holdfast::redis
