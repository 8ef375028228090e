// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/number.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/joint_protocol.hpp>
#include <holdfast/redis/request.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/waiter_id.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// About how many keys a server looks at for one answer to a list.
inline constexpr unsigned keys_of_a_list = 100;

/// What is sent in place of a token that owns nothing: longer than what scripts read of a key, so that no key has it.
inline constexpr std::string_view no_token = "none, and longer than those 33 bytes";
static_assert(no_token.size() > 33);

namespace detail {

/// Returns: what is sent as the owner token of `c`.
[[nodiscard]] inline std::string_view token_of(command const& c) noexcept
{
    if (of_operator(c)) return {};
    return c.token == owner_token{} ? no_token : c.token.view();
}

}  // namespace detail

/// Effects: makes the request for a renewal, or for those that are asked for together. Throws: `std::bad_alloc`.
inline void encode_renewals(request& w, command const& first)
{
    bool const phased = knows_phase(first);
    bool const remembers = phased && !in_redisson(first);
    w.add(first.together * (1U + (phased ? 1 : 0) + (remembers ? 1 : 0) + (first.use_holder ? 1 : 0)));
    for (auto const* c = &first; c; c = c->also) {
        w.add(c->keys->lock);
        if (phased) w.add(c->keys->readers());
        if (remembers) w.add(c->keys->phase());
        if (c->use_holder) w.add(c->keys->holder());
    }
    if (first.together > 1) w.add(first.together);
    for (auto const* c = &first; c; c = c->also) {
        w.add(detail::token_of(*c));
        w.add(c->ttl.count());
        if (knows_number(*c)) w.add(c->keys->permits());
    }
}

/// Effects: makes the request for a command, in place of the last one. Throws: `std::bad_alloc`.
inline void encode(request& w, command const& c, script_form form)
{
    w.begin();
    if (c.what == command::verb::acquire_all) return encode_acquire_all(w, c, form);
    bool const fenced =
        c.what == command::verb::confirm || (c.what == command::verb::acquire && c.fence != fence_source::none);
    bool const by_hash = form == script_form::by_hash;
    w.add(by_hash ? "EVALSHA" : "EVAL");
    auto const text = by_hash ? std::string{} : script_of(c).text();
    w.add(by_hash ? script_of(c).sha1 : std::string_view{text});
    if (c.what == command::verb::extend) return encode_renewals(w, c);
    bool const queued = c.use_queue && may_queue(c) && !(mode_of(c) == access::shared && asks_for_vote(c));
    auto const add_waiter = [&] {
        bool const named = queued && c.waiter;
        if (!named && !(c.rolls_back && mode_of(c) == access::exclusive && !in_redisson(c))) return;
        w.add(named ? waiter_text{c.waiter}.view() : std::string_view{});
        w.add(named ? c.score : 0);
    };
    if (c.what == command::verb::list) {
        w.add(0);
        w.add(c.value);
        w.add(c.keys->lock);
        w.add(keys_of_a_list);
        return;
    }
    bool const phased = knows_phase(c);
    bool const remembers = phased && !in_redisson(c);
    w.add((fenced ? 2 : 1) + (phased ? 1 : 0) + (remembers ? 1 : 0) + (queued ? 2 : 0) + (c.use_holder ? 1 : 0));
    w.add(c.keys->lock);
    if (fenced) w.add(c.keys->fence());
    if (phased) w.add(c.keys->readers());
    if (remembers) w.add(c.keys->phase());
    if (queued) w.add(c.keys->queue());
    if (queued) w.add(c.keys->next());
    if (c.use_holder) w.add(c.keys->holder());
    w.add(detail::token_of(c));
    switch (c.what) {
    case command::verb::acquire:
        w.add(c.ttl.count());
        if (fenced) {
            w.add(c.batch);
            w.add(c.fence_lifetime.count());
            w.add(fence_bound(c).count());
        }
        if (c.fence == fence_source::counter) {
            w.add(c.value);
            w.add(c.max_lead.count());
            w.add(c.floor);
        }
        if (phased) {
            w.add(c.has_beside ? c.beside.view() : std::string_view{});
            w.add(c.waits_for.count());
            if (mode_of(c) == access::shared && c.waiter && !in_redisson(c)) w.add(waiter_text{c.waiter}.view());
        }
        add_waiter();
        if (c.use_holder) w.add(c.holder);
        break;
    case command::verb::confirm:
        w.add(c.value);
        w.add(c.fence_lifetime.count());
        w.add(fence_bound(c).count());
        break;
    case command::verb::reacquire:
        w.add(c.ttl.count());
        if (c.use_holder) w.add(c.holder);
        break;
    case command::verb::extend:
    case command::verb::inspect:
    case command::verb::request_release:
    case command::verb::list:
    case command::verb::acquire_all: break;
    case command::verb::count: w.add(c.value); break;
    case command::verb::resize:
        w.add(c.keys->permits());
        w.add(c.ttl.count());
        break;
    case command::verb::force_release: w.add(c.keys->channel()); break;
    case command::verb::release:
    case command::verb::leave:
        w.add(c.keys->channel());
        if (mode_of(c) != access::shared)
            add_waiter();
        else if (c.what == command::verb::leave && c.waiter && !in_redisson(c))
            w.add(waiter_text{c.waiter}.view());
        break;
    }
    if (knows_number(c)) w.add(c.keys->permits());
}

/// Returns: what the reply means to an acquire that found a foreign fence.
[[nodiscard]] inline answer decode_foreign(reply const& fence, reply const& replaced) noexcept
{
    bool const numbers = fence.what() == reply::kind::integer && replaced.what() == reply::kind::integer;
    if (!numbers || fence.integer() < 0 ||
        (replaced.integer() != 1 && (replaced.integer() != 0 || fence.integer() != 0)))
        return answer::failed(errc::protocol_error);
    auto got = fence.integer() > 0 ? answer::yes(static_cast<std::uint64_t>(fence.integer()))
                                   : answer::failed(errc::foreign_fence);
    got.fence_replaced = replaced.integer() == 1;
    return got;
}

/// Returns: what the reply means to an operator who asks about a lock, or for the names of locks.
[[nodiscard]] inline answer decode_report(command const& c, reply const& r) noexcept
try {
    using enum reply::kind;
    auto got = answer::yes();
    auto told = std::make_shared<node_report>();
    if (r.what() != array) return answer::failed(errc::protocol_error);
    if (c.what == command::verb::count) {
        if (r.size() != c.value) return answer::failed(errc::protocol_error);
        for (std::size_t k = 0; k < r.size(); ++k) told->names.emplace_back(r[k].text());
    } else if (c.what == command::verb::list) {
        if (r.size() == 0) return answer::failed(errc::protocol_error);
        told->cursor = holdfast::detail::number_in<std::uint64_t>(r[0].text()).value_or(0);
        for (std::size_t k = 1; k < r.size(); ++k) told->names.emplace_back(r[k].text());
    } else {
        if (r.size() == 0) return answer::no();
        if (r.size() != 5 || r[0].what() != integer || r[4].what() != integer)
            return answer::failed(errc::protocol_error);
        told->left = std::chrono::milliseconds{r[0].integer()};
        told->digest = r[1].text();
        told->clock = std::chrono::microseconds{holdfast::detail::number_in<std::int64_t>(r[2].text()).value_or(0)};
        told->record = r[3].text();
        told->waiting = r[4].integer();
    }
    got.report = std::move(told);
    return got;
} catch (std::bad_alloc const&) {
    return answer::failed(std::make_error_code(std::errc::not_enough_memory));
}

/// Returns: what the reply means to an operator who asks for something.
[[nodiscard]] inline answer decode_request(command const& c, long long n) noexcept
{
    if (n > 0) return answer::yes();
    auto got = answer::no();
    got.other_type = n < 0 && c.what == command::verb::force_release;
    got.no_record = n < 0 && c.what == command::verb::request_release;
    return got;
}

/// Returns: what -2 less the time left means, as the answer to an acquire.
[[nodiscard]] inline answer decode_refusal(command const& c, long long n) noexcept
{
    bool const other_type = n < -other_type_mark;
    auto got = answer::no(std::chrono::milliseconds{-2 - (other_type ? n + other_type_mark : n)});
    got.other_type = other_type;
    got.in_line = gets_in_line(c);
    return got;
}

/// Returns: what the reply to `c` means.
[[nodiscard]] inline answer decode(command const& c, reply const& r) noexcept
{
    if (r.what() == reply::kind::error) return answer::failed(classify(r.text()));
    if (c.what == command::verb::acquire_all) return decode_acquire_all(c, r);
    if (c.what == command::verb::acquire && r.size() == 2) {
        bool const numbers = r[0].what() == reply::kind::integer && r[1].what() == reply::kind::integer;
        if (numbers && r[0].integer() < 0 && gets_in_line(c)) {
            auto got = decode_refusal(c, r[0].integer());
            got.last_score = r[1].integer();
            return got;
        }
        if (c.fence != fence_source::none) return decode_foreign(r[0], r[1]);
    }
    if (c.what == command::verb::inspect || c.what == command::verb::list || c.what == command::verb::count)
        return decode_report(c, r);
    if (r.what() != reply::kind::integer) return answer::failed(errc::protocol_error);
    auto const n = r.integer();
    if (of_operator(c)) return decode_request(c, n);
    if ((c.what == command::verb::release || c.what == command::verb::leave) && n > 0) {
        auto got = answer::yes();
        got.others_wait = n > 1;
        return got;
    }
    if (extends(c) && c.use_holder && n == 2) {
        auto got = answer::yes();
        got.release_requested = true;
        return got;
    }
    if (c.what != command::verb::acquire) return n == 1 ? answer::yes() : answer::no();
    if (n < 0) return decode_refusal(c, n);
    bool const plain = c.fence == fence_source::none;
    if (n == 0 || (plain && n != 1)) return answer::no();
    auto got = answer::yes(plain ? 0 : static_cast<std::uint64_t>(n));
    got.in_line = gets_in_line(c);
    return got;
}

/// Returns: the clock in a reply to `TIME`; 0 if there is none.
[[nodiscard]] inline std::chrono::microseconds decode_clock(reply const& r) noexcept
{
    if (r.size() != 2) return {};
    std::array<std::uint64_t, 2> numbers{};
    for (std::size_t k = 0; k < 2; ++k) {
        if (r[k].what() == reply::kind::integer) {  // from servers that are not quite Redis
            if (r[k].integer() < 0) return {};
            numbers[k] = static_cast<std::uint64_t>(r[k].integer());
            continue;
        }
        auto const number = holdfast::detail::number_in<std::uint64_t>(r[k].text());
        if (!number) return {};
        numbers[k] = *number;
    }
    constexpr std::uint64_t year_10000 = 253'402'300'800;
    if (numbers[0] >= year_10000 || numbers[1] >= 1'000'000) return {};
    return std::chrono::microseconds{numbers[0] * 1'000'000 + numbers[1]};
}

}  // namespace holdfast::redis
