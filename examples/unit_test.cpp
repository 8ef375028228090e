// SPDX-License-Identifier: MIT
//
// A unit test of code that locks, without a server: a store in memory, which is told what goes wrong. Ends with 1 if the
// code under test does something else than it should.
#include <holdfast/memory.hpp>
#include <holdfast/mutex.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

using namespace std::chrono_literals;

namespace {

/// What is tested: ships an order, if no other process does so now, and says what came of it.
class shipping {
public:
    enum class outcome { shipped, done_by_another, try_later };

    explicit shipping(holdfast::store const& in, holdfast::lock_options options = {})
        : orders_{in, "orders/42", std::move(options)}
    {
    }

    outcome run(std::function<void(holdfast::lease const&)> const& work)
    try {
        holdfast::leased_lock hold{orders_, 50ms};
        if (!hold) return outcome::done_by_another;
        work(hold.lease());  // its fencing token goes with each write
        return hold.still_held() ? outcome::shipped : outcome::try_later;
    } catch (holdfast::error const& e) {
        if (e.code() == holdfast::errc::unavailable) return outcome::try_later;
        throw;
    }

private:
    holdfast::mutex orders_;
};

int failures = 0;

void check(bool holds, char const* what)
{
    std::cout << (holds ? "ok: " : "FAILED: ") << what << '\n';
    failures += holds ? 0 : 1;
}

}  // namespace

int main()
try {
    using outcome = shipping::outcome;
    holdfast::memory::store servers;
    // A lost lease is noticed with the next renewal, a third of the ttl later: so in a test that is short.
    shipping tested{servers, {.ttl = 600ms, .unavailable_after = 100ms}};
    std::uint64_t token = 0;
    auto const ship = [&](holdfast::lease const& held) { token = held.fencing_token(); };
    check(tested.run(ship) == outcome::shipped, "an order is shipped");

    {
        auto another_process = servers.another_client();
        holdfast::memory::mutex theirs{another_process, "orders/42"};
        std::scoped_lock hold{theirs};
        check(tested.run(ship) == outcome::done_by_another, "an order that another process ships is left to it");
    }
    servers.set_faults({.unavailable = true});
    check(tested.run(ship) == outcome::try_later, "without servers it is tried later");
    servers.set_faults({});

    auto const before = token;
    check(tested.run(ship) == outcome::shipped, "it is shipped when the servers are back");
    check(token > before, "with a greater fencing token");

    auto const lose = [&](holdfast::lease const& held) {
        servers.erase("orders/42");  // as if another user had deleted its key
        while (!held.lost_token().stop_requested()) std::this_thread::sleep_for(1ms);
    };
    check(tested.run(lose) == outcome::try_later, "an order whose lock is lost meanwhile is tried later");

    holdfast::memory::mutex invoices{servers, "invoices"};
    invoices.lock();
    servers.set_faults({.lost_answers = 1, .operation_timeout = 20ms});  // of the next request
    std::error_code ec;
    invoices.unlock(ec);
    check(ec == holdfast::errc::outcome_unknown, "an unlock whose answer is lost says that it does not know");
    return failures == 0 ? 0 : 1;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
