// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/link.hpp>
#include <holdfast/redis/request.hpp>
#include <holdfast/redis/server_record.hpp>
#include <holdfast/redis/subscriptions.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// The subscriptions of a node over a socket: their connection is a `link`. What becomes of it is noted in the node's
/// `server_record`.
class subscriber final : private link, public subscriptions {
public:
    subscriber(io::reactor& reactor, unsigned node, endpoint const& server, std::shared_ptr<io::secure_layer const> tls,
               std::chrono::milliseconds connect_timeout, server_record& record)
        : link{reactor, server, std::move(tls), connect_timeout, hello::plain},
          subscriptions{node, connect_timeout},
          record_{record}
    {
    }

    using link::reason;

    void keep_up(boot_clock::time_point now) noexcept override
    {
        if (subscriptions::up()) record_.subscription_stands(now);
        subscriptions::keep_up(now);
    }

    /// Effects: ends the connection, as that for commands has ended: the server's name may lead elsewhere by the next
    /// one, and releases are reported where commands go. Waiters look by the clock until then. It is no failure.
    void follow(boot_clock::time_point now) noexcept
    {
        follows_ = true;
        link::disconnect(errc::connection_lost, now);
        follows_ = false;
    }

private:
    std::error_code connect(boot_clock::time_point now) override { return link::connect(now); }
    void disconnect(std::error_code why, boot_clock::time_point now, std::string reason) override
    {
        link::disconnect(why, now, std::move(reason));
    }

    void write(verb what, std::string const& channel) override
    {
        request one;
        one.add(what == verb::subscribe ? "SUBSCRIBE" : "UNSUBSCRIBE");
        one.add(channel);
        link::write(one.bytes());
    }

    [[nodiscard]] bool readable() const noexcept override { return link::readable(); }
    [[nodiscard]] std::uint64_t received() const noexcept override { return link::received(); }

    void on_up(greeting const&, boot_clock::time_point now) override { came_up(now); }

    void on_reply(reply const& r, boot_clock::time_point now) override
    {
        if (r.what() == reply::kind::error) return on_error(r, now);
        auto const kind = r.size() == 3 ? r[0].text() : std::string_view{};
        if (kind == "message")
            reported(r[1].text(), r[2].text(), now);
        else if (kind != "subscribe" && kind != "unsubscribe")
            link::disconnect(errc::protocol_error, now);
        else if (confirmed(kind == "subscribe" ? verb::subscribe : verb::unsubscribe, r[1].text(), now))
            record_.subscribed(now);
    }

    void on_error(reply const& r, boot_clock::time_point now)
    {
        std::error_code const why = classify(r.text());
        note_error(why, r);
        // Otherwise the end of the connection is noted.
        if (refused(why, now) && why == holdfast::errc::misconfigured) note_failure(why);
    }

    void on_down(std::error_code why, boot_clock::time_point now) noexcept override
    {
        if (!follows_) note_failure(why);
        went_down(why, now);
    }

    void note_failure(std::error_code why) noexcept
    {
        record_.subscription_failed(why, [&] { return reason(why); });
    }

    server_record& record_;
    bool follows_ = false;
};

}  // namespace holdfast::redis
