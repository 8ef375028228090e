// SPDX-License-Identifier: MIT
//
// P12: a thousand locks in flight from one thread, over one Redis. The target is against the least that a lock needs;
// what the library adds to its own scripts is seen beside a pipeline of these.
#include "bare_lock.hpp"
#include "bare_redis.hpp"
#include "paired.hpp"
#include "support/redis_server.hpp"
#include "unnamed.hpp"
#include "workloads.hpp"

#include <holdfast/asio.hpp>
#include <holdfast/redis.hpp>

#include <asio/bind_executor.hpp>
#include <asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace holdfast::benchmark {

namespace {

constexpr std::size_t in_flight_at_a_time = 1000;

[[nodiscard]] std::string key_of(std::string const& prefix, std::size_t i) { return prefix + '/' + std::to_string(i); }

/// Each of the locks is taken and given back again and again: its handlers, called by one thread, do it.
class async_locks {
public:
    async_locks(redis::client const& client, std::string const& prefix, lock_options const& options)
    {
        for (std::size_t i = 0; i < in_flight_at_a_time; ++i)
            mutexes_.push_back(std::make_unique<mutex>(client, key_of(prefix, i), options));
    }

    /// Returns: pairs of lock and unlock per second, of `pairs`.
    [[nodiscard]] double operator()(std::size_t pairs)
    {
        left_ = pairs;
        io_.restart();
        auto const seconds = seconds_of([this] {
            for (auto& m : mutexes_) lock(*m);
            io_.run();
        });
        return static_cast<double>(pairs) / seconds;
    }

private:
    void lock(mutex& m)
    {
        if (left_ == 0) return;
        --left_;
        async_lock(m, asio::bind_executor(io_, [this, &m](std::error_code ec) {
                       require(ec);
                       async_unlock(m, asio::bind_executor(io_, [this, &m](std::error_code lost) {
                                        require(lost);
                                        lock(m);
                                    }));
                   }));
    }

    static void require(std::error_code ec)
    {
        if (ec) throw std::system_error{ec};
    }

    asio::io_context io_{1};
    std::vector<std::unique_ptr<mutex>> mutexes_;
    std::size_t left_ = 0;
};

/// The bare lock over one connection, with as many in flight.
template <class Commands>
class bare_pipeline {
public:
    bare_pipeline(std::uint16_t port, std::string const& prefix) : redis_{port}
    {
        Commands::prepare(redis_);
        for (std::size_t i = 0; i < in_flight_at_a_time; ++i)
            locks_.push_back({.commands = Commands{key_of(prefix, i)}});
    }

    [[nodiscard]] double operator()(std::size_t pairs)
    {
        auto left = pairs;
        auto const seconds = seconds_of([&] {
            std::deque<one*> asked;
            auto const ask = [&](one& l) {
                if (!l.held) {
                    if (left == 0) return;
                    --left;
                    l.token = {};
                    l.commands.acquire(redis_, l.token);
                } else {
                    l.commands.release(redis_, l.token);
                }
                asked.push_back(&l);
            };
            for (auto& l : locks_) ask(l);
            while (!asked.empty()) {
                redis_.flush();
                for (auto answers = redis_.read(); answers > 0; --answers) {
                    auto& l = *asked.front();
                    asked.pop_front();
                    l.held = !l.held;
                    ask(l);
                }
            }
        });
        return static_cast<double>(pairs) / seconds;
    }

private:
    struct one {
        Commands commands;
        bare_token token{};
        bool held = false;
    };

    bare_redis redis_;
    std::vector<one> locks_;
};

}  // namespace

void in_flight(run_options const& options, report& to)
{
    test::redis_server server;
    redis::client client{server.url(), unnamed};
    async_locks plain{client, "plain", {.ttl = std::chrono::minutes{1}, .fencing = false}};
    async_locks fenced{client, "fenced", {.ttl = std::chrono::minutes{1}}};
    bare_pipeline<least_commands> bare{server.port(), "bare"};
    bare_pipeline<own_scripts> scripted{server.port(), "scripted"};

    std::size_t const pairs = options.quick ? 2'000 : 50'000;
    auto const rate = [&](auto& all) { return [&all, pairs] { return all(pairs); }; };
    schedule const turns{.repetitions = 5, .turns = options.quick ? 1 : 3, .warm_up = 1};
    auto const [off, on, limit, same] = take_turns(turns, rate(plain), rate(fenced), rate(bare), rate(scripted));

    std::string const rival = "hiredis, 1,000 in flight: SET NX PX, then EVALSHA compare-delete";
    to.add(compare_rates("P12", "1,000 locks in flight from one thread, fencing off", rival, off, limit,
                         target::at_least(0.5)));
    to.add(compare_rates("P12", "1,000 locks in flight from one thread, fencing on", rival, on, limit, std::nullopt));
    to.add(compare_rates("P12", "1,000 locks in flight from one thread, fencing off",
                         "hiredis, 1,000 in flight: the same scripts", off, same, std::nullopt));
}

}  // namespace holdfast::benchmark
