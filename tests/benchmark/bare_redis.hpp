// SPDX-License-Identifier: MIT
//
// Blocking hiredis, and nothing around it.
#pragma once

#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/random.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

/// 128 bits in 32 digits.
class bare_token {
public:
    bare_token()
    {
        std::array<unsigned char, 16> bits{};
        if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
            throw std::runtime_error{"getrandom"};
        for (std::size_t i = 0; i < bits.size(); ++i) {
            digits_[2 * i] = "0123456789abcdef"[bits[i] >> 4U];
            digits_[2 * i + 1] = "0123456789abcdef"[bits[i] & 15U];
        }
    }

    [[nodiscard]] std::string_view view() const noexcept { return {digits_.data(), digits_.size()}; }

private:
    std::array<char, 32> digits_{};
};

/// One connection.
class bare_redis {
public:
    explicit bare_redis(std::uint16_t port) : context_{::redisConnect("127.0.0.1", port), &::redisFree}
    {
        if (!context_ || context_->err != 0) throw std::runtime_error{"the bare connection: no server"};
    }

    /// Effects: appends a command to what is to be sent.
    void append(std::initializer_list<std::string_view> words)
    {
        std::array<char const*, 24> text{};
        std::array<std::size_t, 24> sizes{};
        std::size_t count = 0;
        for (auto const word : words) {
            text[count] = word.data();
            sizes[count++] = word.size();
        }
        ::redisAppendCommandArgv(context_.get(), static_cast<int>(count), text.data(), sizes.data());
    }

    void append_set(std::string_view key, bare_token const& token)
    {
        append({"SET", key, token.view(), "NX", "PX", "30000"});
    }

    void append_compare_delete(std::string_view key, bare_token const& token)
    {
        append({"EVALSHA", script_, "1", key, token.view()});
    }

    /// Effects: sends what was appended.
    void flush()
    {
        int done = 0;
        while (done == 0)
            if (::redisBufferWrite(context_.get(), &done) != REDIS_OK) fail();
    }

    /// Effects: reads what is there. Returns: how many answers were complete, all of which said yes.
    [[nodiscard]] int read()
    {
        int count = 0;
        read_each([&](redisReply const& r) {
            require_yes(r);
            ++count;
        });
        return count;
    }

    /// Effects: reads what is there, and calls `f` with each answer and message that is complete.
    template <class F>
    void read_each(F&& f)
    {
        if (::redisBufferRead(context_.get()) != REDIS_OK) fail();
        for (;;) {
            void* raw = nullptr;
            if (::redisGetReplyFromReader(context_.get(), &raw) != REDIS_OK) fail();
            if (raw == nullptr) return;
            f(*owned(raw));
        }
    }

    /// Effects: sends what was appended, and waits for the next answer, which has to be a yes.
    void expect_yes() { require_yes(*answer()); }

    /// Effects: one round trip, the shortest there is.
    void ping()
    {
        append({"PING"});
        expect_yes();
    }

    /// Effects: makes `append_compare_delete` work.
    void load_script()
    {
        script_ = load("if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0");
    }

    /// Effects: makes the server know `script`. Returns: its SHA-1.
    std::string load(std::string_view script)
    {
        append({"SCRIPT", "LOAD", script});
        auto const r = answer();
        return {r->str, static_cast<std::size_t>(r->len)};
    }

    /// Effects: listens to a channel; nothing else can be sent from now on.
    void subscribe(std::string_view channel)
    {
        append({"SUBSCRIBE", channel});
        static_cast<void>(answer());
    }

    [[nodiscard]] int descriptor() const noexcept { return context_->fd; }

private:
    using reply = std::unique_ptr<redisReply, decltype(&::freeReplyObject)>;

    static reply owned(void* raw) { return {static_cast<redisReply*>(raw), &::freeReplyObject}; }

    /// Effects: sends what was appended. Returns: the next answer.
    [[nodiscard]] reply answer()
    {
        void* raw = nullptr;
        if (::redisGetReply(context_.get(), &raw) != REDIS_OK) fail();
        return owned(raw);
    }

    /// Status: OK or PONG; integer: 1.
    static void require_yes(redisReply const& r)
    {
        if (r.type != REDIS_REPLY_STATUS && !(r.type == REDIS_REPLY_INTEGER && r.integer == 1))
            throw std::runtime_error{"the bare lock was refused"};
    }

    [[noreturn]] void fail() const
    {
        throw std::runtime_error{std::string{"the bare connection: "} + context_->errstr};
    }

    std::unique_ptr<redisContext, decltype(&::redisFree)> context_;
    std::string script_;
};

}  // namespace holdfast::benchmark
