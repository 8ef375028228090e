// SPDX-License-Identifier: MIT
//
// Locks that end in unusual ways. Each case is a process of its own: it has to end by itself, and well.
#include "rows.hpp"

#include "../site.hpp"

#include <support/eventually.hpp>
#include <support/goes_on.hpp>
#include <support/locks.hpp>
#include <support/process.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::faults::lifecycle {
namespace {

using namespace std::chrono_literals;
using test::child;
using test::eventually;
using test::goes_on;

constexpr std::chrono::milliseconds ttl{20'000};
constexpr std::chrono::milliseconds operation_timeout{10'000};
constexpr std::chrono::minutes connect_timeout{1};
constexpr std::chrono::milliseconds session_timeout{30'000};
constexpr std::chrono::milliseconds session_that_ends{9000};  // where the server dies
constexpr std::chrono::milliseconds session_operation_timeout{
    3000};  // a release waits that long for a server that is dead
constexpr std::chrono::minutes hanging{2};

struct oops {};

/// What a case has: servers, and the locks of their store.
struct scene {
    std::vector<std::string> servers;
    lock_options options{.ttl = ttl};
    std::chrono::milliseconds session = session_timeout;
    int rounds = 50;  ///< of what is done again and again
};

struct of_redis {
    using client = redis::client;
    using mutex = redis::mutex;
    static client connect(scene const& s)
    {
        return client{s.servers.at(0), {.operation_timeout = operation_timeout, .connect_timeout = connect_timeout}};
    }
};

struct of_redlock {
    using client = redlock::masters;
    using mutex = redlock::mutex;
    static client connect(scene const& s)
    {
        return client{s.servers,
                      {.node_timeout = operation_timeout,
                       .connect_timeout = connect_timeout,
                       .restart_guard = std::chrono::milliseconds{0}}};
    }
};

#ifdef HOLDFAST_TEST_ZOOKEEPER
struct of_zookeeper {
    using client = zookeeper::session;
    using mutex = zookeeper::mutex;
    static client connect(scene const& s)
    {
        return client{s.servers.at(0), {.session_timeout = s.session, .operation_timeout = session_operation_timeout}};
    }
};
#endif

/// One case: `act` runs in a process of its own, and returns 0 where all is well. One that is to see something happen
/// stops itself before.
struct unusual_end {
    std::string name;
    std::function<int(scene const&)> act;
    bool server_dies = false;  ///< when the process has stopped itself
    bool frees = true;         ///< the lock is free when it has ended, before its ttl
};

template <class Store>
int unwinding(scene const& s)
{
    auto client = Store::connect(s);
    typename Store::mutex a{client, "orders", s.options};
    typename Store::mutex b{client, "stock", s.options};
    try {
        std::scoped_lock const both{a, b};
        ::raise(SIGSTOP);
        throw oops{};
    } catch (oops) {
        return a.lease().still_held() || b.lease().still_held() ? 1 : 0;
    }
}

template <class Store>
int unwinding_leased(scene const& s)
{
    auto client = Store::connect(s);
    typename Store::mutex m{client, "orders", s.options};
    try {
        leased_lock const hold{m};
        ::raise(SIGSTOP);
        throw oops{};
    } catch (oops) {
        return m.lease().still_held() ? 1 : 0;
    }
}

template <class Store>
int destroyed_while_held(scene const& s)
{
    auto client = std::make_optional(Store::connect(s));
    auto m = std::make_unique<typename Store::mutex>(*client, "orders", s.options);
    m->lock();
    ::raise(SIGSTOP);
    auto const begun = boot_clock::now();
    client.reset();
    m.reset();
    return boot_clock::now() - begun < operation_timeout + 1min ? 0 : 1;
}

template <class Store>
int throwing_callback(scene const& s)
{
    auto client = Store::connect(s);
    auto options = s.options;
    std::atomic<int> told{0};
    options.on_error = [&](error const&) {
        ++told;
        throw oops{};
    };
    typename Store::mutex m{client, "orders", options};
    m.lock();
    auto const lost = m.lease().lost_token();
    ::raise(SIGSTOP);  // the server dies: renewals fail, the lease is lost, the release is in vain
    if (!eventually([&] { return lost.stop_requested(); })) return 1;
    m.unlock();
    return eventually([&] { return told > 0; }) ? 0 : 2;
}

template <class Store>
int fork_while_holding(scene const& s)
{
    auto client = std::make_optional(Store::connect(s));
    auto m = std::make_unique<typename Store::mutex>(*client, "orders", s.options);
    m->lock();
    auto const lease = m->lease();
    auto born = child::fork([&] {
        std::error_code ec;
        m->unlock(ec);
        bool const refused = ec == errc::not_owner && !m->lease().still_held();
        m.reset();
        client.reset();
        return refused ? 0 : 1;
    });
    if (born.wait_for(hanging) != 0) return 1;
    if (!goes_on(lease)) return 2;  // the child neither freed it nor ended its renewal
    std::error_code ec;
    m->unlock(ec);
    return ec ? 3 : 0;
}

template <class Store>
int exits_in_a_forked_child(scene const& s)
{
    static auto client = std::make_unique<typename Store::client>(Store::connect(s));
    static auto m = std::make_unique<typename Store::mutex>(*client, "orders", s.options);
    m->lock();
    auto born = child::fork([]() -> int { std::exit(m->lease().still_held() ? 1 : 0); });  // destroys what is static
    if (born.wait_for(hanging) != 0) return 1;
    std::error_code ec;
    m->unlock(ec);
    return ec ? 2 : 0;
}

template <class Store>
int thread_exit(scene const& s)
{
    auto client = Store::connect(s);
    typename Store::mutex m{client, "orders", s.options};
    std::thread{[&] { m.lock(); }}.join();  // its owner is the object, not the thread
    if (!goes_on(m.lease())) return 1;
    std::thread{[&] { m.unlock(); }}.join();
    std::thread{[&] {
        thread_local typename Store::mutex mine{client, "stock", s.options};
        mine.lock();
    }}.join();  // released when the thread ends
    typename Store::mutex stock{client, "stock", s.options};
    return stock.try_lock() ? 0 : 2;
}

template <class Store>
int exit_while_holding(scene const& s)
{
    static auto client = Store::connect(s);
    static typename Store::mutex m{client, "orders", s.options};
    m.lock();
    std::exit(0);  // runs the destructor
}

template <class Store>
int two_destroy_at_once(scene const& s)
{
    for (int i = 0; i < s.rounds; ++i) {
        auto client = std::make_optional(Store::connect(s));
        auto a = std::make_unique<typename Store::mutex>(*client, "orders", s.options);
        auto b = std::make_unique<typename Store::mutex>(*client, "stock", s.options);
        a->lock();
        b->lock();
        std::jthread const one{[&] { a.reset(); }};
        std::jthread const two{[&] { b.reset(); }};
        client.reset();
    }
    return 0;
}

int terminates(scene const&)
{
    std::terminate();
}

template <class Store>
std::vector<unusual_end> all_cases()
{
    return {
        {"destructors while an exception unwinds", unwinding<Store>},
        {"a leased_lock while an exception unwinds", unwinding_leased<Store>},
        {"destructors while an exception unwinds, server dead", unwinding<Store>, true, false},
        {"a leased_lock while an exception unwinds, server dead", unwinding_leased<Store>, true, false},
        {"a lock destroyed while it is held, after its client", destroyed_while_held<Store>},
        {"the same, server dead", destroyed_while_held<Store>, true, false},
        {"a callback that throws", throwing_callback<Store>, true, false},
        {"fork while holding", fork_while_holding<Store>},
        {"exit of a child forked while holding", exits_in_a_forked_child<Store>},
        {"exit of a thread", thread_exit<Store>},
        {"exit of the process while holding", exit_while_holding<Store>},
        {"locks destroyed by two threads at once", two_destroy_at_once<Store>},
    };
}

std::vector<unusual_end> cases_of(place::store what)
{
    switch (what) {
    case place::store::redis: return all_cases<of_redis>();
    case place::store::redlock: return all_cases<of_redlock>();
    case place::store::zookeeper:
#ifdef HOLDFAST_TEST_ZOOKEEPER
        return all_cases<of_zookeeper>();
#endif
        break;
    }
    throw std::runtime_error{"this program was built without that store"};
}

}  // namespace

void go(run_options const& run, findings& to)
{
    bool const one_redis = run.on == place::store::redis;
    auto const cases = run.control ? std::vector<unusual_end>{{"std::terminate", terminates}} : cases_of(run.on);
    auto const servers = open_site(run.on);
    scene s{.servers = servers->where().servers, .rounds = one_redis ? 50 : 10};
    auto const at_once = run.on == place::store::zookeeper ? session_timeout * 3 / 4
                                                           : ttl / 2;  // before what is left would be over by itself
    breaches found;
    auto const times = run.count(1, 20);
    for (std::size_t n = 0; n < times; ++n)
        for (auto const& one : cases) {
            s.session = one.server_dies ? session_that_ends : session_timeout;
            auto process = child::fork([&] { return one.act(s); });
            // Cases that stop themselves hold the lock then. Others just end.
            static_cast<void>(eventually([&] { return process.stopped_itself() || !process.running(); }, hanging));
            if (one.server_dies) servers->kill();
            process.resume();
            auto const status = process.wait_for(hanging);
            if (!status) found.push_back(one.name + ": hangs");
            if (status && *status != 0) found.push_back(one.name + ": ends with " + std::to_string(*status));
            if (one.server_dies) servers->restart();
            auto const free = [&] { return servers->copies_of("orders").all + servers->copies_of("stock").all == 0; };
            if (!one.server_dies && one.frees && !eventually(free, at_once))
                found.push_back(one.name + ": the lock is not freed");
            if (!eventually(free, hanging))
                found.push_back(one.name + ": the lock is never freed");  // nor for the next case
        }
    to.figure("cases, each a process of its own", cases.size());
    to.check("nothing terminates or hangs, what is held is freed", found);
}

}  // namespace holdfast::faults::lifecycle
