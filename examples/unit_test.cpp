// SPDX-License-Identifier: MIT
//
// A unit test of code that locks, without a server: a store in memory, which is told what goes wrong. Ends with 1 if the
// code under test does something else than it should.
#include <holdfast/memory.hpp>
#include <holdfast/mutex.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <optional>
#include <system_error>

using namespace std::chrono_literals;

namespace {

/// What is tested: ships an order, if no other process does so now, and says what came of it.
class shipping {
public:
    enum class outcome { shipped, done_by_another, try_later };

    explicit shipping(holdfast::store const& in) : orders_{in, "orders/42", {.unavailable_after = 100ms}} {}

    outcome run()
    try {
        if (!orders_.try_lock_for(50ms)) return outcome::done_by_another;
        last_token_ = orders_.lease().fencing_token();  // goes with each write
        std::error_code ec;
        orders_.unlock(ec);
        if (ec && ec != holdfast::errc::outcome_unknown) return outcome::try_later;  // the lease was lost
        return outcome::shipped;  // where the answer to the unlock was lost, too: the lock is free after its ttl
    } catch (holdfast::error const& e) {
        if (e.code() == holdfast::errc::unavailable) return outcome::try_later;
        throw;
    }

    std::optional<std::uint64_t> last_token() const { return last_token_; }

private:
    holdfast::mutex orders_;
    std::optional<std::uint64_t> last_token_;
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
    shipping tested{servers};
    check(tested.run() == outcome::shipped, "an order is shipped");
    auto const first = tested.last_token();

    {
        auto another_process = servers.another_client();
        holdfast::memory::mutex theirs{another_process, "orders/42"};
        theirs.lock();
        check(tested.run() == outcome::done_by_another, "an order that another process ships is left to it");
    }
    servers.set_faults({.unavailable = true});
    check(tested.run() == outcome::try_later, "without servers it is tried later");
    servers.set_faults({});

    check(tested.run() == outcome::shipped, "it is shipped when the servers are back");
    check(tested.last_token() > first, "with a greater fencing token");

    holdfast::memory::mutex invoices{servers, "invoices", {.ttl = 1h}};
    invoices.lock();
    servers.erase("invoices");  // as if its key had been deleted
    std::error_code ec;
    invoices.unlock(ec);
    check(ec == holdfast::errc::lease_lost, "an unlock tells that the lease had been lost");

    invoices.lock();
    servers.set_faults({.lost_answers = 1, .operation_timeout = 20ms});  // of the next request
    invoices.unlock(ec);
    check(ec == holdfast::errc::outcome_unknown, "an unlock whose answer is lost says that it does not know");
    return failures == 0 ? 0 : 1;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
