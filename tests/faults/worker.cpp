// SPDX-License-Identifier: MIT
#include "worker.hpp"

#include "check/history.hpp"
#include "journal.hpp"

#include <support/eventually.hpp>

#include <holdfast/core/error.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <random>
#include <stop_token>
#include <system_error>
#include <thread>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;

release_result result_of(std::error_code ec)
{
    if (!ec) return release_result::freed;
    return ec == errc::lease_lost ? release_result::lost : release_result::unknown;
}

/// One thread of a worker, with one lock.
class hand {
public:
    hand(duty const& what, std::size_t i, stage& on, store const& client)
        : what_{what},
          on_{on},
          slot_{on.slots.at(what.first_slot + i)},
          resource_{on.resources.at(what.lock_number(i))},
          lock_number_{what.lock_number(i)},
          journal_{what.folder, what.clients.at(i)},
          lock_{client, what.lock_name(i), what.where.options()},
          random_{what.clients.at(i)}
    {
        slot_.staying = false;
        slot_.client = what.clients.at(i);
    }

    void work()
    {
        std::uniform_int_distribution<std::int64_t> rest{0, 2 * what_.rest.count()};
        while (!on_.stop) {
            ++hold_;
            note({.what = event::acquire_begun});
            if (take()) section();
            std::this_thread::sleep_for(std::chrono::microseconds{rest(random_)});
        }
    }

private:
    bool take()
    try {
        if (lock_.try_lock_for(what_.patience)) return true;
        note({.what = event::acquire_failed});
        return false;
    } catch (error const&) {
        note({.what = event::acquire_unknown});
        std::this_thread::sleep_for(5ms);
        return false;
    }

    void section()
    {
        auto const granted = monotonic_now();
        auto const lease = lock_.lease();
        valid_until_ = to_monotonic(lease.expires_at());
        note({.at = granted, .valid_until = valid_until_, .token = lease.fencing_token(), .what = event::acquire_ok});
        std::atomic<bool> announced{false};
        std::stop_callback const on_loss{lease.lost_token(), [&] {
                                             note({.what = event::loss_announced});
                                             ++slot_.losses;
                                             announced = true;
                                         }};
        auto const seen = resource_.counter.load();
        std::this_thread::sleep_for(std::chrono::microseconds{100 + random_() % 400});
        while (slot_.stay && !on_.stop) {
            slot_.staying = true;
            look_at(lease);
            std::this_thread::sleep_for(300us);
        }
        look_at(lease);
        bool const held = lease.still_held();
        note({.value = held ? 1U : 0U, .what = event::answered});
        if (!held) static_cast<void>(test::eventually([&] { return announced.load(); }, 1min));
        write(lease.fencing_token());
        if (held) {
            resource_.counter = seen + 1;
            note({.value = seen + 1, .what = event::counter_written});
        }
        slot_.staying = false;
        std::error_code ec;
        note({.what = event::release_begun});
        lock_.unlock(ec);
        // One that was not waited for says nothing of what became of it.
        auto const result = !ec && what_.where.deferred_release ? release_result::unknown : result_of(ec);
        note({.value = static_cast<std::uint64_t>(result), .what = event::release_done});
        ++slot_.sections;
    }

    /// A write of the holder is sent whether or not the lock is still its own: that is for the register to say.
    void write(std::uint64_t token)
    {
        auto const turn =
            what_.tokens_checked ? resource_.fenced.write(token) : resource_.fenced.write_unchecked(token);
        note({.value = turn, .what = turn != 0 ? event::write_taken : event::write_refused});
    }

    void look_at(lease const& l)
    {
        auto const until = to_monotonic(l.expires_at());
        if (until <= valid_until_) return;
        valid_until_ = until;
        note({.valid_until = until, .what = event::renewed});
    }

    void note(record r)
    {
        r.lock = lock_number_;
        r.hold = hold_;
        journal_.write(r);
    }

    duty const& what_;
    stage& on_;
    slot& slot_;
    resource& resource_;
    std::uint32_t lock_number_;
    journal journal_;
    mutex lock_;
    std::minstd_rand random_;
    std::uint32_t hold_ = 0;
    std::int64_t valid_until_ = 0;
};

}  // namespace

std::string duty::lock_name(std::size_t i) const
{
    auto name = "faults/" + std::to_string(lock_number(i));
    return guarded ? name : name + "/" + std::to_string(clients.at(i));
}

int work(duty const& what, stage& on)
try {
    auto const client = connect(what.where);
    std::vector<std::jthread> threads;
    threads.reserve(what.clients.size());
    std::atomic<bool> failed{false};
    for (std::size_t i = 0; i < what.clients.size(); ++i)
        threads.emplace_back([&, i] {
            try {
                hand{what, i, on, client}.work();
            } catch (std::exception const& e) {
                std::fprintf(stderr, "client %u: %s\n", what.clients[i], e.what());
                failed = true;
            }
        });
    auto& warm = on.warm.at(what.first_slot);
    while (!on.stop && !on.warmed) {
        auto const now = own_footprint();
        warm = {std::max(warm.descriptors, now.descriptors), std::max(warm.threads, now.threads),
                std::max(warm.resident, now.resident)};
        std::this_thread::sleep_for(20ms);
    }
    while (!on.stop) std::this_thread::sleep_for(5ms);
    on.late.at(what.first_slot) = own_footprint();
    threads.clear();
    return failed ? 1 : 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "worker: %s\n", e.what());
    return 1;
}

}  // namespace holdfast::faults
