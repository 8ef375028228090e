// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/request.hpp>
#include <holdfast/redis/scripts.hpp>

#include <array>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace holdfast::redis {

/// How a script is named to the server.
enum class script_form {
    by_hash,  ///< EVALSHA
    by_text,  ///< EVAL, after NOSCRIPT
};

/// How the scripts go next over one connection: each as text until the server has run it, so that nothing is taken before it is known that a script
/// may be run that the server does not know; then by its hash; and as text again when the server was found not to know it. It may say so when nobody
/// waits for the answer any more, as that of a node that is farther away than the others: so the next one, whoever sends it, says it in full.
class script_forms {
public:
    script_forms() noexcept { as_text_.fill(true); }

    [[nodiscard]] script_form next(command const& c) const noexcept { return as_text_[index(c)] ? script_form::by_text : script_form::by_hash; }

    /// Effects: notes what the server answered to `c`, which went as `form`.
    void note(command const& c, script_form form, std::error_code why) noexcept
    {
        if (!why || why == errc::no_script) as_text_[index(c)] = why && form == script_form::by_hash;
    }

private:
    static constexpr std::size_t verbs = static_cast<std::size_t>(command::verb::release) + 1;

    /// An acquire has a script for each source of its fence.
    [[nodiscard]] static std::size_t index(command const& c) noexcept
    {
        auto const what = static_cast<std::size_t>(c.what);
        return c.what == command::verb::acquire && c.fence != fence_source::none ? verbs - 1 + static_cast<std::size_t>(c.fence) : what;
    }

    std::array<bool, verbs + 2> as_text_{};
};

namespace detail {

/// A command as words; numbers are written into its own memory.
class words {
public:
    words() = default;
    words(words const&) = delete;
    words& operator=(words const&) = delete;

    void add(std::string_view word) { list_[count_++] = word; }

    template <std::integral I>
    void add(I number)
    {
        auto* const begin = digits_.data() + used_;
        auto* const end = std::to_chars(begin, digits_.data() + digits_.size(), number).ptr;
        used_ = static_cast<std::size_t>(end - digits_.data());
        add(std::string_view{begin, end});
    }

    [[nodiscard]] std::span<std::string_view const> get() const noexcept { return {list_.data(), count_}; }

private:
    std::array<std::string_view, max_words> list_{};
    std::size_t count_ = 0;
    std::array<char, 160> digits_{};
    std::size_t used_ = 0;
};

inline void call(words& w, script const& s, script_form form, int keys)
{
    w.add(form == script_form::by_hash ? "EVALSHA" : "EVAL");
    w.add(form == script_form::by_hash ? s.sha1 : s.text);
    w.add(keys);
}

}  // namespace detail

/// Returns: the bytes of a command.
[[nodiscard]] inline std::string encode(command const& c, script_form form)
{
    detail::words w;
    auto const& keys = *c.keys;
    switch (c.what) {
    case command::verb::acquire: {
        bool const fenced = c.fence != fence_source::none;
        detail::call(w, !fenced ? scripts::acquire : c.fence == fence_source::clock ? scripts::acquire_by_clock : scripts::acquire_by_count,
                     form, fenced ? 2 : 1);
        w.add(keys.lock);
        if (fenced) w.add(keys.fence);
        w.add(c.token.view());
        w.add(c.ttl.count());
        if (!fenced) break;
        w.add(c.batch);
        w.add(c.fence_lifetime.count());
        w.add(fence_bound(c).count());
        if (c.fence != fence_source::counter) break;
        w.add(c.value);
        w.add(c.max_lead.count());
        w.add(c.floor);
        break;
    }
    case command::verb::confirm:
        detail::call(w, scripts::confirm, form, 2);
        w.add(keys.lock);
        w.add(keys.fence);
        w.add(c.token.view());
        w.add(c.value);
        w.add(c.fence_lifetime.count());
        w.add(fence_bound(c).count());
        break;
    case command::verb::extend:
    case command::verb::regain:
        detail::call(w, c.what == command::verb::extend ? scripts::extend : scripts::regain, form, 1);
        w.add(keys.lock);
        w.add(c.token.view());
        w.add(c.ttl.count());
        break;
    case command::verb::release:
        detail::call(w, scripts::release, form, 1);
        w.add(keys.lock);
        w.add(c.token.view());
        w.add(keys.channel);
        break;
    }
    return format(w.get());
}

/// Returns: the script that the server runs for `c`.
[[nodiscard]] inline std::string_view script_text(command const& c) noexcept
{
    using enum command::verb;
    if (c.what == acquire && c.fence == fence_source::none) return scripts::acquire.text;
    if (c.what == acquire) return c.fence == fence_source::clock ? scripts::acquire_by_clock.text : scripts::acquire_by_count.text;
    if (c.what == confirm) return scripts::confirm.text;
    if (c.what == extend) return scripts::extend.text;
    if (c.what == regain) return scripts::regain.text;
    return scripts::release.text;
}

/// Returns: what the reply to an acquire means that found a foreign fence.
[[nodiscard]] inline answer decode_foreign(reply const& fence, reply const& replaced) noexcept
{
    bool const numbers = fence.what() == reply::kind::integer && replaced.what() == reply::kind::integer;
    if (!numbers || fence.integer() < 0 || (replaced.integer() != 1 && (replaced.integer() != 0 || fence.integer() != 0)))
        return answer::failed(errc::protocol_error);
    auto got = fence.integer() > 0 ? answer::yes(static_cast<std::uint64_t>(fence.integer())) : answer::failed(errc::foreign_fence);
    got.fence_replaced = replaced.integer() == 1;
    return got;
}

/// Returns: what the reply to `c` means.
[[nodiscard]] inline answer decode(command const& c, reply const& r) noexcept
{
    if (r.what() == reply::kind::error) return answer::failed(classify(r.text()));
    if (c.what == command::verb::acquire && c.fence != fence_source::none && r.size() == 2) return decode_foreign(r[0], r[1]);
    if (r.what() != reply::kind::integer) return answer::failed(errc::protocol_error);
    auto const n = r.integer();
    if (c.what == command::verb::release && n > 0) return {.what = answer::kind::yes, .told = static_cast<std::uint64_t>(n - 1)};
    if (c.what != command::verb::acquire) return n == 1 ? answer::yes() : answer::no();
    if (n < -other_type_mark)
        return {.what = answer::kind::no, .time_left = std::chrono::milliseconds{-2 - (n + other_type_mark)}, .other_type = true};
    if (n < 0) return answer::no(std::chrono::milliseconds{-2 - n});
    if (c.fence == fence_source::none) return n == 1 ? answer::yes() : answer::no();
    return n > 0 ? answer::yes(static_cast<std::uint64_t>(n)) : answer::no();
}

/// Returns: the clock that `TIME` told; 0 where it told none.
[[nodiscard]] inline std::chrono::microseconds decode_clock(reply const& r) noexcept
{
    if (r.size() != 2) return {};
    std::array<std::uint64_t, 2> numbers{};
    for (std::size_t k = 0; k < 2; ++k) {
        if (r[k].what() == reply::kind::integer) {  // as some say it that are not quite Redis
            if (r[k].integer() < 0) return {};
            numbers[k] = static_cast<std::uint64_t>(r[k].integer());
            continue;
        }
        auto const text = r[k].text();
        auto const [end, why] = std::from_chars(text.data(), text.data() + text.size(), numbers[k]);
        if (why != std::errc{} || end != text.data() + text.size()) return {};
    }
    constexpr std::uint64_t year_10000 = 253'402'300'800;
    if (numbers[0] >= year_10000 || numbers[1] >= 1'000'000) return {};
    return std::chrono::microseconds{numbers[0] * 1'000'000 + numbers[1]};
}

}  // namespace holdfast::redis
