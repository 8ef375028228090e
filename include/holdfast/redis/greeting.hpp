// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/number.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/request.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// What a server says about itself when a connection is made.
struct greeting {
    std::chrono::microseconds server_time{};
    std::chrono::seconds uptime{};
    boot_clock::duration took{};  ///< from the question to the answer
    std::string run_id{};         ///< identifies the server; drawn when it starts
    std::string eviction{};       ///< its `maxmemory-policy`. Like the rest, empty or 0 if it does not say
};

/// The first exchange on a connection: what is sent and asked, and what comes back. No I/O. A server that says that it
/// is a replica, or a node of a cluster, is refused.
class greeting_exchange {
public:
    enum class hello {
        plain,
        about_itself,  ///< the server is asked about itself, but need not answer: the user may lack the right to `INFO`
        with_clock,    ///< the same, and it must answer
    };

    /// Effects: begins anew. Returns: the bytes to send; empty if there are none.
    [[nodiscard]] std::string begin(endpoint const& server, hello h)
    {
        got_ = {};
        asked_ = answered_ = 0;
        std::string bytes;
        request one;
        auto const say = [&](question what, std::initializer_list<word> words) {
            questions_[asked_++] = what;
            one.begin();
            for (auto const& w : words) one.add(w);
            bytes += one.bytes();
        };
        if (!server.password.empty() && server.user.empty()) say(question::auth, {"AUTH", server.password});
        if (!server.user.empty()) say(question::auth, {"AUTH", server.user, server.password});
        if (server.database != 0) say(question::select, {"SELECT", std::to_string(server.database)});
        required_ = h == hello::with_clock;
        if (h != hello::plain) {
            say(question::replication, {"INFO", "replication"});
            say(question::memory, {"INFO", "memory"});
            say(question::info, {"INFO", "server"});
            say(question::time, {"TIME"});
        }
        return bytes;
    }

    /// Returns: whether all questions are answered.
    [[nodiscard]] bool done() const noexcept { return answered_ == asked_; }

    /// Requires: not `done()`. Returns: no error, or what is wrong with the answer.
    [[nodiscard]] std::error_code on_reply(reply const& r)
    {
        auto const what = questions_[answered_];
        if (r.what() == reply::kind::error) {
            auto const why = classify(r.text());
            bool const unknown = why == errc::no_script || (why == errc::server_error && r.text().starts_with("ERR"));
            bool const refused = unknown || why == errc::server_error;
            if (what == question::auth && refused) return errc::authentication_failed;
            if (what == question::select && refused) return errc::bad_database;
            if (need_not_be_answered(what) && (unknown || why == errc::not_permitted)) {
                ++answered_;
                return {};
            }
            return why == errc::no_script ? errc::not_permitted : why;  // INFO has another name there, or none
        }
        if (what == question::replication && is_replica(r.text())) return errc::read_only;
        if (what == question::memory) got_.eviction = field(r.text(), "maxmemory_policy:");
        if (what == question::info && is_cluster(r.text())) return errc::moved;
        if (what == question::info) got_.run_id = field(r.text(), "run_id:");
        if (what == question::info) got_.uptime = uptime_in(r.text());
        if (what == question::time) {
            got_.server_time = decode_clock(r);
            if (got_.server_time.count() == 0 && required_) return errc::protocol_error;
        }
        ++answered_;
        return {};
    }

    /// Requires: `done()`. Returns: what the server said. The caller fills in `took`: there is no clock here.
    [[nodiscard]] greeting const& got() const noexcept { return got_; }

private:
    enum class question : std::uint8_t { auth, select, replication, memory, info, time };

    [[nodiscard]] bool need_not_be_answered(question what) const noexcept
    {
        if (what == question::replication || what == question::memory) return true;
        return !required_ && what != question::auth && what != question::select;
    }

    /// Returns: whether `info` is not that of a master. Others than Redis have more roles: `replica`, `active-replica`.
    [[nodiscard]] static bool is_replica(std::string_view info) noexcept
    {
        auto const role = field(info, "role:");
        return !role.empty() && role != "master";
    }

    /// Returns: whether `info` is that of a node of a cluster; Valkey has the second name.
    [[nodiscard]] static bool is_cluster(std::string_view info) noexcept
    {
        return field(info, "redis_mode:") == "cluster" || field(info, "server_mode:") == "cluster";
    }

    /// Returns: what follows `name` in a line of `info`; empty if there is no such line.
    [[nodiscard]] static std::string_view field(std::string_view info, std::string_view name) noexcept
    {
        for (auto at = info.find(name); at != std::string_view::npos; at = info.find(name, at + 1)) {
            if (at != 0 && info[at - 1] != '\n') continue;
            auto const value = info.substr(at + name.size());
            return value.substr(0, value.find_first_of("\r\n"));
        }
        return {};
    }

    [[nodiscard]] static std::chrono::seconds uptime_in(std::string_view info) noexcept
    {
        std::chrono::seconds const said{
            holdfast::detail::number_in<std::int64_t>(field(info, "uptime_in_seconds:")).value_or(0)};
        return std::clamp(said, std::chrono::seconds{0}, longest_uptime);
    }

    /// Longer than any server runs, and short enough to calculate with.
    static constexpr std::chrono::seconds longest_uptime = std::chrono::hours{24 * 366 * 50};

    greeting got_;
    bool required_ = false;
    std::array<question, 6> questions_{};
    std::size_t asked_ = 0;
    std::size_t answered_ = 0;
};

}  // namespace holdfast::redis
