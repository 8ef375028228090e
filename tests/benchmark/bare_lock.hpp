// SPDX-License-Identifier: MIT
//
// The limit: the least that any lock must do. It has a fresh owner token each time and looks at its answers, for without
// these it would be no lock; it does not wait, renew, announce a loss, wake anybody or count fencing tokens. With the
// scripts of holdfast in place of these commands, it is the limit of what a client can do with them.
#pragma once

#include "bare_redis.hpp"

#include <holdfast/redis/scripts.hpp>

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

/// The least for the lock of one key: `SET NX PX`, and a script that compares and deletes.
class least_commands {
public:
    explicit least_commands(std::string key) : key_{std::move(key)} {}

    static void prepare(bare_redis& redis) { redis.load_script(); }

    void acquire(bare_redis& redis, bare_token const& token) const { redis.append_set(key_, token); }
    void release(bare_redis& redis, bare_token const& token) const { redis.append_compare_delete(key_, token); }

private:
    std::string key_;
};

/// The scripts of holdfast, without fencing tokens.
class own_scripts {
public:
    explicit own_scripts(std::string key)
        : key_{std::move(key)},
          queue_{"holdfast:queue:{" + key_ + '}'},
          next_{"holdfast:next:{" + key_ + '}'},
          channel_{"holdfast:free:{" + key_ + '}'}
    {
    }

    static void prepare(bare_redis& redis)
    {
        for (auto const* const one : {&redis::scripts::acquire, &redis::scripts::release})
            if (redis.load(one->text()) != one->sha1) throw std::runtime_error{"a script has another SHA-1"};
    }

    void acquire(bare_redis& redis, bare_token const& token) const
    {
        redis.append({"EVALSHA", redis::scripts::acquire.sha1, "3", key_, queue_, next_, token.view(), "30000"});
    }
    void release(bare_redis& redis, bare_token const& token) const
    {
        redis.append({"EVALSHA", redis::scripts::release.sha1, "3", key_, queue_, next_, token.view(), channel_});
    }

private:
    std::string key_;
    std::string queue_;
    std::string next_;
    std::string channel_;
};

/// The bare lock on one server.
template <class Commands>
class bare_lock {
public:
    bare_lock(std::uint16_t port, std::string key) : redis_{port}, commands_{std::move(key)}
    {
        Commands::prepare(redis_);
    }

    void lock()
    {
        token_ = {};
        commands_.acquire(redis_, token_);
        redis_.expect_yes();
    }

    void unlock()
    {
        commands_.release(redis_, token_);
        redis_.expect_yes();
    }

private:
    bare_redis redis_;
    Commands commands_;
    bare_token token_;
};

/// The bare lock on several masters: a connection for each.
template <class Commands>
class bare_masters {
public:
    explicit bare_masters(std::vector<std::uint16_t> const& ports)
    {
        for (auto const port : ports) Commands::prepare(nodes_.emplace_back(port));
        owed_.resize(nodes_.size());
    }

    /// Effects: asks one server after the other.
    void lock_in_turn(Commands const& of)
    {
        token_ = {};
        for (auto& one : nodes_) {
            of.acquire(one, token_);
            one.expect_yes();
        }
    }

    void unlock_in_turn(Commands const& of)
    {
        for (auto& one : nodes_) {
            of.release(one, token_);
            one.expect_yes();
        }
    }

    /// Effects: asks all at once, and goes on with the answers of a majority; the others are read behind.
    void lock(Commands const& of)
    {
        token_ = {};
        for (auto& one : nodes_) of.acquire(one, token_);
        await_majority();
    }

    void unlock(Commands const& of)
    {
        for (auto& one : nodes_) of.release(one, token_);
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
