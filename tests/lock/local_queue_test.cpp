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
