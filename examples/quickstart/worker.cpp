// SPDX-License-Identifier: MIT
#include "worker.hpp"

#include <holdfast/redlock.hpp>
#ifdef QUICKSTART_ZOOKEEPER
#include <holdfast/zookeeper.hpp>
#endif

#include <algorithm>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace quickstart {
namespace {

using namespace std::chrono_literals;
using holdfast::boot_clock;

std::string lock_of(unsigned worker, worker_settings const& settings)
{
    return settings.guarded ? settings.lock : settings.lock + "/" + std::to_string(worker);
}

/// The parent stops this process in here, past its lease, and continues it.
void wait_to_be_stopped(board& shared, section& s, holdfast::lease const& lease)
{
    shared.in_section = s.worker;
    while (!shared.go_on) {
        if (auto const end = lease.expires_at(); end > s.lease_end) s.lease_end = end;
        std::this_thread::sleep_for(1ms);
    }
}

/// What the lock is for: reads the counter, thinks, and writes it back. Does not look whether the lease still lasts:
/// that is the register's part, to which the late write of a paused holder is a write with an old token.
void do_section(board& shared, section& s, holdfast::lease const& lease)
{
    s.token = lease.fencing_token();
    s.lease_end = lease.expires_at();
    s.seen = shared.counter.load();
    std::this_thread::sleep_for(200us);
    if (shared.stop_next.exchange(false)) wait_to_be_stopped(shared, s, lease);
    bool const still_held = lease.still_held();
    shared.counter.store(s.seen + 1);
    s.register_turn = shared.fenced.write(s.token);
    s.released = boot_clock::now();  // before it is asked for the last time whether the lease lasts
    s.late = !still_held || !lease.still_held();
}

void run(unsigned me, board& shared, auto& orders)
{
    std::minstd_rand random{me + 1};
    std::uniform_int_distribution pause{500, 4000};

    auto& mine = shared.journals[me];
    for (std::size_t n = 0; n < journal::capacity && !shared.stop; ++n) {
        auto& s = mine.sections[n];
        s.worker = me;
        {
            std::scoped_lock const hold{orders};
            s.acquired = boot_clock::now();
            do_section(shared, s, orders.lease());
            mine.count.store(n + 1, std::memory_order_release);
        }
        std::this_thread::sleep_for(std::chrono::microseconds{pause(random)});
    }
}

/// Effects: calls `f` with a lock of this name.
void with_lock_named(std::string const& name, worker_settings const& settings, auto&& f)
{
    if (settings.zookeeper.empty()) {
        holdfast::redlock::masters masters{settings.masters,
                                           {.node_timeout = 500ms,  // a machine that runs all of this may be busy
                                            .restart_guard = settings.restart_guard}};
        holdfast::redlock::mutex orders{
            masters, name, {.ttl = settings.ttl, .unavailable_after = settings.unavailable_after}};
        return f(orders);
    }
#ifdef QUICKSTART_ZOOKEEPER
    holdfast::zookeeper::session zk{settings.zookeeper, {.session_timeout = settings.ttl, .label = "quickstart"}};
    holdfast::zookeeper::mutex orders{zk, name, {.unavailable_after = settings.unavailable_after}};
    f(orders);
#else
    throw std::runtime_error{"this program was built without ZooKeeper"};
#endif
}

}  // namespace

void check(worker_settings const& settings)
{
    with_lock_named(settings.lock, settings, [](auto&) {});
}

int work(unsigned me, worker_settings const& settings, board& shared)
try {
    with_lock_named(lock_of(me, settings), settings, [&](auto& orders) { run(me, shared, orders); });
    return 0;
} catch (std::runtime_error const& e) {
    std::string_view const why = e.what();
    auto& error = shared.journals[me].error;
    std::copy_n(why.begin(), std::min(why.size(), error.size() - 1), error.begin());
    return 1;
}

}  // namespace quickstart
