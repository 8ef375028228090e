// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/source.hpp>
#include <holdfast/io/stream.hpp>
#include <holdfast/redis/admission.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/request.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <new>
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

/// A connection to a Redis server that has said hello: authenticated, in its database, and asked for its clock where that matters. Made
/// when it is needed; a failure is remembered for a moment, so that nobody waits for a server that is down again and again.
///
/// | state    | meaning                            | left by |
/// |----------|------------------------------------|---------|
/// | down     | no connection; `why()` says why    | connect → greeting, when the pause after a failure is over |
/// | greeting | connecting, or waiting for answers to the hello | all answered → up; an error, end of file → down |
/// | up       | replies go to `on_reply`           | end of file, an error, `disconnect` → down |
class link : public io::source {
public:
    enum class hello { plain, with_clock };

    link(io::reactor& reactor, endpoint const& server, std::chrono::milliseconds connect_timeout, hello h)
        : reactor_{reactor}, server_{server}, connect_timeout_{connect_timeout}, hello_{h}
    {
        reactor_.add(*this);
    }

    link(link const&) = delete;
    link& operator=(link const&) = delete;

    /// Returns: no error where the link is up or on its way up, having begun to connect where it has to; otherwise why it is down.
    std::error_code connect(boot_clock::time_point now)
    {
        if (state_ == state::greeting && now - since_ >= connect_timeout_) disconnect(errc::cannot_connect, now);
        if (state_ != state::down) return {};
        if (now < not_before_) return why_;
        since_ = now;
        state_ = state::greeting;
        if (!stream_.open(target())) {
            disconnect(errc::cannot_connect, now);
            return why_;
        }
        reactor_.changed();
        if (stream_.now() == io::stream::state::open) say_hello();
        return {};
    }

    /// Effects: closes the connection, because of `why`.
    void disconnect(std::error_code why, boot_clock::time_point now)
    {
        if (state_ == state::down) return;
        bool const was_up = state_ == state::up;
        stream_.close();
        reader_.reset();
        reactor_.changed();
        state_ = state::down;
        why_ = why;
        pause_ = was_up ? boot_clock::duration::zero() : std::clamp<boot_clock::duration>(2 * pause_, first_pause, longest_pause);
        not_before_ = now + pause_;
        ++generation_;
        on_down(was_up ? errc::connection_lost : why, now);
    }

    [[nodiscard]] bool up() const noexcept { return state_ == state::up; }

    [[nodiscard]] int descriptor() const noexcept override { return stream_.descriptor(); }
    [[nodiscard]] short interest() const noexcept override { return stream_.interest(); }

    void on_ready(short, boot_clock::time_point now) override
    try {
        using enum io::stream::state;
        if (stream_.now() == resolving || stream_.now() == connecting) {
            if (!stream_.go_on()) return disconnect(errc::cannot_connect, now);
            if (stream_.now() == open) say_hello();
            reactor_.changed();
            return;
        }
        if (stream_.out()->blocked()) stream_.out()->flush();
        read(now);
    } catch (std::bad_alloc const&) {
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
    }

protected:
    ~link() { reactor_.remove(*this); }

    virtual void on_up(greeting const& g, boot_clock::time_point now) = 0;
    virtual void on_reply(reply const& r, boot_clock::time_point now) = 0;
    virtual void on_down(std::error_code why, boot_clock::time_point now) noexcept = 0;

    /// Effects: sends `bytes`. Requires: `up()`.
    void write(std::string_view bytes) { reactor_.send(stream_.out(), bytes); }

    [[nodiscard]] bool readable() const noexcept { return stream_.readable(); }

private:
    enum class state { down, greeting, up };
    enum class expected { auth, select, info, time };

    static constexpr std::chrono::milliseconds first_pause{5};
    static constexpr std::chrono::milliseconds longest_pause{500};

    [[nodiscard]] io::stream_target target() const { return {server_.host, std::to_string(server_.port), server_.unix_path}; }

    void say_hello()
    {
        asked_ = boot_clock::now();
        reader_ = std::make_unique<reply_reader>();
        greeting_ = {};
        expected_count_ = 0;
        std::string bytes;
        auto const say = [&](expected what, std::initializer_list<std::string_view> words) {
            expected_[expected_count_++] = what;
            bytes += format({words.begin(), words.size()});
        };
        if (!server_.password.empty() && server_.user.empty()) say(expected::auth, {"AUTH", server_.password});
        if (!server_.user.empty()) say(expected::auth, {"AUTH", server_.user, server_.password});
        if (server_.database != 0) say(expected::select, {"SELECT", std::to_string(server_.database)});
        if (hello_ == hello::with_clock) {
            say(expected::info, {"INFO", "server"});
            say(expected::time, {"TIME"});
        }
        answered_ = 0;
        write(bytes);
        if (expected_count_ == 0) come_up(asked_);
    }

    void read(boot_clock::time_point now)
    {
        std::array<char, 16'384> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
        for (;;) {
            auto const n = stream_.read(buffer);
            if (!n) return disconnect(state_ == state::up ? errc::connection_lost : errc::cannot_connect, now);
            if (*n == 0) return;
            if (!reader_->feed({buffer.data(), *n})) return disconnect(errc::protocol_error, now);
            auto const generation = generation_;
            for (;;) {
                auto const one = reader_->next();
                if (!one) return disconnect(errc::protocol_error, now);
                if (!*one) break;
                if (state_ == state::up)
                    on_reply(one->get(), now);
                else
                    on_greeting(one->get(), now);
                if (generation != generation_) return;
            }
            if (*n < buffer.size()) return;
        }
    }

    void on_greeting(reply const& r, boot_clock::time_point now)
    {
        auto const what = expected_[answered_];
        if (r.what() == reply::kind::error) {
            auto why = classify(r.text());
            if (what == expected::auth && why == errc::server_error) why = errc::authentication_failed;
            if (what == expected::select && why == errc::server_error) why = errc::bad_database;
            return disconnect(why, now);
        }
        if (what == expected::info) greeting_.uptime = uptime_in(r.text());
        if (what == expected::time) {
            if (r.size() != 2) return disconnect(errc::protocol_error, now);
            greeting_.server_time = std::chrono::seconds{number(r[0].text())} + std::chrono::microseconds{number(r[1].text())};
        }
        if (++answered_ == expected_count_) come_up(now);
    }

    void come_up(boot_clock::time_point now)
    {
        state_ = state::up;
        pause_ = {};
        greeting_.took = now - asked_;
        on_up(greeting_, now);
    }

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

    io::reactor& reactor_;
    endpoint server_;
    std::chrono::milliseconds connect_timeout_;
    hello hello_;
    io::stream stream_;
    std::unique_ptr<reply_reader> reader_;
    state state_ = state::down;
    std::error_code why_ = errc::cannot_connect;
    boot_clock::time_point since_{};
    boot_clock::time_point not_before_{};
    boot_clock::duration pause_{};
    unsigned generation_ = 0;
    boot_clock::time_point asked_{};
    greeting greeting_;
    std::array<expected, 4> expected_{};
    std::size_t expected_count_ = 0;
    std::size_t answered_ = 0;
};

}  // namespace holdfast::redis
