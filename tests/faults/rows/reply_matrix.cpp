// SPDX-License-Identifier: MIT
//
// Everything that a server says instead of the answer: by real servers where they can be brought to say it, otherwise
// in their words.
#include "answers.hpp"
#include "rows.hpp"

#include <support/eventually.hpp>
#include <support/locks.hpp>
#include <support/proxy.hpp>
#include <support/redis_server.hpp>
#include <support/temporary_folder.hpp>

#include <holdfast/redis/error.hpp>
#include <holdfast/redis/holder_scripts.hpp>

#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::faults::reply_matrix {
namespace {

using namespace std::chrono_literals;
using test::containing;
using test::eventually;

constexpr std::chrono::milliseconds operation_timeout{5000};  // of what is answered
constexpr std::chrono::milliseconds too_long{500};            // of what is waited for in vain
constexpr std::chrono::milliseconds unavailable_after{600};

test::request_predicate an_acquire_by_script()
{
    return [](std::string_view request) {
        return request.find(redis::scripts::acquire_by_clock_and_tell.sha1) != std::string_view::npos ||
               request.find("'SET', KEYS[1], ARGV[1])") != std::string_view::npos;
    };
}

class matrix {
public:
    void spoken(words const& w)
    {
        redis::client redis{way_.url(), {.operation_timeout = operation_timeout, .connections = 1}};
        redis::mutex m{redis, "orders", {.ttl = 10s, .unavailable_after = unavailable_after}};
        redis::mutex other{redis, "invoices", {.ttl = 10s}};
        warm(other);
        auto const asked =
            struck([&] { way_.answer_next_request(w.answer, {.matches = an_acquire_by_script(), .times = 1000}); },
                   [&] { expect(w, code_of([&] { static_cast<void>(m.try_lock()); })); });
        if (asked != w.asked) wrong(w.name, "one attempt asked " + std::to_string(asked) + " times");
        bool const permanent = make_error_code(w.expected) == errc::misconfigured;
        int again = 0;
        boot_clock::duration took{};
        for (int i = 0; i < 3; ++i) {  // once more where the machine stood still in the first round
            auto const begun = boot_clock::now();
            again =
                struck([&] { way_.answer_next_request(w.answer, {.matches = an_acquire_by_script(), .times = 1000}); },
                       [&] { expect(w, code_of([&] { m.lock(); })); });
            took = boot_clock::now() - begun;
            if (permanent || again > 1 || took < unavailable_after + 100ms) break;
        }
        // One that waits asks again without the queue, which the user may have no right to, in both forms.
        int const times = w.asked * (w.expected == code::not_permitted ? 2 : 1);
        if (permanent ? again != times : (again < 2 || again > 100))
            wrong(w.name, "lock() asked " + std::to_string(again) + " times");
        if (!permanent && took < unavailable_after) wrong(w.name, "lock() gave up early");
        works_again(w.name, m);
    }

    void spoiling(words const& w)
    {
        redis::client redis{
            way_.url(),
            {.operation_timeout = w.expected == code::no_answer ? too_long : operation_timeout, .connections = 1}};
        redis::mutex m{redis, "orders", {.ttl = 10s, .unavailable_after = unavailable_after}};
        redis::mutex other{redis, "invoices", {.ttl = 10s}};
        warm(other);
        auto const before = way_.connections();
        auto const asked =
            struck([&] { way_.answer_next_request(w.answer, {.matches = an_acquire_by_script(), .times = 1000}); },
                   [&] { expect(w, code_of([&] { static_cast<void>(m.try_lock()); })); });
        if (asked != w.asked) wrong(w.name, "one attempt asked " + std::to_string(asked) + " times");
        works_again(w.name, m);
        if (way_.connections() == before) wrong(w.name, "the connection was used again");
    }

    /// The same to the first request of a connection, which asks for a database.
    void spoiling_at_first(words w)
    {
        redis::client redis{way_.url() + "/1",
                            {.operation_timeout = operation_timeout, .connect_timeout = 2s, .connections = 1}};
        redis::mutex m{redis, "orders", {.ttl = 10s, .unavailable_after = unavailable_after}};
        w.name += ", at first";
        auto const asked = struck([&] { way_.answer_next_request(w.answer, {.times = 1000}); },
                                  [&] { expect(w, code_of([&] { static_cast<void>(m.try_lock()); })); });
        if (asked == 0) wrong(w.name, "nothing was asked");
        works_again(w.name, m);
    }

    /// One whose answer comes after the operation timeout: the late answer must not be taken for that of a later
    /// request.
    void timed_out()
    {
        redis::client redis{way_.url(), {.operation_timeout = 2s, .connections = 1}};
        redis::mutex m{redis, "orders", {.ttl = 10s}};
        redis::mutex held{redis, "held", {.ttl = 10s}};
        warm(m);
        server_.command({"SET", "held", "by another", "PX", "60000"});
        auto const before = way_.connections();
        way_.hold(containing("orders"));
        auto const got = code_of([&] { static_cast<void>(m.try_lock()); });
        if (got != code::no_answer) wrong("a late answer", "reported as " + said(got));
        way_.let_go();
        std::this_thread::sleep_for(50ms);  // it is there to be read, were the connection still there
        bool taken = false;
        static_cast<void>(code_of([&] { taken = held.try_lock(); }));
        if (taken) wrong("a late answer", "it was taken for that of another lock");
        if (way_.connections() == before) wrong("a late answer", "the connection was used again");
        server_.command({"DEL", "held"});
        works_again("a late answer", m);
    }

    /// Real servers that were brought to say it.
    void by_real_server(std::string const& name, code expected,
                        std::function<void(test::redis_server&)> const& bring_to_it,
                        std::function<void(test::redis_server&)> const& restore, test::redis_options options = {},
                        std::string const& user = {})
    {
        test::redis_server server{std::move(options)};
        redis::client redis{user.empty() ? server.url() : server.url(user, "secret"),
                            {.operation_timeout = operation_timeout}};
        redis::mutex m{redis, "orders", {.ttl = 10s, .unavailable_after = unavailable_after}};
        bring_to_it(server);
        auto const got = code_of([&] { static_cast<void>(m.try_lock()); });
        if (got != expected) wrong(name + ", a real server", "reported as " + said(got));
        restore(server);
        if (!eventually(
                [&] {
                    return !code_of([&] {
                        if (!m.try_lock()) throw std::system_error{make_error_code(errc::contended)};
                    });
                },
                20s))
            wrong(name + ", a real server", "the lock does not work afterwards");
        ++real_;
    }

    [[nodiscard]] breaches const& found() const noexcept { return found_; }
    [[nodiscard]] std::size_t real() const noexcept { return real_; }

private:
    void wrong(std::string const& name, std::string const& what) { found_.push_back(name + ": " + what); }

    void warm(redis::mutex& m)
    {
        if (!m.try_lock_for(10s)) throw std::runtime_error{"no lock without a fault"};
        m.unlock();
    }

    int struck(std::function<void()> const& arm, std::function<void()> const& act)
    {
        auto const before = way_.struck();
        arm();
        act();
        auto const count = way_.struck() - before;
        way_.heal();
        return count;
    }

    void expect(words const& w, std::error_code got)
    {
        if (got != w.expected) wrong(w.name, "reported as " + said(got));
    }

    void works_again(std::string const& name, redis::mutex& m)
    {
        if (code_of([&] {
                if (!m.try_lock_for(10s)) throw std::system_error{make_error_code(errc::contended)};
            }))
            wrong(name, "the lock does not work afterwards");
        std::error_code ec;
        m.unlock(ec);
        if (ec || server_.command({"EXISTS", "orders"}).integer != 0) wrong(name, "the lock is left behind");
    }

    test::redis_server server_;
    test::proxy way_{server_.port()};
    breaches found_;
    std::size_t real_ = 0;
};

void real_servers(matrix& m)
{
    auto const configure = [](std::string name, std::string value) {
        return [name = std::move(name), value = std::move(value)](test::redis_server& s) {
            s.command({"CONFIG", "SET", name, value});
        };
    };
    auto const nothing = [](test::redis_server&) {};
    m.by_real_server("OOM", code::out_of_memory, configure("maxmemory", "1"), configure("maxmemory", "0"));
    m.by_real_server("NOREPLICAS", code::no_replicas, configure("min-replicas-to-write", "1"),
                     configure("min-replicas-to-write", "0"));
    m.by_real_server(
        "READONLY", code::read_only,
        [](auto& s) {
            s.command({"REPLICAOF", "127.0.0.1", "1"});
        },
        [](auto& s) {
            s.command({"REPLICAOF", "NO", "ONE"});
        });
    m.by_real_server(
        "NOPERM", code::not_permitted, nothing,
        [](auto& s) {
            s.command({"ACL", "SETUSER", "app", "+@all"});
        },
        {.config = {"user app on >secret ~* &* +@all -@scripting"}}, "app");
    m.by_real_server(
        "NOAUTH", code::authentication_failed, nothing,
        [](auto& s) {
            s.command({"ACL", "SETUSER", "app", "on", ">secret", "+@all", "~*", "&*"});
        },
        {}, "app");
    auto folder = std::make_unique<test::temporary_folder>();
    std::vector<std::string> const into_it{"dir " + folder->path().string(), "save 3600 1"};
    m.by_real_server(
        "MISCONF", code::write_refused,
        [&](auto& s) {
            folder.reset();
            s.command({"BGSAVE"});
            auto const failed = [&] {
                return s.command({"INFO", "persistence"}).text.find("rdb_last_bgsave_status:err") != std::string::npos;
            };
            static_cast<void>(eventually(failed));
        },
        configure("stop-writes-on-bgsave-error", "no"), {.config = into_it});
    std::jthread loop;
    m.by_real_server(
        "BUSY", code::busy,
        [&](auto& s) {
            s.command({"CONFIG", "SET", "lua-time-limit", "1"});
            loop = std::jthread{[path = s.socket()] {
                try {
                    test::connection{path}({"EVAL", "while true do end", "0"});
                } catch (std::runtime_error const&) {  // killed
                }
            }};
            static_cast<void>(eventually([&] { return s.command({"PING"}).is_error(); }));
        },
        [](auto& s) {
            s.command({"SCRIPT", "KILL"});
        });
}

}  // namespace

void go(run_options const& run, findings& to)
{
    // Most of it is waiting: some are at it together, each with a server of its own.
    std::array<matrix, 4> all;
    std::vector<std::future<void>> at_it;
    for (std::size_t i = 0; i < all.size(); ++i)
        at_it.push_back(std::async(std::launch::async, [&, i] {
            for (auto n = i; n < answers().size(); n += all.size()) {
                auto w = answers()[n];
                if (run.control) w.expected = code::server_error;
                all[i].spoken(w);
            }
            for (auto n = i; n < spoilt().size(); n += all.size()) {
                all[i].spoiling(spoilt()[n]);
                all[i].spoiling_at_first(spoilt()[n]);
            }
        }));
    for (auto& one : at_it) one.get();
    all[0].timed_out();
    real_servers(all[0]);

    auto const real = all[0].real();
    to.figure("answers, of which by real servers",
              std::to_string(answers().size() + 2 * spoilt().size() + 1 + real) + ", " + std::to_string(real));
    for (auto const& one : all) to.check("a condition each, retried where safe, no connection used again", one.found());
}

}  // namespace holdfast::faults::reply_matrix
