// SPDX-License-Identifier: MIT
//
// What a store knows by itself about the leases that its locks have.
#include "conformance/sleeper.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/memory.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>

using namespace std::chrono_literals;
using holdfast::acquire_request;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::lock_options;
using holdfast::owner_token;
using holdfast::test::eventually;
using holdfast::test::sleeper;

namespace {

/// A store that ends the leases that it has been asked about; whoever acquires afterwards is not concerned.
struct ending_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<bool> mutable ended{false};
    std::function<void()> alarm;

    void on_loss(std::function<void()> f) { alarm = std::move(f); }
    [[nodiscard]] bool still_leased(owner_token const&) const noexcept { return !ended.exchange(false); }
};

struct fixture {
    std::shared_ptr<ending_backend> store = std::make_shared<ending_backend>(std::make_shared<holdfast::memory::data>());
    std::shared_ptr<holdfast::detail::domain<ending_backend>> domain = std::make_shared<holdfast::detail::domain<ending_backend>>(store);
};

/// A store that notes in which order it is asked. It may say that others wait.
struct noting_backend : holdfast::memory::backend {
    using backend::backend;

    std::atomic<bool> others{false};
    std::atomic<int> acquires{0};
    std::atomic<int> acquires_before_the_wait{0};  // for the answer to the last release
    std::atomic<boot_clock::time_point> not_before{boot_clock::time_point{}};

    struct acquire_operation : backend::acquire_operation {
        acquire_operation(noting_backend& b, key const& name, acquire_request const& request)
            : backend::acquire_operation{b, name, request}
        {
            ++b.acquires;
            b.not_before = request.not_before;
        }
    };

    struct release_operation : backend::release_operation {
        release_operation(noting_backend& b, key const& name, owner_token const& token) : backend::release_operation{b, name, token}, notes{b} {}

        [[nodiscard]] bool wait_until(boot_clock::time_point) const
        {
            notes.acquires_before_the_wait = notes.acquires.load();
            return true;
        }
        [[nodiscard]] bool others_wait() const { return notes.others; }

        noting_backend& notes;
    };
};

using noting_mutex = holdfast::basic_mutex<noting_backend>;

using ending_mutex = holdfast::basic_mutex<ending_backend>;

}  // namespace

TEST_CASE("a lease that the store has ended is passed to nobody")
{
    fixture f;
    bool const ended = GENERATE(false, true);
    ending_mutex one{f.domain, "orders", lock_options{}};
    ending_mutex other{f.domain, "orders", lock_options{}};
    one.lock();
    auto const lease = one.lease();
    sleeper next{[&] { other.lock(); }};
    CHECK(next.sleeps());
    f.store->ended = ended;
    std::error_code ec;
    one.release(ec);
    next.join();
    CHECK((ec == errc::lease_lost) == ended);
    CHECK(lease.lost_token().stop_requested() == ended);
    CHECK((other.lease().fencing_token() > lease.fencing_token() + 1) == ended);  // of another batch: it asked the store
}

TEST_CASE("an alarm ends the leases that the store has ended, renewed or not")
{
    fixture f;
    ending_mutex m{f.domain, "orders", lock_options{.ttl = 1h, .renew = GENERATE(true, false)}};
    m.lock();
    auto const lease = m.lease();
    f.store->alarm();
    CHECK_FALSE(eventually([&] { return !lease.still_held(); }, 50ms));
    f.store->ended = true;
    f.store->alarm();
    CHECK(eventually([&] { return lease.lost_token().stop_requested(); }));
    CHECK_FALSE(lease.still_held());
}

TEST_CASE("the request of the next in line follows the release at once, unless others wait: then it lets them in first")
{
    auto const store = std::make_shared<noting_backend>(std::make_shared<holdfast::memory::data>());
    auto const domain = std::make_shared<holdfast::detail::domain<noting_backend>>(store);
    lock_options options;
    options.max_local_handoffs = 0;
    noting_mutex one{domain, "orders", options};
    noting_mutex other{domain, "orders", options};
    auto const hand_over = [&](noting_mutex& from, noting_mutex& to) {
        sleeper next{[&] { to.lock(); }};
        CHECK(next.sleeps());
        from.unlock();
        next.join();
    };
    one.lock();
    hand_over(one, other);
    CHECK(store->acquires_before_the_wait == 2);
    CHECK(store->not_before.load() == boot_clock::time_point{});

    store->others = true;
    hand_over(other, one);  // learns it, and has asked already
    CHECK(store->acquires_before_the_wait == 3);
    auto const before = boot_clock::now();
    hand_over(one, other);
    CHECK(store->acquires_before_the_wait == 3);
    CHECK(store->acquires == 4);
    CHECK(store->not_before.load() >= before);

    store->others = false;
    hand_over(other, one);  // learns it
    CHECK(store->acquires_before_the_wait == 4);
    hand_over(one, other);
    CHECK(store->acquires_before_the_wait == 6);
    other.unlock();
}
