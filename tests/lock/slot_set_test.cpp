// SPDX-License-Identifier: MIT
//
// How a semaphore takes one of its slots, with locks that answer as they are told.
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"

#include <holdfast/lock/permit_wait.hpp>
#include <holdfast/lock/slot_sizes.hpp>
#include <holdfast/lock/slot_wait.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::errc;
using holdfast::error;
using holdfast::detail::async_result;
using holdfast::detail::lock_object;
using holdfast::detail::patience;
using holdfast::detail::permit_wait;
using holdfast::detail::slot_sizes;
using holdfast::detail::slot_source;
using holdfast::test::code_of;
using holdfast::test::contains;
using holdfast::test::eventually;

namespace {

/// What a lock does next, and what was done with it. The code of an answer: none for a grant.
struct script {
    std::deque<std::error_code>
        tries{};  ///< `timed_out`: refused; another one is thrown. If there is none left: refused
    std::deque<std::optional<std::error_code>> waits{};  ///< nothing: no answer before the cancel, as if none is left
    std::optional<int> out_of_memory_at{};               ///< which of the waits does not begin
    std::function<void()> at_try = [] {};
    std::function<void()> at_wait = [] {};
    int tried = 0;
    int waited = 0;
    int canceled = 0;
    int given_back = 0;
    int used = 0;
};

/// Answers as the script says, from within the call.
class scripted final : public lock_object {
public:
    explicit scripted(script& s) : script_{s} {}

    bool lock(patience const& p, std::stop_token const&) override
    {
        CHECK(p.once);
        CHECK(p.told_later);
        ++script_.tried;
        script_.at_try();
        if (script_.tries.empty()) return false;
        auto const code = script_.tries.front();
        script_.tries.pop_front();
        if (!code) return true;
        if (code == errc::timed_out) return false;
        throw error{code, "the words of a server"};
    }

    void begin_lock(patience const&, std::stop_token stop, std::unique_ptr<async_result> told) override
    {
        if (script_.waited++ == script_.out_of_memory_at) throw std::bad_alloc{};
        CHECK_FALSE(told->runs_user_code());
        auto next = std::optional<std::error_code>{};
        if (!script_.waits.empty()) {
            next = script_.waits.front();
            script_.waits.pop_front();
        }
        if (next) return told->deliver(*next, !*next);
        script_.at_wait();
        on_stop_.reset();
        told_ = std::move(told);
        on_stop_.emplace(std::move(stop), [this] {
            ++script_.canceled;
            auto const one = std::move(told_);  // which has this object
            one->deliver(std::make_error_code(std::errc::operation_canceled), false);
        });
    }

    void give_back(holdfast::lease const&) noexcept override { ++script_.given_back; }
    void begin_use() noexcept override { ++script_.used; }
    [[nodiscard]] holdfast::lease lease() const override { return {}; }

    void unlock() noexcept override {}
    void unlock(std::error_code&) noexcept override {}
    bool extend(std::chrono::milliseconds, std::error_code&) override { return false; }
    void extend(std::chrono::milliseconds) override {}
    [[nodiscard]] std::string const& name() const noexcept override { return name_; }
    [[nodiscard]] std::string address() const override { return name_; }
    void begin_unlock(holdfast::lease const&, std::unique_ptr<async_result>) override {}
    void close() noexcept override {}
    [[nodiscard]] bool closed() const noexcept override { return false; }

private:
    script& script_;
    std::string name_;
    std::unique_ptr<async_result> told_;
    std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

std::error_code const granted{};
auto const refused = make_error_code(errc::timed_out);
auto const unavailable = make_error_code(errc::unavailable);
auto const misconfigured = make_error_code(errc::misconfigured);
auto const canceled = std::make_error_code(std::errc::operation_canceled);
patience const for_ever;

[[nodiscard]] patience in(std::chrono::milliseconds d) { return {.deadline = boot_clock::now() + d}; }

/// Three slots, and the turn, which is never free.
class three_slots final : public slot_source {
public:
    three_slots(std::vector<script>& of, script& turn) : of_{of}, turn_{turn} {}
    [[nodiscard]] std::shared_ptr<lock_object> make_slot(std::size_t slot) override
    {
        return std::make_shared<scripted>(of_.at(slot));
    }
    [[nodiscard]] std::shared_ptr<lock_object> make_turn() override { return std::make_shared<scripted>(turn_); }
    [[nodiscard]] std::size_t held() override { return 0; }

private:
    std::vector<script>& of_;
    script& turn_;
};

struct three {
    std::vector<script> of{3};
    script turn{};
    slot_sizes slots{"jobs", 3,
                     [this](holdfast::semaphore_slot const&) { return std::make_unique<three_slots>(of, turn); }};

    /// Returns: which slot was taken; nothing if none was.
    [[nodiscard]] std::optional<std::size_t> take(patience const& p, std::stop_token const& stop = {})
    {
        auto const got = permit_wait{slots, 1, p, stop}.run();
        return got.empty() ? std::nullopt : std::optional{got.front().slot};
    }

    [[nodiscard]] int sum(int script::*what) const
    {
        int all = 0;
        for (auto const& one : of) all += one.*what;
        return all;
    }
};

}  // namespace

TEST_CASE("a slot is named by its number") { CHECK(holdfast::semaphore_slot{"jobs", 3, 2}.lock_name() == "jobs#2"); }

TEST_CASE("a free slot is taken without a wait, and is the first that is tried again")
{
    three t;
    t.of[1].tries = {granted, granted};
    CHECK(t.take(for_ever) == 1);
    auto const before = t.sum(&script::tried);
    CHECK(t.take(for_ever) == 1);
    CHECK(t.sum(&script::tried) == before + 1);
    CHECK(t.sum(&script::waited) == 0);
}

TEST_CASE("a single attempt asks for each slot once")
{
    three t;
    CHECK_FALSE(t.take({.once = true}));
    for (auto const& one : t.of) CHECK(one.tried == 1);
    CHECK_FALSE(t.take({.deadline = boot_clock::now() - 1h}));  // as if it were one
    for (auto const& one : t.of) CHECK(one.tried == 2);
    CHECK(t.sum(&script::waited) == 0);
}

TEST_CASE("a single attempt is unavailable only if no slot could be asked")
{
    three t;
    for (auto& one : t.of) one.tries = {unavailable};
    CHECK(code_of([&] { static_cast<void>(t.take({.once = true})); }) == errc::unavailable);
    CHECK(t.sum(&script::tried) == 1);  // the others would take as long
    three some;
    int asked = 0;
    for (auto& one : some.of)
        one.at_try = [&] {
            if (++asked == 2) throw error{errc::unavailable, "the second"};
        };
    CHECK_FALSE(some.take({.once = true}));
    CHECK(asked == 2);
}

TEST_CASE("of the slots that are waited for the first that is granted is taken, and the others are cancelled")
{
    three t;
    t.of[2].waits = {granted};
    CHECK(t.take(for_ever) == 2);
    CHECK(t.sum(&script::canceled) == t.sum(&script::waited) - 1);
    CHECK(t.sum(&script::given_back) == 0);
    CHECK(t.sum(&script::used) == 1);
}

TEST_CASE("what is granted beside it is given back")
{
    auto const all = std::make_shared<holdfast::detail::slot_wait>(for_ever);
    all->tell([] {});
    std::vector<script> of(3);
    std::vector<std::shared_ptr<scripted>> objects;
    for (std::size_t i = 0; i < of.size(); ++i) {
        of[i].waits = {granted};
        objects.push_back(std::make_shared<scripted>(of[i]));
        all->begin(i, objects.back());
    }
    all->begun();
    auto const said = all->settled();
    REQUIRE(said);
    CHECK(said->slot == 0);
    CHECK_FALSE(all->settled());  // once
    CHECK(of[0].given_back == 0);
    CHECK(of[1].given_back == 1);
    CHECK(of[2].given_back == 1);
    for (auto const& one : of) CHECK(one.used == 0);
}

TEST_CASE("a wait ends without a slot if the time passed while others held one")
{
    three t;
    t.of[0].waits = {unavailable};
    t.of[1].waits = {refused};
    t.of[2].waits = {unavailable};
    CHECK_FALSE(t.take(in(1h)));
    CHECK(t.sum(&script::waited) == 3);
    CHECK(t.sum(&script::canceled) == 0);
}

TEST_CASE("a wait with a deadline is unavailable if no slot could be asked at any time")
{
    bool const asked_before = GENERATE(false, true);
    three t;
    for (auto& one : t.of) {
        one.tries = {asked_before ? refused : unavailable};
        one.waits = {unavailable};
    }
    std::string what;
    std::optional<std::size_t> slot;
    auto const code = code_of([&] { slot = t.take(in(1h)); }, &what);
    CHECK_FALSE(slot);
    CHECK(code == (asked_before ? std::error_code{} : unavailable));
    if (!asked_before) CHECK_THAT(what, contains("the words of a server"));
}

TEST_CASE("a wait without a deadline goes on after an outage of one slot that is over")
{
    three t;
    t.of[1].waits = {unavailable, granted};
    CHECK(t.take(for_ever) == 1);
    CHECK(t.of[1].tried == 2);
    CHECK(t.sum(&script::given_back) == 0);
}

TEST_CASE("a wait without a deadline ends in an outage that goes on")
{
    three t;
    t.of[1].tries = {refused, unavailable};
    t.of[1].waits = {unavailable};
    std::string what;
    CHECK(code_of([&] { static_cast<void>(t.take(for_ever)); }, &what) == errc::unavailable);
    CHECK_THAT(what, contains("the words of a server"));
    CHECK(t.sum(&script::canceled) == t.sum(&script::waited) - 1);
}

TEST_CASE("what is misconfigured is thrown at once: by a try, and from a wait in the words of a try")
{
    auto const p = GENERATE(false, true) ? in(1h) : for_ever;
    three tried;
    for (auto& one : tried.of) one.tries = {misconfigured};
    CHECK(code_of([&] { static_cast<void>(tried.take(p)); }) == errc::misconfigured);
    CHECK(tried.sum(&script::tried) == 1);

    three t;
    t.of[1].tries = {refused, misconfigured};
    t.of[1].waits = {misconfigured};
    std::string what;
    CHECK(code_of([&] { static_cast<void>(t.take(p)); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("the words of a server"));
    CHECK(t.sum(&script::canceled) == t.sum(&script::waited) - 1);

    three only_in_a_wait;
    only_in_a_wait.of[1].waits = {misconfigured};
    CHECK(code_of([&] { static_cast<void>(only_in_a_wait.take(p)); }, &what) == errc::misconfigured);
    CHECK_THAT(what, contains("jobs"));

    three mended;
    mended.of[1].tries = {refused, granted};
    mended.of[1].waits = {misconfigured};
    CHECK(mended.take(p) == 1);
}

TEST_CASE("a wait that cannot begin leaves nothing behind")
{
    three t;
    for (auto& one : t.of) one.out_of_memory_at = 0;
    CHECK_THROWS_AS(t.take(for_ever), std::bad_alloc);
    CHECK(t.sum(&script::waited) == 1);
    for (auto& one : t.of) one = {};
    t.of[1].out_of_memory_at = 0;
    CHECK_THROWS_AS(t.take(for_ever), std::bad_alloc);
    CHECK(t.sum(&script::canceled) == t.sum(&script::waited) - 1);
    CHECK(t.sum(&script::given_back) == 0);
    CHECK(t.sum(&script::used) == 0);
}

TEST_CASE("a stop ends the tries and the wait")
{
    three t;
    std::stop_source stop;
    for (auto& one : t.of) one.at_try = [&] { stop.request_stop(); };
    CHECK_FALSE(t.take(for_ever, stop.get_token()));
    CHECK(t.sum(&script::tried) == 1);
    three waits;
    std::stop_source later;
    for (auto& one : waits.of)
        one.at_wait = [&] {
            if (waits.sum(&script::waited) == 3) later.request_stop();
        };
    CHECK_FALSE(waits.take(for_ever, later.get_token()));
    CHECK(waits.sum(&script::canceled) == 3);
}

TEST_CASE("if a try outlasts the deadline all slots are asked at once")
{
    CHECK(eventually([] {
        three t;
        bool late = true;  // the deadline had passed before the first try, or there was none
        auto const deadline = boot_clock::now() + 1s;
        for (auto& one : t.of) {
            one.at_try = [&] {
                if (t.sum(&script::tried) == 1) late = boot_clock::now() >= deadline;
                std::this_thread::sleep_until(deadline + 10ms);
            };
            one.waits = {refused};
        }
        CHECK_FALSE(t.take({.deadline = deadline}));
        if (late) return false;
        CHECK(t.sum(&script::tried) == 1);
        CHECK(t.sum(&script::waited) == 3);
        return true;
    }));
}

TEST_CASE("a thread that waits while the semaphore ends is told")
{
    three t;
    for (auto& one : t.of) one.waits = {canceled};
    CHECK(code_of([&] { static_cast<void>(t.take(for_ever)); }) == std::errc::operation_canceled);
}

TEST_CASE("a forked child waits for nothing that was locked when it was forked")
{
    three t;
    std::atomic<bool> stop{false};
    std::vector<std::jthread> busy;
    for (int i = 0; i < 2; ++i)
        busy.emplace_back([&] {
            while (!stop) static_cast<void>(t.slots.current());
        });
    for (int n = 0; n < 50; ++n) {
        auto const born = ::fork();
        if (born == 0) {
            ::alarm(60);  // which ends it if it hangs
            int wrong = t.slots.max() == 3 ? 0 : 1;
            wrong += code_of([&] { static_cast<void>(t.slots.held()); }) == errc::misconfigured ? 0 : 2;
            wrong += code_of([&] { static_cast<void>(t.slots.current()); }) == errc::misconfigured ? 0 : 4;
            ::_exit(wrong);
        }
        int status = -1;
        CHECK(::waitpid(born, &status, 0) == born);
        CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
        if (!WIFEXITED(status)) break;
    }
    stop = true;
}
