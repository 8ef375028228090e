// SPDX-License-Identifier: MIT
//
// Memory that runs out in any step of a lock, and threads that do. A sanitizer brings an operator new of its own.
#include "support/refused_memory.hpp"
#include "support/refusing_new.hpp"

#ifndef HOLDFAST_SANITIZED

#include "observed.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"

#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/semaphore.hpp>
#ifdef HOLDFAST_TEST_TLS
#include "support/certificates.hpp"
#endif

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <iterator>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

using namespace std::chrono_literals;
using holdfast::redis::client;
using holdfast::redis::mutex;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::redis_server;

namespace {

/// Effects: runs `f` with each request for memory of this thread refused in turn. Returns: how many there were.
template <class F>
long refuse_each_request(F&& f)
{
    return holdfast::test::refuse_each_request(holdfast::test::whose::this_threads, 1, f, [] {});
}

std::ptrdiff_t open_descriptors()
{
    std::filesystem::directory_iterator const all{"/proc/self/fd"};
    return std::distance(begin(all), end(all));
}

}  // namespace

TEST_CASE("a lock whose memory runs out in any step is not held, and is as good as new when there is memory",
          "[lesson-17]")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 250ms}};
    mutex m{redis, "orders", {.retry = {.most = 20ms}}};
    CHECK(refuse_each_request([&] {
              m.lock();
              std::error_code ec;
              m.extend(20s, ec);
              m.unlock();
          }) > 5);
    CHECK(m.try_lock_for(20s));
    m.unlock();
    client other{server.url()};
    mutex rival{other, "orders"};
    CHECK(rival.try_lock_for(60s));
}

TEST_CASE("several locks whose memory runs out in any step are all held or none, and are as good as new")
{
    redis_server server;
    client redis{server.url(), {.operation_timeout = 250ms}};
    mutex orders{redis, "orders", {.ttl = 2s, .retry = {.most = 20ms}, .unavailable_after = 1s}};
    mutex stock{redis, "stock", {.ttl = 2s, .retry = {.most = 20ms}, .unavailable_after = 1s}};
    bool const once = GENERATE(true, false);
    CHECK(refuse_each_request([&] {
              holdfast::multi_mutex both{orders, stock};
              if (once)
                  static_cast<void>(both.try_lock());
              else
                  both.lock();
              both.unlock();
              if (orders.lease().still_held() || stock.lease().still_held()) std::abort();
          }) > 5);
    holdfast::multi_mutex both{orders, stock};
    CHECK(both.try_lock_for(20s));
    both.unlock();
    client other{server.url()};
    mutex rival{other, "orders"};
    mutex second{other, "stock"};
    CHECK(rival.try_lock_for(60s));
    CHECK(second.try_lock_for(60s));
}

TEST_CASE("a function that is called by the client's own thread, as no other can be begun, gives several back")
{
    redis_server server;
    bool const permits = GENERATE(true, false);
    auto born = holdfast::test::child::fork([&] {
        client redis{server.url(), holdfast::test::unhurried()};
        mutex orders{redis, "orders", {.ttl = 1h}};
        mutex stock{redis, "stock", {.ttl = 1h}};
        holdfast::multi_mutex both{orders, stock};
        holdfast::semaphore jobs{redis, "jobs", 2, {.ttl = 1h}};
        both.lock();
        both.unlock();                        // the client's own thread runs
        constexpr ::uid_t somebody = 54'322;  // who has no other process: threads are counted by user
        ::rlimit const limits{2, 2};
        if (::setrlimit(RLIMIT_NPROC, &limits) != 0 || ::setresuid(somebody, somebody, somebody) != 0) return 9;
        try {
            std::thread{[] {}}.join();
            return 8;  // the limit is none
        } catch (std::system_error const&) {  // NOLINT(bugprone-empty-catch): as it should be
        }
        std::promise<std::error_code> said;
        auto const give_back = [&](std::error_code ec) {
            if (!ec) permits ? jobs.release(2, ec) : both.unlock(ec);
            said.set_value(ec);
        };
        permits ? jobs.async_acquire(2, give_back) : both.async_lock(give_back);
        return said.get_future().get() ? 1 : 0;
    });
    auto const status = born.wait_for(1min);
    CHECK(status == (::geteuid() == 0 ? 0 : 9));  // it needs the rights of root
}

TEST_CASE("a client whose memory runs out in any step leaves no descriptor open")
{
    redis_server server;
    auto const use = [&](std::chrono::milliseconds limit = 1s) {
        client redis{server.url(), {.operation_timeout = 250ms}};
        mutex m{redis, "orders"};
        if (m.try_lock_for(limit)) m.unlock();
    };
    use(1min);
    auto const before = open_descriptors();
    CHECK(refuse_each_request(use) > 5);
    CHECK(open_descriptors() == before);
}

#ifdef HOLDFAST_TEST_TLS
TEST_CASE("a lock over TLS whose memory runs out in any step is not held, and is as good as new when there is memory")
{
    holdfast::test::authority signer;
    auto const shown = signer.issue();
    redis_server server{
        {.password = "secret", .tls = holdfast::test::redis_tls{shown.certificate, shown.key, signer.file()}}};
    for (bool const fresh : {true, false}) {
        auto const make = [&] {
            return client{server.url(), {.operation_timeout = 250ms, .tls = {.ca_file = signer.file()}}};
        };
        auto redis = make();
        mutex m{redis, "orders", {.ttl = 2s, .retry = {.most = 20ms}, .unavailable_after = 1s}};
        CHECK(refuse_each_request([&] {
                  if (fresh) {
                      auto one = make();
                      mutex first{one, "orders", {.ttl = 2s, .retry = {.most = 20ms}, .unavailable_after = 1s}};
                      first.lock();
                      first.unlock();
                  } else {
                      m.lock();
                      m.unlock();
                  }
              }) > 5);
        REQUIRE(m.try_lock_for(60s));
        m.unlock();
    }
    client other{server.url(), {.tls = {.ca_file = signer.file()}}};
    mutex rival{other, "orders"};
    CHECK(rival.try_lock_for(60s));
}
#endif

TEST_CASE("a waiter whose memory runs out in any step leaves no trace, and waits when there is memory")
{
    redis_server server;
    client holding{server.url()};
    mutex held{holding, "orders"};
    held.lock();
    for (bool const fresh : {true, false}) {
        client redis{server.url(), {.operation_timeout = 250ms}};
        mutex m{redis, "orders", {.retry = {.most = 20ms}}};
        CHECK(refuse_each_request([&] {
                  if (fresh) {
                      client one{server.url(), {.operation_timeout = 250ms}};
                      mutex first{one, "orders", {.retry = {.most = 20ms}}};
                      if (first.try_lock_for(20ms)) std::abort();
                  } else if (m.try_lock_for(20ms)) {
                      std::abort();
                  }
              }) > 5);
        CHECK(eventually([&] {  // a machine that stood still has it asked again
            bool got = true;
            return !code_of([&] { got = m.try_lock_for(20ms); }) && !got;
        }));
        // Whatever there was no memory for is asked for again: one that only waits for its call gets it.
        mutex patient{redis, "orders", {.retry = {.most = 1h}}};
        auto const before = holdfast::test::lock_requests(server);
        std::atomic<bool> got{false};
        std::jthread waiter{
            [&](std::stop_token const& end) { static_cast<void>(code_of([&] { got = patient.lock(end); })); }};
        CHECK(eventually([&] { return holdfast::test::lock_requests(server) > before; }));
        held.unlock();
        CHECK(eventually([&] { return got.load(); }));
        waiter.request_stop();
        waiter.join();
        patient.unlock();
        REQUIRE(held.try_lock_for(1min));
    }
    held.unlock();
    mutex after{holding, "orders"};
    CHECK(after.try_lock_for(20s));
}

TEST_CASE(
    "a connection that comes up at once and runs out of memory answers no later request with an earlier one's reply")
{
    redis_server server;
    server.command({"SET", "held", "by another"});
    client redis{server.unix_url(), {.operation_timeout = 10s, .connect_timeout = 1min, .connections = 1}};
    mutex lost{redis, "orders", {.ttl = 1h}};
    mutex m{redis, "invoices", {.retry = {.most = 20ms}}};
    mutex held{redis, "held"};
    mutex next{redis, "next"};
    // A roll-back is left to be sent when the connection is made again. The server holds the acquire back, until it has
    // ended its connection twice.
    auto const cut_off_in_the_middle = [&] {
        server.command({"CLIENT", "PAUSE", "600000", "WRITE"});
        auto acquiring = std::async(std::launch::async, [&] { return code_of([&] { (void)lost.try_lock(); }); });
        for (int i = 0; i < 2; ++i) {
            REQUIRE(eventually([&] {
                return server.command({"INFO", "clients"}).text.find("blocked_clients:1") != std::string::npos;
            }));
            server.command({"CLIENT", "KILL", "TYPE", "normal"});
        }
        CHECK(acquiring.get() == holdfast::errc::unavailable);
        server.command({"CLIENT", "UNPAUSE"});
    };
    auto const granted = [](mutex& one) {
        bool got = false;
        return !code_of([&] { got = one.try_lock(); }) && got;
    };
    cut_off_in_the_middle();
    CHECK(holdfast::test::refuse_each_request(
              holdfast::test::whose::this_threads, 1,
              [&] {
                  if (m.try_lock()) m.unlock();
              },
              [&] {
                  auto const asked = holdfast::test::lock_requests(server);
                  auto beside = std::async(std::launch::async, [&] { return granted(held); });
                  CHECK(eventually([&] {
                      return holdfast::test::lock_requests(server) > asked ||
                             beside.wait_for(0s) == std::future_status::ready;
                  }));
                  if (granted(next)) next.unlock();
                  CHECK_FALSE(beside.get());
                  CHECK(next.try_lock_for(20s));
                  next.unlock();
                  cut_off_in_the_middle();
              }) > 5);
}

#endif
