// SPDX-License-Identifier: MIT
//
// What is told of a lease that was lost.
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/lease_state.hpp>
#include <holdfast/lock/renewal_record.hpp>
#include <holdfast/lock/waiter.hpp>
#include <holdfast/memory.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::failure;
using holdfast::lock_options;
using holdfast::result;
using holdfast::detail::loss;
using holdfast::detail::renewal_record;
using holdfast::test::eventually;

namespace {

/// A lease of `options.ttl` that the store has just granted, and its record.
struct leased {
    holdfast::detail::mutex_state owner;
    holdfast::detail::lease_state lease;
    holdfast::detail::failure_reports reports;
    renewal_record record{reports};

    explicit leased(lock_options options = {})
    {
        owner.options = std::make_shared<lock_options const>(std::move(options));
        auto const valid = holdfast::valid_until(boot_clock::now(), owner.options->ttl);
        struct quiet final : holdfast::detail::waiter {
            using waiter::waiter;
            void signal(std::uint32_t) noexcept override {}
        } first{owner, {}};
        lease.begin({.token = holdfast::owner_token::from_bits(1, 2), .valid_until = valid, .fence = 70, .fences = 64},
                    first);
        lease.give(first, lease.deadline_for(valid), nullptr);
    }
    [[nodiscard]] std::string lost_by(loss how) const { return record.explain(how, lease).detail; }
};

/// Returns: the message of a lock's only loss in the memory of this process.
template <class Break>
std::string told_of_loss(lock_options options, Break&& break_lease)
{
    std::mutex guard;
    std::vector<holdfast::error> told;
    options.on_error = [&](holdfast::error const& e) {
        std::scoped_lock const one{guard};
        told.push_back(e);
    };
    holdfast::memory::store store;
    holdfast::memory::mutex m{store, "orders", options};
    m.lock();
    break_lease(store, m);
    CHECK(eventually([&] {
        std::scoped_lock const one{guard};
        return !told.empty();
    }));
    std::scoped_lock const one{guard};
    if (told.empty()) return {};
    CHECK(told.size() == 1);
    CHECK(told[0].code() == errc::lease_lost);
    CHECK(told[0].lock_name() == "orders");
    CHECK(told[0].server().empty());
    CHECK_FALSE(told[0].over());
    return told[0].what();
}

auto const wait = [](auto&, auto&) {};

}  // namespace

TEST_CASE("a lease that was not renewed in time says whether its renewals failed, and how")
{
    leased one;
    CHECK(one.lost_by(loss::deadline) == "not renewed in time; was this process stopped?");
    one.record.note(result<boot_clock::time_point>{
        failure{make_error_code(errc::unavailable), "renewal: redis://a:1 (it is down)", "redis://a:1"}});
    CHECK(one.lost_by(loss::deadline) ==
          "not renewed in time; renewal: redis://a:1 (it is down): no quorum of servers could be asked");
    CHECK(one.record.explain(loss::deadline, one.lease).server == "redis://a:1");
    one.record.note(result<boot_clock::time_point>{boot_clock::now()});
    CHECK(one.lost_by(loss::deadline) == "not renewed in time; was this process stopped?");
    CHECK(one.record.explain(loss::deadline, one.lease).server.empty());
}

TEST_CASE("a lease that its store ended says so")
{
    leased const one;
    CHECK(one.lost_by(loss::session) == "the store ended the session that held it");
    CHECK(one.lost_by(loss::taken) == "the store does not have it as ours any more, it expired there or was deleted");
    CHECK(one.lost_by(loss::late) == "the answer to its renewal came too late");
}

TEST_CASE("a loss after max_hold says so")
{
    CHECK(told_of_loss({.ttl = 600ms, .max_hold = 1ms}, wait) ==
          "lock \"orders\": held for max_hold, 1 ms, and not renewed since: the lease was lost");
}

TEST_CASE("the loss of a lease that is not to be renewed says so")
{
    CHECK(told_of_loss({.ttl = 600ms, .renew = false, .max_hold = 1ms}, wait) ==
          "lock \"orders\": its ttl, 600 ms, is over, and renew is off: the lease was lost");
}

TEST_CASE("the loss of a lease that was taken away says so")
{
    auto const take_away = [](holdfast::memory::store& store, holdfast::memory::mutex& m) {
        store.erase("orders");
        std::error_code ec;
        CHECK_FALSE(m.extend(1h, ec));
    };
    CHECK(
        told_of_loss({}, take_away) ==
        "lock \"orders\": the store does not have it as ours any more, it expired there or was deleted: the lease was lost");
}
