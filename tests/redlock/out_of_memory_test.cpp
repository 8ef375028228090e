// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a lock on several masters.
#include "support/refused_memory.hpp"
#include "support/refusing_new.hpp"

#ifndef HOLDFAST_SANITIZED

#include "masters.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/redlock.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::redlock::masters;
using holdfast::redlock::mutex;
using holdfast::test::eventually;
using holdfast::test::redis_fleet;
using holdfast::test::refuse_each_request;
using holdfast::test::whose;

namespace {

constexpr char const* fence = "holdfast:fence:{orders}";

/// Three masters, and a client with a short ttl: what cannot be rolled back without memory is gone after it.
struct three_masters {
    redis_fleet servers{3};
    masters client{servers.urls(), {.node_timeout = 250ms, .restart_guard = 0ms}};

    [[nodiscard]] static holdfast::lock_options options()
    {
        return {.ttl = 600ms, .retry = {.most = 20ms}, .unavailable_after = 1s};
    }

    [[nodiscard]] bool empty()
    {
        auto const all = servers.command({"EXISTS", "orders"});
        return std::all_of(all.begin(), all.end(), [](auto const& one) { return one.integer == 0; });
    }

    /// Effects: has the masters count from different fences: who is granted the lock has to write the greatest back.
    void unsettle()
    {
        servers[at_ % 3].command({"INCRBY", fence, "1000"});
        ++at_;
    }

    /// Returns: how many masters have counted up to `token`.
    [[nodiscard]] long confirmed(std::uint64_t token)
    {
        auto const all = servers.command({"GET", fence});
        return std::count_if(all.begin(), all.end(),
                             [&](auto const& one) { return !one.text.empty() && std::stoull(one.text) >= token; });
    }

private:
    std::size_t at_ = 0;
};

/// Effects: locks `m` as soon as that can be done. Returns: whether it could.
bool take(mutex& m)
{
    return eventually([&] {
        try {
            return m.try_lock_for(1s);
        } catch (std::system_error const&) {
            return false;
        }
    });
}

}  // namespace

TEST_CASE(
    "a lock of several masters whose memory runs out in any step leaves nothing, and is as good as new when there is memory")
{
    auto const of = GENERATE(whose::this_threads, whose::everybodys);
    long const many = GENERATE(1, 1000);
    CAPTURE(static_cast<int>(of), many);
    three_masters three;
    mutex m{three.client, "orders", three_masters::options()};
    masters elsewhere{three.servers.urls(), {.node_timeout = 250ms, .restart_guard = 0ms}};
    mutex rival{elsewhere, "orders", three_masters::options()};
    REQUIRE(take(m));
    m.unlock();
    int written_back = 0;
    auto const asked = refuse_each_request(
        of, many,
        [&] {
            m.lock();
            try {
                std::error_code ec;
                m.extend(2s, ec);
            } catch (std::bad_alloc const&) {
            }
            m.unlock();
        },
        [&] {
            m.unlock();
            REQUIRE(eventually([&] { return three.empty(); }));
            three.unsettle();
            REQUIRE(take(m));
            auto const token = m.lease().fencing_token();
            if (m.lease().still_held()) {
                CHECK(three.confirmed(token) >= 2);
                ++written_back;
            }
            m.unlock();
            REQUIRE(eventually([&] { return three.empty(); }));
            three.unsettle();
        });
    CHECK(asked > 5);
    CHECK(written_back > 3);
    CHECK(take(rival));
}

TEST_CASE("an attempt at several masters that fails while memory runs out takes back its votes")
{
    auto const of = GENERATE(whose::this_threads, whose::everybodys);
    long const many = GENERATE(1, 1000);
    CAPTURE(static_cast<int>(of), many);
    three_masters three;
    mutex m{three.client, "orders", three_masters::options()};
    REQUIRE(take(m));
    m.unlock();
    REQUIRE(eventually([&] { return three.empty(); }));
    for (std::size_t const i : {0U, 2U}) three.servers[i].command({"SET", "orders", "another"});
    auto const others = [&] {
        return three.servers[0].command({"GET", "orders"}).text == "another" &&
               three.servers[2].command({"GET", "orders"}).text == "another";
    };
    CHECK(refuse_each_request(
              of, many,
              [&] {
                  if (m.try_lock()) std::abort();
              },
              [&] {
                  REQUIRE(eventually([&] { return three.servers[1].command({"EXISTS", "orders"}).integer == 0; }));
                  REQUIRE(others());
              })
          > 3);
    for (std::size_t const i : {0U, 2U}) three.servers[i].command({"DEL", "orders"});
    REQUIRE(take(m));
    m.unlock();
    CHECK(eventually([&] { return three.empty(); }));
}

#endif
