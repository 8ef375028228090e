// SPDX-License-Identifier: MIT
//
// Memory that runs out in one thread of a line, which is not to harm the others.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/refused_memory.hpp"

#ifndef HOLDFAST_SANITIZED

#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using holdfast::acquire_request;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

/// A store whose first answer is a long story of why it is unavailable, comes when the test says so, and uses up the memory.
struct failing_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<int> acquires{0};
    std::atomic<bool> answers{false};

    struct acquire_operation : backend::acquire_operation {
        acquire_operation(failing_backend& b, key const& name, acquire_request const& request)
            : backend::acquire_operation{b, name, request}, store{b}, first{b.acquires++ == 0}
        {
        }

        void start()
        {
            if (!first) backend::acquire_operation::start();
        }

        bool wait_until(holdfast::boot_clock::time_point t)
        {
            if (!first) return backend::acquire_operation::wait_until(t);
            while (!store.answers) std::this_thread::sleep_for(1ms);
            return true;
        }

        [[nodiscard]] holdfast::result<holdfast::grant> outcome() const
        {
            if (!first) return backend::acquire_operation::outcome();
            holdfast::result<holdfast::grant> why{holdfast::failure{make_error_code(errc::unavailable), std::string(100, 'x')}};
            holdfast::test::refuse(0, 1, holdfast::test::whose::this_threads);
            return why;
        }

        failing_backend& store;
        bool first;
    };
};

}  // namespace

TEST_CASE("a thread that cannot say why it failed, as there is no memory, gives up its turn once")
{
    auto const store = std::make_shared<failing_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<failing_backend>>(store);
    using mutex = holdfast::basic_mutex<failing_backend>;
    lock_options const options{.ttl = 12s};
    mutex failing{domain, "orders", options};
    mutex next{domain, "orders", options};
    mutex last{domain, "orders", options};
    std::atomic<bool> out_of_memory{false};
    sleeper fails{[&] {
        try {
            failing.lock();
        } catch (std::bad_alloc const&) {
            out_of_memory = holdfast::test::spare_all();
        }
    }};
    CHECK(eventually([&] { return store->acquires == 1; }));
    sleeper waits{[&] { next.lock(); }};
    CHECK(waits.sleeps());
    sleeper waits_longer{[&] { last.lock(); }};
    CHECK(waits_longer.sleeps());
    store->answers = true;
    fails.join();
    CHECK(out_of_memory);
    waits.join();
    CHECK(waits_longer.sleeps());
    CHECK(store->acquires == 2);
    auto const lease = next.lease();
    auto const end = lease.expires_at();
    CHECK(eventually([&] { return lease.expires_at() > end; }));
    CHECK(lease.still_held());
    next.unlock();
    waits_longer.join();
    CHECK(last.lease().still_held());
    last.unlock();
}

#endif
