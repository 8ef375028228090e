// SPDX-License-Identifier: MIT
//
// The input is what a server answers; each reply in it is taken for the answer to every command there is.
#include "input.hpp"
#include "replies.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/greeting.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/protocol.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

namespace {

using holdfast::redis::answer;
using holdfast::redis::command;
using holdfast::redis::fence_source;
using holdfast::redis::reply;
using holdfast::test::require;

/// Returns: whether `r` is of a kind that a server, whose state is as it has to be, gives to `c`.
bool fits(command const& c, reply const& r)
{
    bool const foreign = c.what == command::verb::acquire && c.fence != fence_source::none && r.size() == 2;
    return foreign ? r[0].what() == reply::kind::integer && r[1].what() == reply::kind::integer
                   : r.what() == reply::kind::integer;
}

void check(command const& c, reply const& r)
{
    auto const a = holdfast::redis::decode(c, r);
    bool const acquires = c.what == command::verb::acquire;
    bool const fenced = acquires && c.fence != fence_source::none;

    require(a.error ? a.what != answer::kind::applied : a.what != answer::kind::unknown, "what is not known says why");
    if (a.error) {
        require(r.what() == reply::kind::error || !fits(c, r) || r.size() == 2,
                "only an error, or what is no answer to the command, is an error");
        require(a.error == holdfast::errc::unavailable || a.error == holdfast::errc::misconfigured,
                "an error may pass, or it will not");
        require(r.what() == reply::kind::error || a.error == holdfast::redis::errc::protocol_error ||
                    a.error == holdfast::redis::errc::foreign_fence,
                "what is no answer breaks the protocol");
        return;
    }
    require(r.what() != reply::kind::error && fits(c, r), "an answer is of the kind that the command has");
    if (a.what == answer::kind::applied) {
        auto const& number = r.size() == 2 ? r[0] : r;
        require(number.integer() > 0, "nothing is granted by zero or less");
        require((a.fence != 0) == fenced, "a fence comes with a lock that has one, and with nothing else");
        require(!fenced || a.fence == static_cast<std::uint64_t>(number.integer()), "the fence is the server's");
        require(!a.others_wait || c.what == command::verb::release, "only a release is told to others");
    } else {
        require(a.fence == 0 && !a.others_wait, "who was refused has nothing");
        require(a.time_left >= holdfast::redis::unknown_time_left,
                "a time that is left is not negative, or it is not known");
        require(acquires || a.time_left.count() == 0, "only who wants a lock is told when");
    }
}

void check_words(std::string_view text)
{
    constexpr std::string_view script = "\nredis.call('SET', KEYS[1])\nredis.call('GET', KEYS[1])\n";
    auto const detail = holdfast::redis::error_reply{text}.detail(script, "secret");
    require(detail.size() < 600, "a detail is short");
    require(detail.find("secret") == std::string::npos, "a detail has no secret");
    require(std::all_of(detail.begin(), detail.end(),
                        [](char c) { return (c >= 0x20 && c < 0x7f) || static_cast<unsigned char>(c) >= 0x80; }),
            "a detail has nothing that a terminal obeys");
}

/// Has `r` answer everything that a greeting asks.
void greet(reply const& r)
{
    using holdfast::redis::greeting_exchange;
    for (auto const what : {greeting_exchange::hello::plain, greeting_exchange::hello::about_itself,
                            greeting_exchange::hello::with_clock}) {
        greeting_exchange greeting;
        static_cast<void>(greeting.begin({}, what));
        while (!greeting.done())
            if (greeting.on_reply(r)) break;
        if (greeting.done()) require(greeting.got().server_time.count() >= 0, "a clock is not before 1970");
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    holdfast::redis::reply_reader reader;
    if (!reader.feed(holdfast::test::text_of(data, size))) return 0;
    for (;;) {
        auto const next = reader.next();
        if (!next || !*next) return 0;
        auto const r = next->get();
        require(holdfast::test::written(r) == holdfast::test::written(r), "a reply can be read to its end");
        require(holdfast::redis::decode_clock(r).count() >= 0, "a clock is not before 1970");
        if (r.what() == reply::kind::error) check_words(r.text());
        greet(r);
        for (auto const verb : {command::verb::acquire, command::verb::confirm, command::verb::extend,
                                command::verb::reacquire, command::verb::release})
            for (auto const fence : {fence_source::none, fence_source::clock, fence_source::counter}) {
                command c;
                c.what = verb;
                c.fence = fence;
                check(c, r);
            }
        for (auto const verb : {command::verb::inspect, command::verb::force_release, command::verb::request_release,
                                command::verb::list}) {
            command c;
            c.what = verb;
            auto const a = holdfast::redis::decode(c, r);
            bool const asks = verb == command::verb::inspect || verb == command::verb::list;
            require((a.report != nullptr) == (asks && a.what == holdfast::redis::answer::kind::applied),
                    "an operator gets a report if there is something to say, and otherwise none");
        }
    }
}
