// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/holder_text.hpp>
#include <holdfast/core/insertion_sort.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/operator_operation.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Asks who has a lock. The holder is who has a majority of the nodes.
class inspect_operation final : public operator_operation<lock_report> {
public:
    inspect_operation(transport& way, shared_keys keys)
        : operator_operation{
              way, {.what = command::verb::inspect, .keys = std::move(keys), .token = {}}, lost_answer::repeat}
    {
    }

private:
    [[nodiscard]] result<lock_report> evaluate() const override
    {
        std::map<std::string_view, std::vector<node_report const*>> owners;
        unsigned most = 0;
        answered().for_each([&](unsigned node) {
            auto const* const said = answer_of(node).report.get();
            if (!said) return;  // it is free there
            auto& same = owners[said->digest];
            same.push_back(said);
            most = std::max(most, static_cast<unsigned>(same.size()));
        });
        auto const silent = size() - answered().size();
        for (auto const& [digest, same] : owners)
            // mutant: a holder that is not on all masters not named
            if (same.size() >= majority()) return lock_report{.holder = holder_of(same), .lease = std::string{digest}};
        if (most + silent < majority()) return lock_report{};  // no client has a majority
        auto why = unanswered();
        why.code = make_error_code(holdfast::errc::unavailable);
        why.detail = "undecided: of " + std::to_string(size()) + " masters, " + std::to_string(most) +
                     " say that it is held by the same owner, and " + std::to_string(silent) + " do not answer; " +
                     why.detail;
        return why;
    }

    [[nodiscard]] lock_holder holder_of(std::vector<node_report const*> const& same) const
    {
        lock_holder h;
        auto const who = most_named(same);
        std::vector<std::chrono::milliseconds> left;
        for (auto const* one : same) {
            left.push_back(one->left.count() < 0 ? std::chrono::milliseconds::max() : one->left);
            if (one->waiting >= 0) h.waiting = std::max(h.waiting.value_or(0), static_cast<std::size_t>(one->waiting));
            auto const fence = who_in(one->record) == who ? read_record(*one, h) : 0;
            if (one == same.front()) h.fencing_token = fence;
            if (fence != h.fencing_token) h.fencing_token = 0;
        }
        // A master that granted the lock with a greater fence may have been asked too late, or be silent now.
        if (same.size() < size()) h.fencing_token = 0;
        // Held as long as a majority has the key.
        auto const last = left.begin() + static_cast<std::ptrdiff_t>(majority()) - 1;
        holdfast::detail::insertion_sort(left.begin(), left.end(), std::greater<>{});
        if (*last != std::chrono::milliseconds::max()) h.remaining = *last;
        return h;
    }

    /// Returns: what a record says of the client.
    [[nodiscard]] static std::string_view who_in(std::string_view record)
    {
        auto const since = record.find(' ', 1);
        auto const fence = since == std::string_view::npos ? since : record.find(' ', since + 1);
        return fence == std::string_view::npos ? std::string_view{} : record.substr(fence);
    }

    /// Returns: the client that most nodes name. Of several readers, they may name different ones.
    [[nodiscard]] static std::string_view most_named(std::vector<node_report const*> const& same)
    {
        std::map<std::string_view, unsigned> named;
        std::string_view who;
        for (auto const* one : same)
            if (auto const it = who_in(one->record); !it.empty() && ++named[it] > named[who]) who = it;
        return who;
    }

    /// Effects: adds what a record says: "<mark><since> <fence> <text>". Returns: the fence; 0 if it is not known.
    [[nodiscard]] static std::uint64_t read_record(node_report const& said, lock_holder& into)
    {
        std::string_view text = said.record;
        if (text.empty()) return 0;
        into.release_requested = into.release_requested || text.front() == '!';
        text.remove_prefix(1);
        auto const number = [&text] {
            std::int64_t n = 0;
            auto const* const end = text.data() + text.size();
            text.remove_prefix(static_cast<std::size_t>(std::from_chars(text.data(), end, n).ptr - text.data()));
            if (!text.empty()) text.remove_prefix(1);
            return n;
        };
        using std::chrono::system_clock;
        std::chrono::microseconds const at{number()};
        constexpr std::chrono::hours longest{24 * 365 * 50};
        // Anything else is no time that a client has written, or no clock.
        if (at.count() > 0 && at <= said.clock && said.clock - at < longest) {
            auto const ago = std::chrono::duration_cast<system_clock::duration>(said.clock - at);
            auto const since = system_clock::now() - ago;
            into.since = std::min(into.since.value_or(since), since);
        }
        auto const fence = static_cast<std::uint64_t>(number());
        holdfast::detail::read_holder_text(text, into);
        return fence;
    }
};

/// Deletes the key of a lock on every node.
class force_release_operation final : public operator_operation<bool> {
public:
    force_release_operation(transport& way, shared_keys keys)
        : operator_operation{
              way, {.what = command::verb::force_release, .keys = std::move(keys), .token = {}}, lost_answer::unknown}
    {
    }

private:
    [[nodiscard]] result<bool> evaluate() const override
    {
        unsigned deleted = 0;
        unsigned others = 0;
        answered().for_each([&](unsigned node) {
            deleted += answer_of(node).what == answer::kind::applied ? 1U : 0U;
            others += answer_of(node).other_type ? 1U : 0U;
        });
        if (deleted >= majority() || others == 0) return deleted > 0;
        return failure{make_error_code(holdfast::errc::misconfigured),
                       "its key holds a value of another type: no lock of this kind has put it there, and it is not "
                       "deleted"};
    }
};

/// Marks the record of a lock's holder on every node.
class request_release_operation final : public operator_operation<bool> {
public:
    request_release_operation(transport& way, shared_keys keys)
        : operator_operation{
              way, {.what = command::verb::request_release, .keys = std::move(keys), .token = {}}, lost_answer::repeat}
    {
    }

private:
    [[nodiscard]] result<bool> evaluate() const override
    {
        unsigned marked = 0;
        unsigned unknown = 0;
        unsigned free = 0;
        answered().for_each([&](unsigned node) {
            auto const& a = answer_of(node);
            marked += a.what == answer::kind::applied ? 1U : 0U;
            unknown += a.no_record ? 1U : 0U;
            free += a.what == answer::kind::refused && !a.no_record ? 1U : 0U;
        });
        // A renewal hears of it from any master whose answer counts, and a majority of them counts.
        if (marked >= majority()) return true;
        if (free > size() - majority()) return false;
        if (unknown > 0 && marked + (size() - answered().size()) < majority())
            return failure{
                make_error_code(holdfast::errc::misconfigured),
                "its holder cannot be told: there is no record of it, which a client keeps unless name_holder is off "
                "or it may not use the keys holdfast:holder:"};
        auto why = unanswered();
        why.code = make_error_code(holdfast::errc::unavailable);
        why.detail = "undecided: of " + std::to_string(size()) + " masters, " + std::to_string(marked) +
                     " have a record of its holder, and on " + std::to_string(free) + " it is free; " + why.detail;
        return why;
    }
};

/// Changes the number of permits of a semaphore on every node, to that of `keys`. Yields `true` if a majority has it:
/// none of the others can grant a slot for another number.
class resize_operation final : public operator_operation<bool> {
public:
    resize_operation(transport& way, shared_keys keys, std::chrono::milliseconds ttl)
        : operator_operation{way,
                             {.what = command::verb::resize, .keys = std::move(keys), .token = {}, .ttl = ttl},
                             lost_answer::same_again}
    {
    }

private:
    [[nodiscard]] result<bool> evaluate() const override { return true; }
};

/// Asks for the names of the locks that are held on a majority of the nodes.
class list_operation final : public operator_operation<std::vector<std::string>> {
public:
    /// Lists the keys that begin with `key_prefix` and `prefix`, without `key_prefix`.
    list_operation(transport& way, std::string_view key_prefix, std::string_view prefix)
        : operator_operation{way,
                             {.what = command::verb::list, .keys = pattern_of(key_prefix, prefix), .token = {}},
                             lost_answer::repeat},
          cut_{key_prefix.size()}
    {
    }
    ~list_operation() override { stop(); }

private:
    /// Source: "KEYS", in the commands of Redis (redis.io): what stands for other characters in a pattern.
    [[nodiscard]] static shared_keys pattern_of(std::string_view key_prefix, std::string_view prefix)
    {
        std::string text;
        for (auto const part : {key_prefix, prefix})
            for (char const c : part) {
                if (std::string_view{"*?[]^-\\"}.find(c) != std::string_view::npos) text += '\\';
                text += c;
            }
        return std::make_shared<lock_keys const>(text + '*');
    }

    std::uint64_t next(unsigned node, answer const& a) override
    {
        for (auto const& name : a.report->names) where_[name].add(node);
        return a.report->cursor;
    }

    [[nodiscard]] result<std::vector<std::string>> evaluate() const override
    {
        std::vector<std::string> names;
        for (auto const& [name, nodes] : where_)
            // mutant: a lock that is not on all masters not listed
            if (nodes.size() >= majority() && name.size() > cut_) names.push_back(name.substr(cut_));
        return names;
    }

    std::size_t cut_;
    std::map<std::string, node_set> where_;
};

}  // namespace holdfast::redis
