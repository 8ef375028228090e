// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/protocol.hpp>
#include <holdfast/redis/request.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::redis {

/// What a server tells about itself when a connection is made.
struct greeting {
    std::chrono::microseconds server_time{};
    std::chrono::seconds uptime{};
    boot_clock::duration took{};  ///< from the question to the answer
};

/// The hello: what is said and asked first on a connection, and what comes back. No I/O.
class greeting_exchange {
public:
    enum class hello { plain, with_clock };

    /// Effects: begins anew. Returns: what is to be sent; empty where there is nothing to say.
    [[nodiscard]] std::string begin(endpoint const& server, hello h)
    {
        got_ = {};
        asked_ = answered_ = 0;
        std::string bytes;
        auto const say = [&](question what, std::initializer_list<std::string_view> words) {
            questions_[asked_++] = what;
            bytes += format({words.begin(), words.size()});
        };
        if (!server.password.empty() && server.user.empty()) say(question::auth, {"AUTH", server.password});
        if (!server.user.empty()) say(question::auth, {"AUTH", server.user, server.password});
        if (server.database != 0) say(question::select, {"SELECT", std::to_string(server.database)});
        if (h == hello::with_clock) {
            say(question::info, {"INFO", "server"});
            say(question::time, {"TIME"});
        }
        return bytes;
    }

    /// Returns: whether everything is answered.
    [[nodiscard]] bool done() const noexcept { return answered_ == asked_; }

    /// Requires: not `done()`. Returns: no error, or what is wrong with the answer.
    [[nodiscard]] std::error_code on_reply(reply const& r)
    {
        auto const what = questions_[answered_];
        if (r.what() == reply::kind::error) {
            auto const why = classify(r.text());
            bool const refused = why == errc::server_error || why == errc::no_script;
            if (what == question::auth && refused) return errc::authentication_failed;
            if (what == question::select && refused) return errc::bad_database;
            return refused ? errc::server_error : why;
        }
        if (what == question::info) got_.uptime = uptime_in(r.text());
        if (what == question::time) {
            got_.server_time = decode_clock(r);
            if (got_.server_time.count() == 0) return errc::protocol_error;
        }
        ++answered_;
        return {};
    }

    /// Requires: `done()`. Returns: what the server said; `took` is for whoever has a clock.
    [[nodiscard]] greeting const& got() const noexcept { return got_; }

private:
    enum class question : std::uint8_t { auth, select, info, time };

    [[nodiscard]] static std::chrono::seconds uptime_in(std::string_view info) noexcept
    {
        constexpr std::string_view field = "uptime_in_seconds:";
        auto const at = info.find(field);
        return std::chrono::seconds{at == std::string_view::npos ? 0 : number(info.substr(at + field.size()))};
    }

    [[nodiscard]] static std::int64_t number(std::string_view text) noexcept
    {
        std::int64_t n = 0;
        std::from_chars(text.data(), text.data() + text.size(), n);
        return n;
    }

    greeting got_;
    std::array<question, 4> questions_{};
    std::size_t asked_ = 0;
    std::size_t answered_ = 0;
};

}  // namespace holdfast::redis
