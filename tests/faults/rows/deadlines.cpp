// SPDX-License-Identifier: MIT
//
// Servers that accept and never answer, that do not even complete a connection, that are gone without a word, and that
// send a byte a second; and names that are looked up for a long time.
#include "rows.hpp"

#include "../network.hpp"
#include "../own_names.hpp"
#include "../place.hpp"

#include <support/eventually.hpp>
#include <support/loopback.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>
#ifdef HOLDFAST_TEST_ZOOKEEPER
#include <support/zookeeper_server.hpp>
#endif

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::faults::deadlines {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds operation_timeout{150};
constexpr std::chrono::milliseconds deadline{300};
constexpr std::chrono::milliseconds busy_machine{3000};  // what is taken for a failure
constexpr std::chrono::milliseconds hanging{20'000};     // a lock that does not work again by then is not waited for
constexpr std::chrono::milliseconds connect_timeout{15'000};  // so that a call that waits for it is a failure

/// Sees for how long this process has stood still, by a thread that does nothing but sleep.
class standstill {
public:
    [[nodiscard]] boot_clock::duration sum() const noexcept { return boot_clock::duration{sum_.load()}; }

private:
    void watch(std::stop_token const& stop) noexcept
    {
        constexpr auto nap = 10ms;
        while (!stop.stop_requested()) {
            auto const begun = boot_clock::now();
            std::this_thread::sleep_for(nap);
            if (auto const more = boot_clock::now() - begun - nap; more > 10 * nap) sum_ += more.count();
        }
    }

    std::atomic<boot_clock::rep> sum_{0};
    std::jthread watcher_{[this](std::stop_token const& stop) { watch(stop); }};
};

/// What comes from the servers under a fault.
enum class answers { none, slow };

class measured {
public:
    measured(run_options const& run, findings& to) : run_{run}, to_{to} {}

    /// Effects: does `f`, and sees how much later than `limit` it returns. Returns: with which error.
    std::error_code call(std::string const& what, std::chrono::milliseconds limit, std::function<void()> const& f)
    {
        auto const stood = standstill_.sum();
        auto const begun = boot_clock::now();
        std::error_code ec;
        try {
            f();
        } catch (error const& e) {
            ec = e.code();
        }
        auto const late = boot_clock::now() - begun - limit;
        auto const excused = run_.full || run_.control
                                 ? boot_clock::duration::zero()
                                 : standstill_.sum() - stood;  // beside which a machine does other things
        late_.push_back(std::max<std::int64_t>(late.count(), 0));
        if (late_.back() >= latest_) {
            latest_ = late_.back();
            latest_call_ = what;
        }
        if (late - excused > busy_machine)
            found_.push_back(what + ": returned " + milliseconds(late.count()) + " too late");
        return ec;
    }

    /// Effects: the same, of a call that shows whether the fault is there.
    void call_in_vain(std::string const& what, std::chrono::milliseconds limit, answers left,
                      std::function<void()> const& f)
    {
        auto const begun = boot_clock::now();
        auto const ec = call(what, limit, f);
        bool const struck = left == answers::none ? ec == errc::unavailable : boot_clock::now() - begun >= 100ms;
        if (!struck) found_.push_back(what + ": the fault did not strike: " + (ec ? ec.message() : "no error"));
    }

    /// Effects: waits until `lock` can be had, and takes it. Returns: whether it has it.
    bool takes(std::string const& what, mutex& lock)
    {
        bool const taken = test::eventually([&] {
            try {
                return lock.try_lock_for(1s);
            } catch (error const&) {
                return false;
            }
        }, hanging);
        if (!taken) found_.push_back(what + ": the lock does not work");
        return taken;
    }

    /// Effects: waits until `lock` can be had, and frees it.
    void works(std::string const& what, mutex& lock)
    {
        std::error_code ec;
        if (takes(what, lock)) lock.unlock(ec);
    }

    void require(bool good, std::string const& otherwise) { to_.require(good, otherwise); }

    void finish()
    {
        to_.figure("the latest call", latest_call_);
        to_.demanded_times(run_, "beyond the deadline and one operation timeout", late_, 50'000'000);
        to_.check("every call returns", found_);
    }

private:
    run_options const& run_;
    findings& to_;
    standstill standstill_;
    std::vector<std::int64_t> late_;
    std::int64_t latest_ = 0;
    std::string latest_call_;
    breaches found_;
};

/// Effects: has every call made while something is wrong, which `strike` begins and `mend` ends.
void calls(measured& m, std::string const& name, place const& where, std::function<void()> const& strike,
           std::function<void()> const& mend, answers left = answers::none)
{
    auto const limit = operation_timeout;
    for (bool const used_before : {true, false}) {
        auto const what = name + (used_before ? ", a connection that stands: " : ", a new connection: ");
        auto const client = connect(where);
        auto options = where.options();
        options.ttl = 60s;
        options.unavailable_after = deadline;
        mutex lock{client, "faults/0", options};
        auto held = std::make_unique<mutex>(client, "faults/1", options);
        auto in_destructor = std::make_unique<mutex>(client, "faults/2", options);
        if (used_before) {
            m.takes(what + "beforehand", *held);
            m.takes(what + "beforehand", *in_destructor);
        }
        strike();
        std::error_code ec;
        auto const attempt = [&](char const* how, std::chrono::milliseconds most, std::function<bool()> const& take) {
            bool taken = false;  // a name that is found late is found for a call that is slow
            m.call(what + how, most, [&] { taken = take(); });
            if (taken) lock.unlock(ec);
        };
        bool got = false;
        m.call_in_vain(what + "try_lock", limit, left, [&] { got = lock.try_lock(); });
        if (got) lock.unlock(ec);
        attempt("try_lock_for", deadline + limit, [&] { return lock.try_lock_for(deadline); });
        if (used_before) {
            m.call(what + "extend", limit, [&] { static_cast<void>(held->extend(60s, ec)); });
            m.call(what + "release", limit, [&] { held->unlock(ec); });
            m.call(what + "destructor", limit, [&] { in_destructor.reset(); });
        }
        attempt("lock", deadline + limit, [&] {
            lock.lock();
            return true;
        });
        mend();
        m.works(what + "afterwards", lock);  // what was left behind goes with the next connection
    }
}

constexpr std::size_t majority = 3;  ///< of five

/// A port on which connections are never completed, for its queue is full: the kernel drops every SYN.
class full_queue {
public:
    full_queue() : bound_{test::bind_free_port()}
    {
        ::listen(bound_.fd.get(), 0);
        for (int i = 0; i < 4; ++i) waiting_.push_back(test::start_connecting(bound_.port));
        std::this_thread::sleep_for(50ms);
    }

    /// Returns: whether one more connection is not completed.
    [[nodiscard]] bool drops() const
    {
        auto const one_more = test::start_connecting(bound_.port);
        ::tcp_info state{};
        ::socklen_t size = sizeof state;
        return ::getsockopt(one_more.get(), IPPROTO_TCP, TCP_INFO, &state, &size) == 0 &&
               state.tcpi_state == TCP_SYN_SENT;
    }

    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(bound_.port); }

private:
    test::bound_socket bound_;
    std::vector<test::file_descriptor> waiting_;
};

using full_queues = std::array<full_queue, majority>;

void never_connected(measured& m, std::function<place(full_queues const&)> const& at)
{
    full_queues const nobody;
    auto const where = at(nobody);
    auto const client = connect(where);
    auto options = where.options();
    options.unavailable_after = deadline;
    options.ttl = 60s;
    mutex lock{client, "faults/0", options};
    auto const all_drop = [&] {
        return std::all_of(nobody.begin(), nobody.end(), [](full_queue const& one) { return one.drops(); });
    };
    m.require(all_drop(), "a connection to a full queue is completed");
    m.call_in_vain("SYNs are dropped: try_lock", operation_timeout, answers::none,
                   [&] { static_cast<void>(lock.try_lock()); });
    m.call("SYNs are dropped: try_lock_for", deadline + operation_timeout,
           [&] { static_cast<void>(lock.try_lock_for(deadline)); });
    m.call("SYNs are dropped: lock", deadline + operation_timeout, [&] { lock.lock(); });
    m.require(all_drop(), "a connection to a full queue was completed meanwhile");
}

/// A name that is never found, and one that is found after some seconds.
void slow_names(measured& m, own_names& names, test::proxy& way, std::function<void()> const& clear)
{
    auto& server = names.server();
    place const by_name{.servers = {"redis://" + std::string{names.name()} + ':' + std::to_string(way.port())},
                        .operation_timeout = operation_timeout, .connect_timeout = connect_timeout};
    std::function<void()> const answer = [&] {
        server.answer_at_once();
        clear();
    };
    for (bool const ever : {false, true}) {
        auto const asked = server.questions();
        calls(m, ever ? "a name is found late" : "a name is never found", by_name, [&] {
            ever ? server.answer_after(3s) : server.silence();
            way.cut_all();
        }, ever ? clear : answer);
        m.require(server.questions() > asked, "the names were not looked up");
        answer();
    }
}

/// Five masters of which three do not answer; each call waits for them once.
void deadlines_redlock(run_options const& run, findings& to)
{
    test::redis_fleet fleet{5};
    std::vector<test::proxy> proxies;
    std::vector<std::uint16_t> ports;
    for (auto const& one : fleet) {
        proxies.emplace_back(one.port());
        ports.push_back(one.port());
    }
    ways network{ports, run.own_network};
    measured m{run, to};
    auto const of = [](std::vector<std::string> servers, std::chrono::milliseconds limit = operation_timeout) {
        return place{.what = place::store::redlock,
                     .servers = std::move(servers),
                     .operation_timeout = limit,
                     .connect_timeout = connect_timeout};
    };
    auto const through_proxies = of(test::urls(proxies), run.control ? busy_machine + 1s : operation_timeout);
    auto const mend = [&] {
        for (std::size_t i = 0; i < majority; ++i) {
            proxies[i].heal();
            proxies[i].cut_all();
        }
        fleet.command({"FLUSHALL"});
    };
    auto const three = [&](auto const& strike) {
        return [&proxies, strike] {
            for (std::size_t i = 0; i < majority; ++i) strike(proxies[i]);
        };
    };

    auto const trials = run.count(1, 20);
    for (std::size_t n = 0; n < trials; ++n) {
        calls(m, "three of five accept and never answer", through_proxies, three([](test::proxy& p) { p.blackhole(); }),
              mend);
        if (run.control) break;  // slow enough
        calls(m, "three of five close every connection", through_proxies, three([](test::proxy& p) { p.refuse(); }),
              mend);
        calls(m, "three of five answer a byte a second", through_proxies, three([](test::proxy& p) { p.trickle(1s); }),
              mend, answers::slow);
        calls(m, "three of five are gone without a word", of(network.urls()), [&] {
            for (std::size_t i = 0; i < majority; ++i) network.cut(i);
        }, [&] {
            for (std::size_t i = 0; i < majority; ++i) network.mend(i);
            mend();
        });
        never_connected(m, [&](full_queues const& nobody) {
            auto servers = fleet.urls();
            for (std::size_t i = 0; i < majority; ++i) servers[i] = "redis://" + nobody[i].address();
            return of(std::move(servers));
        });
    }
    to.figure("connections are cut by", std::string{network.how()});
    m.finish();
}

#ifdef HOLDFAST_TEST_ZOOKEEPER
/// The C client has no timeout for connections, and is asked for them in the background: no call waits for one for
/// longer than it may.
void deadlines_zookeeper(run_options const& run, findings& to)
{
    test::zookeeper_server server{{.tick = 200ms}};
    test::proxy way{server.port(), test::zookeeper_packets};
    measured m{run, to};
    constexpr std::chrono::milliseconds session_timeout{4000};
    auto const at = [&](std::string address, std::chrono::milliseconds limit) {
        return place{.what = place::store::zookeeper,
                     .servers = {std::move(address)},
                     .ttl = session_timeout,
                     .operation_timeout = limit};
    };
    auto const through_proxy = at(way.address(), run.control ? busy_machine + 1s : operation_timeout);
    auto const trials = run.count(1, 20);
    for (std::size_t n = 0; n < trials; ++n) {
        calls(m, "accepts and never answers", through_proxy, [&] { way.freeze(); }, [&] { way.heal(); });
        if (run.control) break;  // slow enough
        calls(m, "closes every connection", through_proxy, [&] { way.refuse(); }, [&] { way.heal(); });
        calls(m, "stopped", through_proxy, [&] { server.pause(); }, [&] { server.resume(); });
        if (run.own_network) {
            ways network{{server.port()}, true};
            calls(
                m, "gone without a word", at(server.address(), operation_timeout), [&] { network.cut(0); },
                [&] { network.mend(0); });
        }
        never_connected(m, [&](full_queues const& nobody) { return at(nobody[0].address(), operation_timeout); });
    }
    m.finish();
}
#endif

}  // namespace

void go(run_options const& run, findings& to)
{
#ifdef HOLDFAST_TEST_ZOOKEEPER
    if (run.on == place::store::zookeeper) return deadlines_zookeeper(run, to);
#endif
    if (run.on == place::store::redlock) return deadlines_redlock(run, to);
    own_names names{to.folder("etc"), run.own_network};
    test::redis_server server;
    test::proxy way{server.port()};
    ways network{{server.port()}, run.own_network};
    measured m{run, to};
    auto const clear = [&] { server.command({"FLUSHALL"}); };
    place const through_proxy{.servers = {way.url()},
                              .operation_timeout = run.control ? busy_machine + 1s : operation_timeout,
                              .connect_timeout = connect_timeout};
    place const through_network{
        .servers = {network.url(0)}, .operation_timeout = operation_timeout, .connect_timeout = connect_timeout};

    auto const trials = run.count(1, 20);
    for (std::size_t n = 0; n < trials; ++n) {
        calls(m, "accepts and never answers", through_proxy, [&] { way.blackhole(); }, [&] {
            way.pass();
            way.cut_all();
            clear();
        });
        if (run.control) break;  // slow enough
        if (names) slow_names(m, names, way, clear);
        calls(m, "a byte a second", through_proxy, [&] { way.trickle(1s); }, [&] {
            way.heal();
            way.cut_all();
            clear();
        }, answers::slow);
        calls(m, "gone without a word", through_network, [&] { network.cut(0); }, [&] {
            network.mend(0);
            clear();
        });
        never_connected(m, [&](full_queues const& nobody) {
            return place{.servers = {"redis://" + nobody[0].address()},
                         .operation_timeout = operation_timeout,
                         .connect_timeout = connect_timeout};
        });
    }
    to.figure("connections are cut by", std::string{network.how()});
    to.figure("names are looked up at", names.how());
    m.finish();
}

}  // namespace holdfast::faults::deadlines
