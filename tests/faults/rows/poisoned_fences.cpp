// SPDX-License-Identifier: MIT
//
// Somebody else writes the fence counter of a lock again and again, while processes take and free it: to one Redis, to
// one of five masters, to all of them. Nothing is written that is less than what was there, and is one that a lock
// could have written: that is taken for what it says.
#include "rows.hpp"

#include "../crew.hpp"
#include "../old_masters.hpp"
#include "../verify.hpp"

#include <support/eventually.hpp>

#include <holdfast/core/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::faults::poisoned_fences {
namespace {

using namespace std::chrono_literals;
using test::eventually;

std::string const name = "faults/0";
std::string const key = "holdfast:fence:{" + name + "}";
std::string const a_list = "a list";
constexpr std::chrono::milliseconds guard{3000};

/// Each is foreign to one Redis and to masters.
std::vector<std::string> const foreign{
    "9007199254740992", "9223372036854775807", "9223372036854775806", "1e300", "inf", "text", a_list};

void write(test::redis_server& server, std::string const& value)
{
    if (value == a_list)  // in one step: a counter that is gone meanwhile begins anew
        server.command({"EVAL", "redis.call('DEL', KEYS[1]) return redis.call('RPUSH', KEYS[1], 'x')", "1", key});
    else
        server.command({"SET", key, value});
}

/// Returns: the server's clock, in µs.
std::int64_t clock_of(test::redis_server& server)
{
    auto const time = server.command({"TIME"}).elements;
    return std::stoll(time.at(0).text) * 1'000'000 + std::stoll(time.at(1).text);
}

/// Returns: whether the counter is what a lock writes with the guard: no further ahead of the clock than a guard and a
/// half.
bool in_line(test::redis_server& server)
{
    auto const text = server.command({"GET", key}).text;
    if (text.empty()) return true;  // there is none, or a list, which is for others to say
    if (text.size() > 17 || text.find_first_not_of("-0123456789") != std::string::npos) return false;
    return std::abs(std::stoll(text)) <= clock_of(server) + std::chrono::microseconds{guard}.count() * 3 / 2;
}

/// A client of the one who does the faults, who hears what is told.
class listener {
public:
    listener(place const& where, std::filesystem::path const& folder) : journal_{folder, 1000}, client_{connect(where)}
    {
        auto options = where.options();
        options.on_error = [this](error const& e) {
            std::lock_guard const guarded{m_};
            named_ = named_ || names_key(e);
        };
        lock_ = std::make_unique<mutex>(client_, name, options);
    }

    /// Effects: takes the lock and frees it where that goes at once. Returns: whether it is said that it cannot be had
    /// because of the key.
    bool fails()
    {
        ++hold_;
        note({.what = event::acquire_begun});
        try {
            if (!lock_->try_lock()) {
                note({.what = event::acquire_failed});
                return false;
            }
        } catch (error const& e) {
            note({.what = event::acquire_unknown});
            return e.code() == errc::unavailable && names_key(e);
        }
        auto const granted = monotonic_now();
        auto const l = lock_->lease();
        note({.at = granted,
              .valid_until = to_monotonic(l.expires_at()),
              .token = l.fencing_token(),
              .what = event::acquire_ok});
        std::error_code ec;
        note({.what = event::release_begun});
        lock_->unlock(ec);
        note({.value = static_cast<std::uint64_t>(ec ? release_result::unknown : release_result::freed),
              .what = event::release_done});
        return false;
    }

    /// Returns: whether `on_error` was told of the key.
    [[nodiscard]] bool told()
    {
        std::lock_guard const guarded{m_};
        return named_;
    }

private:
    static bool names_key(error const& e) { return std::string{e.what()}.find(key) != std::string::npos; }

    void note(record r)
    {
        r.hold = hold_;
        journal_.write(r);
    }

    std::mutex m_;
    bool named_ = false;
    std::uint32_t hold_ = 0;
    journal journal_;
    store client_;
    std::unique_ptr<mutex> lock_;
};

void wait_for_sections(crew& workers)
{
    auto const before = workers.sections();
    if (!eventually([&] { return workers.sections() > before + 5; }, 2min))
        throw std::runtime_error{"no sections are done"};
}

/// Effects: writes each to one server, and waits until the lock has been taken several times since.
void write_to_one(run_options const& run, findings& to, crew& workers, test::redis_server& server,
                  std::vector<std::string> const& values, auto after)
{
    auto const rounds = run.count(3, 100);
    for (std::size_t n = 0; n < rounds; ++n)
        for (auto const& value : values) {
            workers.note(event::fault_begun, n);
            for (int i = 0; i < 10; ++i) {
                write(server, value);
                std::this_thread::sleep_for(2ms);
            }
            wait_for_sections(workers);
            workers.note(event::fault_ended, n);
            after();
        }
    to.figure("counters written to one server, times", 10 * rounds * values.size());
}

/// Effects: writes to all masters until it is said which key is wrong, then waits until the lock works again.
void write_to_all(run_options const& run, findings& to, crew& workers, old_masters& servers, listener& ears)
{
    auto const rounds = run.count(1, 20);
    for (std::size_t n = 0; n < rounds; ++n) {
        workers.note(event::fault_begun, n);
        for (auto const& value : foreign)
            to.require(eventually(
                           [&] {
                               for (std::size_t i = 0; i < servers.size(); ++i) write(servers[i], value);
                               return ears.fails();
                           },
                           2min),
                       "all masters: nobody is told of the key, which is " + value);
        wait_for_sections(workers);
        workers.note(event::fault_ended, n);
        for (std::size_t i = 0; i < servers.size(); ++i)
            to.require(eventually([&] { return in_line(servers[i]); }, 2min),
                       "all masters: a counter that is not its own is never replaced");
    }
    to.figure("times that the lock worked again after all masters were written to", rounds);
}

}  // namespace

void go(run_options const& run, findings& to)
{
    bool const one = run.on == place::store::redis;
    auto const folder = to.folder("journals");
    old_masters servers{one ? 1U : 5U, folder};
    place const where{.what = run.on,
                      .servers = servers.urls(),
                      .ttl = one ? 10s : guard,
                      .operation_timeout = one ? 5s : 1s,
                      .restart_guard = one ? 0ms : guard};
    crew workers{{.where = where, .processes = 4, .rest = 1ms}, folder};
    listener ears{where, folder};
    wait_for_sections(workers);
    auto const victim = static_cast<std::size_t>(run.seed % servers.size());
    if (run.control) {
        write_to_one(run, to, workers, servers[victim], {foreign[0]}, [] {});
        for (std::size_t n = 0; n < 5; ++n) {  // while somebody has the lock, so that nobody writes back what was there
            auto& of = workers.of(n % workers.size());
            of.ask_to_stay();
            if (!eventually([&] { return of.staying.load(); }, 2min))
                throw std::runtime_error{"a client never gets the lock"};
            for (std::size_t i = 0; i < servers.size(); ++i)
                write(servers[i], std::to_string(clock_of(servers[i]) - 600'000'000));
            of.stay = false;
            wait_for_sections(workers);
        }
    } else {
        auto values = foreign;
        values.emplace_back("-1");
        write_to_one(run, to, workers, servers[victim], values, [&] {
            for (std::size_t i = 0; !one && i < servers.size(); ++i)
                if (i != victim)
                    to.require(in_line(servers[i]), "another master has taken over what was written to one");
        });
        if (!one) write_to_all(run, to, workers, servers, ears);
    }
    workers.end();
    to.require(eventually(
                   [&] {
                       write(servers[victim], foreign[1]);
                       ears.fails();
                       return ears.told();
                   },
                   2min),
               "on_error was not told of the key");
    auto records = read_journals(folder);
    verify(run, to, records, one ? refused_by::holder : refused_by::holder_or_contender, 0, where.ttl);
    to.show(std::move(records));
}

}  // namespace holdfast::faults::poisoned_fences
