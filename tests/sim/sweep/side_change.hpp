// SPDX-License-Identifier: MIT
#pragma once

#include "user.hpp"

#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/redis/acquire_operation.hpp>
#include <holdfast/redis/quorum_operation.hpp>
#include <holdfast/sim/call.hpp>
#include <holdfast/sim/network.hpp>
#include <holdfast/sim/process.hpp>
#include <holdfast/sim/transport.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace holdfast::test {

/// When nothing goes wrong any more, one client of a read-write lock goes from one side to the other, and another one
/// wants to read.
///
/// | the first one | what the servers know | the other one |
/// |---|---|---|
/// | becomes a reader | they forget that it gave the writer's lease back | reads beside it, soon |
/// | becomes a writer | it pauses before it gives the reader's lease back; it renews both | is kept out until then |
class side_change {
public:
    /// What the first one becomes.
    enum class direction : std::uint8_t { reader, writer };

    side_change(sim::transport& one, sim::transport& other, keys_of_modes keys, sim::network& servers,
                std::chrono::milliseconds ttl, direction to, record& r)
        : way_{one},
          others_way_{other},
          first_{to == direction::writer ? keys.together : keys.alone},
          second_{to == direction::writer ? keys.alone : keys.together},
          readers_{keys.together},
          servers_{servers},
          ttl_{ttl},
          to_writer_{to == direction::writer},
          record_{r}
    {
    }

    sim::process change()
    {
        auto& me = way_.client();
        owner_token held;
        std::optional<owner_token> then;
        for (int tries = 4; !then; --tries) {  // what others have left behind may be in the way for a ttl
            if (tries == 0) record_.breach("K6", "one that holds the lock alone could not change its side");
            if (tries == 0) co_return;
            redis::acquire_operation first{way_, first_, wish()};
            sim::call asking{me};
            first.start(asking);
            co_await asking.ended_by();
            auto const got = first.outcome();
            if (!got) record_.breach("K6", "one that changes its side was told: " + got.code().message());
            if (!got) co_return;
            held = got->token;
            redis::acquire_operation second{way_, second_, {.ttl = ttl_, .once = true, .beside = held}};
            sim::call asking_beside{me};
            second.start(asking_beside);
            co_await asking_beside.ended_by();
            if (auto const more = second.outcome()) then = more->token;
            for (unsigned node = 0; node < servers_.size(); ++node) servers_[node].save();
            if (then && to_writer_) break;
            co_await give_back(way_, first_, held);
            if (!then) co_await me.sleep_until(me.present() + ttl_);
        }
        if (!to_writer_)
            for (unsigned node = 0; node < servers_.size(); ++node) servers_[node].restore();
        changed_ = true;
        auto const end = me.present() + (to_writer_ ? 3 : 6) * ttl_;
        bool good = true;
        while (good && !reads_ && me.present() < end) {
            co_await me.sleep_until(me.present() + ttl_ / 4);
            redis::extend_operation more{way_, second_, *then, ttl_};
            sim::call extending{me};
            more.start(extending);
            co_await extending.ended_by();
            good = static_cast<bool>(more.outcome());
            if (!to_writer_) continue;
            redis::extend_operation reader{way_, first_, held, ttl_};
            sim::call renewing{me};
            reader.start(renewing);
            co_await renewing.ended_by();
        }
        if (!good) record_.breach("K1", "a lock was lost although nothing goes wrong, and it was renewed");
        if (to_writer_ && reads_) record_.breach("K1", "a reader got in beside a writer that was a reader");
        if (!to_writer_ && !reads_)
            record_.breach("K6", "a reader was kept out for long although only a reader has the lock");
        if (to_writer_) co_await give_back(way_, first_, held);
        co_await give_back(way_, second_, *then);
    }

    sim::process read()
    {
        auto& me = others_way_.client();
        auto const end = me.present() + 20 * ttl_;
        while (!changed_ && me.present() < end) co_await me.sleep_until(me.present() + ttl_ / 16);
        redis::acquire_operation acquire{others_way_, readers_, wish()};
        sim::call asking{me};
        acquire.start(asking);
        co_await asking.ended_by();
        auto const got = acquire.outcome();
        if (!got) record_.breach("K6", "one that wants to read was told: " + got.code().message());
        if (!got) co_return;
        reads_ = true;
        co_await give_back(others_way_, readers_, got->token);
    }

private:
    static sim::process give_back(sim::transport& way, redis::shared_keys lock, owner_token token)
    {
        redis::release_operation release{way, std::move(lock)};
        release.bind(token);
        sim::call releasing{way.client()};
        release.start(releasing);
        co_await releasing.ended_by();
    }

    [[nodiscard]] acquire_request wish() const
    {
        return {.ttl = ttl_, .retry = {.first = std::chrono::microseconds{500}, .most = ttl_}};
    }

    sim::transport& way_;
    sim::transport& others_way_;
    redis::shared_keys first_;
    redis::shared_keys second_;
    redis::shared_keys readers_;
    sim::network& servers_;
    std::chrono::milliseconds ttl_;
    bool to_writer_;
    record& record_;
    bool changed_ = false;
    bool reads_ = false;
};

}  // namespace holdfast::test
