// SPDX-License-Identifier: MIT
#include "support/catch.hpp"

#include <holdfast/redis/question_machine.hpp>

#include <chrono>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::quorum::answer;
using holdfast::quorum::node_set;
using holdfast::redis::errc;
using holdfast::redis::question_machine;

namespace {

constexpr boot_clock::time_point t0{1h};

[[nodiscard]] question_machine three(bool repeats = true) { return {{.size = 3, .timeout = 100ms}, 500ms, repeats}; }

}  // namespace

TEST_CASE("a question is asked of every node, and is over when all have answered or cannot be asked")
{
    auto m = three();
    CHECK(m.start(t0).ask == node_set::all(3));
    CHECK_FALSE(m.on_answer(0, answer::applied(), t0).done);
    CHECK_FALSE(m.on_answer(1, answer::not_sent(errc::cannot_connect), t0).done);
    auto const last = m.on_answer(2, answer::refused(), t0);
    CHECK(last.done);
    CHECK(last.ask.empty());
    CHECK(m.answered() == (node_set::of(0) | node_set::of(2)));
    CHECK(m.doubtful().empty());
}

TEST_CASE("a node that has more to say is asked for it")
{
    auto m = three();
    static_cast<void>(m.start(t0));
    m.expect_more(1);
    auto const more = m.on_answer(1, answer::applied(), t0);
    CHECK(more.ask == node_set::of(1));
    CHECK_FALSE(more.done);
    CHECK(m.on_answer(1, answer::applied(), t0).ask.empty());
    CHECK(m.answered() == node_set::of(1));
}

TEST_CASE("a question whose connection breaks is asked once more, if it may be repeated")
{
    auto m = three();
    static_cast<void>(m.start(t0));
    CHECK(m.on_answer(0, answer::unknown(errc::connection_lost), t0).ask == node_set::of(0));
    CHECK(m.doubtful() == node_set::of(0));
    CHECK(m.on_answer(0, answer::unknown(errc::connection_lost), t0).ask.empty());
    CHECK(m.on_answer(1, answer::unknown(errc::protocol_error), t0).ask.empty());
    CHECK(m.on_answer(2, answer::not_sent(errc::connection_lost), t0).done);
    CHECK(m.doubtful() == (node_set::of(0) | node_set::of(1)));

    auto once = three(false);
    static_cast<void>(once.start(t0));
    CHECK(once.on_answer(0, answer::unknown(errc::connection_lost), t0).ask.empty());
    CHECK(once.doubtful() == node_set::of(0));
}

TEST_CASE("a node is in doubt until it answers: not when it cannot be asked again, nor when it refuses with an error")
{
    auto m = three();
    static_cast<void>(m.start(t0));
    static_cast<void>(m.on_answer(0, answer::unknown(errc::connection_lost), t0));
    static_cast<void>(m.on_answer(1, answer::unknown(errc::connection_lost), t0));
    static_cast<void>(m.on_answer(2, answer::unknown(errc::connection_lost), t0));
    static_cast<void>(m.on_answer(0, answer::not_sent(errc::cannot_connect), t0));
    static_cast<void>(m.on_answer(1, answer::refused(errc::not_permitted), t0));
    CHECK(m.on_answer(2, answer::applied(), t0).done);
    CHECK(m.doubtful() == (node_set::of(0) | node_set::of(1)));
}

TEST_CASE("a question waits for one node timeout after the last answer, and without a majority for a connection, too")
{
    auto m = three();
    static_cast<void>(m.start(t0));
    CHECK(m.wake_at() == t0 + 600ms);
    static_cast<void>(m.on_answer(0, answer::applied(), t0 + 10ms));
    CHECK(m.wake_at() == t0 + 610ms);
    static_cast<void>(m.on_answer(1, answer::applied(), t0 + 20ms));
    CHECK(m.wake_at() == t0 + 120ms);
    auto const over = m.on_time(t0 + 120ms);
    CHECK(over.done);
    CHECK(over.give_up == node_set::of(2));
    CHECK(m.doubtful() == node_set::of(2));
}
