// SPDX-License-Identifier: MIT
//
// Processes take two or three of three locks at once, named in any order; the last of them is on a server of its own.
// One that has some of them and waits for the next is killed; one that has all is killed, or stopped for longer than
// its leases; the server of the last is stopped.
#include "everybody.hpp"
#include "rows.hpp"

#include "../crew.hpp"
#include "../site.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>

#include <holdfast/mutex.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::faults::several {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::uint32_t locks = 3;
constexpr std::size_t processes = 6;

/// Returns: the process that has the first lock and waits for the second, which another client has; nothing if none
/// comes to that. A section is over long before.
std::optional<std::size_t> between(crew& workers, store const& client)
{
    std::int64_t pid = 0;
    auto const holder = [&] {
        std::error_code ec;
        auto const one = client.holder("faults/0", ec);
        return one ? one->pid : 0;
    };
    auto const waits = [&] {
        pid = holder();
        if (pid == 0) return false;
        std::this_thread::sleep_for(100ms);
        return holder() == pid;
    };
    if (!eventually(waits, 1min)) return std::nullopt;
    for (std::size_t i = 0; i < workers.size(); ++i)
        if (workers.process(i).pid() == pid) return i;
    return std::nullopt;
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    test::redis_server last;
    auto where = servers->where();
    auto const ttl = where.ttl;
    crew workers{{.where = where,
                  .processes = processes,
                  .kind = primitive::several,
                  .members = locks,
                  .last_on = place{.servers = {last.url()}, .ttl = ttl},
                  .patience = 8s,
                  .guarded = !run.control},
                 to.folder("journals")};
    std::mt19937_64 random{run.seed};
    breaches unserved;
    everybody(workers, "without faults", unserved);
    auto const stay = [&](std::size_t who) {
        workers.of(who).ask_to_stay();
        if (!eventually([&] { return workers.of(who).staying.load(); }, 3min))
            throw std::runtime_error{"a worker does not get its locks"};
    };
    auto const a_while = [&] { std::this_thread::sleep_for(ttl * 3 / 2 + std::chrono::milliseconds{random() % 200}); };
    std::size_t killed_between = 0;
    for (std::size_t n = 0; n < run.count(8, 200); ++n) {
        auto const who = random() % workers.size();
        switch (n % 4) {
        case 0: {
            if (run.control) break;  // they have locks of their own
            std::optional<std::size_t> one;
            {
                auto const client = connect(where);
                mutex second{client, "faults/1", where.options()};
                second.lock();
                one = between(workers, client);
                if (one) workers.kill(*one);
            }
            if (one) {
                workers.replace(*one);
                ++killed_between;
            }
            everybody(workers, "one is killed between two locks", unserved);
            break;
        }
        case 1:
            stay(who);
            workers.pause(who);
            a_while();
            workers.of(who).stay = false;
            workers.resume(who);
            everybody(workers, "one that has its locks is stopped", unserved);
            break;
        case 2:
            stay(who);
            workers.kill(who);
            workers.of(who).stay = false;
            workers.replace(who);
            everybody(workers, "one that has its locks is killed", unserved);
            break;
        default:
            workers.note(event::fault_begun, 1);
            last.pause();
            a_while();
            last.resume();
            workers.note(event::fault_ended, 1);
            everybody(workers, "the server of the last lock is stopped", unserved);
            break;
        }
    }
    workers.end();
    auto records = workers.records();
    verify(run, to, records, servers->whom(), 0, 2 * ttl);
    to.check("K6", unserved);
    to.figure("killed between two locks", killed_between);
    if (!run.control) to.require(killed_between > 0, "none was killed between two locks");
    to.check("K7", check_remains(servers->left(2 * ttl + 10s, waiters::killed)));
    to.check("K7", check_remains(remains_on(last, 2 * ttl + 10s, waiters::killed)));
    to.show(std::move(records));
}

}  // namespace holdfast::faults::several
