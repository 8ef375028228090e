// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/request.hpp>
#include <holdfast/redis/script_forms.hpp>
#include <holdfast/redis/script_table.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Effects: adds the words of an acquire_all. Throws: `std::bad_alloc`.
inline void encode_acquire_all(request& w, command const& c, script_form form)
{
    bool const by_hash = form == script_form::by_hash;
    w.add(by_hash ? "EVALSHA" : "EVAL");
    auto const text = by_hash ? std::string{} : script_of(c).text();
    w.add(by_hash ? script_of(c).sha1 : std::string_view{text});
    w.add(c.members->size() * (c.use_holder ? 5 : 4));
    for (auto const& one : *c.members) {
        w.add(one.keys->lock);
        w.add(one.keys->fence());
        w.add(one.keys->queue());
        w.add(one.keys->next());
        if (c.use_holder) w.add(one.keys->holder());
    }
    w.add(c.fence_lifetime.count());
    w.add(unguarded_fence_bound.count());
    w.add(c.use_holder ? c.holder : std::string_view{});
    for (auto const& one : *c.members) {
        w.add(one.token.view());
        w.add(one.ttl.count());
        w.add(one.batch);
    }
}

/// Returns: what the reply to `c`, an acquire_all, means.
[[nodiscard]] inline answer decode_acquire_all(command const& c, reply const& r) noexcept
try {
    using enum reply::kind;
    if (r.what() != array || r.size() == 0 || r[0].what() != integer) return answer::failed(errc::protocol_error);
    auto told = std::make_shared<node_report>();
    if (auto const number = r[0].integer(); number < 0) {
        auto const place = static_cast<std::uint64_t>(-(number + 1));
        if (r.size() != 2 || place >= c.members->size() || r[1].what() != integer)
            return answer::failed(errc::protocol_error);
        auto got = answer::no(std::chrono::milliseconds{r[1].integer()});
        told->blocker = place;
        got.report = std::move(told);
        return got;
    }
    if (r.size() != c.members->size()) return answer::failed(errc::protocol_error);
    for (std::size_t k = 0; k < r.size(); ++k) {
        bool const fenced = (*c.members)[k].batch != 0;
        if (r[k].what() != integer || r[k].integer() < 0 || (r[k].integer() != 0) != fenced)
            return answer::failed(errc::protocol_error);
        told->fences.push_back(static_cast<std::uint64_t>(r[k].integer()));
    }
    auto got = answer::yes();
    got.report = std::move(told);
    return got;
} catch (std::bad_alloc const&) {  // it may have been done
    return answer::failed(errc::protocol_error);
}

}  // namespace holdfast::redis
