// SPDX-License-Identifier: MIT
//
// Of five masters, one or three say something else instead of the answer to an acquire.
#include "answers.hpp"
#include "rows.hpp"

#include <support/eventually.hpp>
#include <support/locks.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>

#include <holdfast/redis/holder_scripts.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::faults::reply_matrix_redlock {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::size_t masters_in_all = 5;
constexpr std::chrono::milliseconds node_timeout{5000};  // of what is answered
constexpr std::chrono::milliseconds too_long{2000};      // of what is waited for in vain
constexpr std::chrono::milliseconds unavailable_after{600};
constexpr std::chrono::milliseconds ttl{60'000};

/// What is late may arrive when its client is gone: each trial has a lock of its own.
bool is_acquire(std::string_view request, std::string_view name)
{
    namespace scripts = redis::scripts;
    if (request.find(name) == std::string_view::npos) return false;
    for (auto const part : {scripts::acquire_and_tell.sha1, scripts::acquire_by_clock_and_tell.sha1,
                            scripts::acquire_by_count_and_tell.sha1, std::string_view{"'SET', KEYS[1], ARGV[1])"},
                            std::string_view{"$2\r\nNX\r\n"}})
        if (request.find(part) != std::string_view::npos) return true;
    return false;
}

class matrix {
public:
    matrix()
    {
        for (auto const& one : fleet_) ways_.emplace_back(one.port());
    }

    /// One of them says it: the others grant the lock.
    void by_one(words const& w, std::size_t which)
    {
        redlock::masters masters{test::urls(ways_), {.node_timeout = node_timeout, .restart_guard = 0ms}};
        warm(masters);
        auto const name = "orders/" + std::to_string(which) + "/one";
        redlock::mutex m{masters, name, {.ttl = ttl}};
        auto const asked = struck(w, name, which, 1, [&] {
            if (auto const got = code_of([&] {
                    if (!m.try_lock()) throw std::system_error{make_error_code(errc::contended)};
                }))
                wrong(w.name + ", by one", "the others did not grant the lock: " + said(got));
        });
        if (asked < 1 || asked > w.asked)
            wrong(w.name + ", by one", "one attempt asked it " + std::to_string(asked) + " times");
        std::error_code ec;
        m.unlock(ec);
        if (ec) wrong(w.name + ", by one", "not released: " + said(ec));
        works_again(w.name + ", by one", m, name);
    }

    /// Three of them say it, and no quorum can be had.
    void by_three(words const& w, std::chrono::milliseconds timeout, std::size_t which)
    {
        redlock::masters masters{test::urls(ways_), {.node_timeout = timeout, .restart_guard = 0ms}};
        warm(masters);
        auto const name = "orders/" + std::to_string(which) + "/three";
        redlock::mutex m{masters, name, {.ttl = ttl, .unavailable_after = unavailable_after}};
        auto const asked =
            struck(w, name, which, 3, [&] { expect(w, code_of([&] { static_cast<void>(m.try_lock()); })); });
        if (asked != 3 * w.asked)
            wrong(w.name + ", by three", "one attempt asked them " + std::to_string(asked) + " times");
        if (!eventually([&] { return copies(name) == 0; }))
            wrong(w.name + ", by three", "those who granted the lock still have it");
        auto const begun = boot_clock::now();
        auto const again = struck(w, name, which, 3, [&] { expect(w, code_of([&] { m.lock(); })); });
        bool const permanent = make_error_code(w.expected) == errc::misconfigured;
        // One that waits asks again without the queue, which the user may have no right to, in both forms.
        int const times = w.asked * (w.expected == code::not_permitted ? 2 : 1);
        if (permanent ? again != 3 * times : (again < 3 || again > 300))
            wrong(w.name + ", by three", "lock() asked them " + std::to_string(again) + " times");
        if (!permanent && boot_clock::now() - begun < unavailable_after)
            wrong(w.name + ", by three", "lock() gave up early");
        works_again(w.name + ", by three", m, name);
    }

    [[nodiscard]] breaches const& found() const noexcept { return found_; }

private:
    void wrong(std::string const& name, std::string const& what) { found_.push_back(name + ": " + what); }

    /// Effects: has connections made, and scripts loaded, with every master: three are enough for a lock, and one that
    /// has not answered its greeting by then is not asked.
    void warm(redlock::masters& on)
    {
        redlock::mutex other{on, "invoices", {.ttl = ttl}};
        bool const warmed = eventually([&] {
            if (!other.try_lock_for(20s)) return false;
            bool const asked =
                eventually([&] { return copies("invoices") == static_cast<int>(masters_in_all); }, 500ms);
            other.unlock();
            return asked;
        });
        if (!warmed) throw std::runtime_error{"no lock on every master without a fault"};
    }

    /// Returns: how often the masters from `first` on, `number` of them, were asked for that lock while they answered
    /// so.
    int struck(words const& w, std::string const& name, std::size_t first, std::size_t number,
               std::function<void()> const& act)
    {
        auto const total = [&] {
            int sum = 0;
            for (auto const& one : ways_) sum += one.struck();
            return sum;
        };
        auto const before = total();
        for (std::size_t i = 0; i < number; ++i)
            ways_[(first + i) % masters_in_all].answer_next_request(
                w.answer, {.matches = [name](auto request) { return is_acquire(request, name); }, .times = 1000});
        act();
        // A majority may have granted before the last of them was asked.
        static_cast<void>(eventually([&] { return total() - before >= static_cast<int>(number); }));
        auto const count = total() - before;
        for (auto& one : ways_) one.heal();
        return count;
    }

    void expect(words const& w, std::error_code got)
    {
        if (got != w.expected) wrong(w.name + ", by three", "reported as " + said(got));
    }

    int copies(std::string const& key)
    {
        int sum = 0;
        for (auto& one : fleet_) sum += static_cast<int>(one.command({"EXISTS", key}).integer);
        return sum;
    }

    void works_again(std::string const& what, redlock::mutex& m, std::string const& name)
    {
        if (code_of([&] {
                if (!m.try_lock_for(20s)) throw std::system_error{make_error_code(errc::contended)};
            }))
            wrong(what, "the lock does not work afterwards");
        std::error_code ec;
        m.unlock(ec);
        if (ec || !eventually([&] { return copies(name) == 0; })) wrong(what, "the lock is left behind");
    }

    test::redis_fleet fleet_{masters_in_all};
    std::vector<test::proxy> ways_;
    breaches found_;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    struct trial {
        words what;
        std::chrono::milliseconds timeout;
    };
    std::vector<trial> trials;
    for (auto const& w : answers()) trials.push_back({w, node_timeout});
    for (auto const& w : spoilt()) trials.push_back({w, w.expected == code::no_answer ? too_long : node_timeout});
    if (run.control)
        for (auto& one : trials) one.what.expected = code::server_error;
    // Most of it is waiting: some are at it together, each with masters of its own.
    std::array<matrix, 4> all;
    std::vector<std::future<void>> at_it;
    for (std::size_t i = 0; i < all.size(); ++i)
        at_it.push_back(std::async(std::launch::async, [&, i] {
            for (auto n = i; n < trials.size(); n += all.size()) {
                all[i].by_one(trials[n].what, n);
                all[i].by_three(trials[n].what, trials[n].timeout, n);
            }
        }));
    for (auto& one : at_it) one.get();
    to.figure("answers, each by one and by three of five masters", trials.size());
    for (auto const& one : all)
        to.check("granted by the others, or a condition each; retried where safe; nothing left behind", one.found());
}

}  // namespace holdfast::faults::reply_matrix_redlock
