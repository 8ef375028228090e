// SPDX-License-Identifier: MIT
//
// The limit: blocking hiredis, and the least that any lock must do. It has a fresh owner token each time and looks at
// its answers, for without these it would be no lock; it does not wait, renew, announce a loss, wake anybody or count
// fencing tokens.
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

    /// Effects: makes the server know `script`. Returns: by what name.
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

/// The bare lock on one server.
class bare_lock {
public:
    bare_lock(std::uint16_t port, std::string key) : redis_{port}, key_{std::move(key)} { redis_.load_script(); }

    void lock()
    {
        token_ = {};
        redis_.append_set(key_, token_);
        redis_.expect_yes();
    }

    void unlock()
    {
        redis_.append_compare_delete(key_, token_);
        redis_.expect_yes();
    }

private:
    bare_redis redis_;
    std::string key_;
    bare_token token_;
};

/// The bare lock on several masters: a connection for each.
class bare_masters {
public:
    explicit bare_masters(std::vector<std::uint16_t> const& ports)
    {
        for (auto const port : ports) nodes_.emplace_back(port).load_script();
        owed_.resize(nodes_.size());
    }

    /// Effects: asks one server after the other.
    void lock_in_turn(std::string_view key)
    {
        token_ = {};
        for (auto& one : nodes_) {
            one.append_set(key, token_);
            one.expect_yes();
        }
    }

    void unlock_in_turn(std::string_view key)
    {
        for (auto& one : nodes_) {
            one.append_compare_delete(key, token_);
            one.expect_yes();
        }
    }

    /// Effects: asks all at once, and goes on with the answers of a majority; the others are read behind.
    void lock(std::string_view key)
    {
        token_ = {};
        for (auto& one : nodes_) one.append_set(key, token_);
        await_majority();
    }

    void unlock(std::string_view key)
    {
        for (auto& one : nodes_) one.append_compare_delete(key, token_);
        await_majority();
    }

    /// Effects: waits until no server has anything left to do for anybody.
    void settle()
    {
        for (auto& one : nodes_) one.ping();
    }

private:
    void await_majority()
    {
        for (auto& one : nodes_) one.flush();
        std::vector<pollfd> polled;
        for (auto const& one : nodes_) polled.push_back({.fd = one.descriptor(), .events = POLLIN, .revents = 0});
        for (auto& count : owed_) ++count;
        for (std::size_t yes = 0; yes <= nodes_.size() / 2;) {
            if (::poll(polled.data(), polled.size(), -1) < 0) throw std::runtime_error{"poll"};
            for (std::size_t i = 0; i < nodes_.size(); ++i) {
                if (polled[i].revents == 0) continue;
                owed_[i] -= nodes_[i].read();
                if (owed_[i] == 0) ++yes;
            }
        }
    }

    std::vector<bare_redis> nodes_;
    std::vector<int> owed_;  // answers under way
    bare_token token_;
};

}  // namespace holdfast::benchmark
