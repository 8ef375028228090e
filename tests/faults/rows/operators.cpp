// SPDX-License-Identifier: MIT
//
// While processes have a lock and wait for it, an operator asks its holder for it, or takes it from the
// holder. Who is asked keeps it; who has lost it is told so, and the next one has it.
#include "everybody.hpp"
#include "rows.hpp"

#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <holdfast/mutex.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::faults::operators {

using namespace std::chrono_literals;
using test::eventually;

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto where = servers->where();
    auto const ttl = where.ttl;
    crew workers{{.where = where, .processes = 6, .patience = 8s}, to.folder("journals")};
    auto const operators = connect(where);
    std::string const name = "faults/0";
    std::mt19937_64 random{run.seed};
    breaches unserved;
    breaches untold;
    everybody(workers, "without faults", unserved);
    std::size_t asked = 0;
    std::size_t broken = 0;
    for (std::size_t n = 0; n < run.count(12, 200); ++n) {
        auto const who = random() % workers.size();
        auto& of = workers.of(who);
        of.ask_to_stay();
        if (!eventually([&] { return of.staying.load(); }, 3min))
            throw std::runtime_error{"a worker does not get the lock"};
        std::this_thread::sleep_for(std::chrono::microseconds{random() % 150'000});
        bool const breaks = n % 2 == 1;
        auto const requests = of.requests.load();
        auto const losses = of.losses.load();
        auto const told = [&] { return of.losses != losses || (!breaks && of.requests != requests); };
        // Again where it could not be asked in time; on several masters a renewal under way may take the lock back.
        auto const once = [&] {
            std::error_code ec;
            auto const begun = static_cast<std::uint64_t>(monotonic_now());
            bool const held = breaks ? operators.force_unlock(name, ec) : operators.request_release(name, ec);
            if (breaks && (held || ec) && !run.control) workers.note(event::broken, begun);
            if (held) ++(breaks ? broken : asked);
            return eventually(told, 2 * ttl);
        };
        if (!eventually(once))
            untold.push_back("process " + std::to_string(who) + " is not told that " +
                             (breaks ? "its lock was broken" : "it is asked for the lock"));
        if (breaks) everybody(workers, "a lock was broken", unserved, {who});
        of.stay = false;
        everybody(workers, "the holder goes on", unserved);
    }
    workers.end();
    auto records = workers.records();
    verify(run, to, records, servers->whom());
    to.check("K6", unserved);
    to.check("told", untold);
    to.figure("times that a holder was asked for the lock, that one was broken",
              std::to_string(asked) + ", " + std::to_string(broken));
    to.require(asked != 0 && broken != 0, "no holder was asked, or no lock broken");
    to.check("K7", check_remains(servers->left(2 * ttl + 10s, waiters::ended)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults::operators
