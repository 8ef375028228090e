// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/sim/read_phase.hpp>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::sim {

/// A key of a simulated server.
struct stored_key {
    std::string holds;
    std::optional<std::chrono::milliseconds> expires;
    bool has_record = false;         ///< there is a record of the holder
    bool release_requested = false;  ///< that record is marked
};

using key_table = std::map<std::string, stored_key, std::less<>>;

/// What operators ask, of the keys that there are at `t`; see `redis::command`.
class operator_answers {
public:
    operator_answers(key_table& keys, phase_table& phases, std::chrono::microseconds t)
        : keys_{keys}, phases_{phases}, t_{t}
    {
    }

    [[nodiscard]] redis::answer inspect(redis::command const& c) const
    {
        auto const found = keys_.find(c.keys->lock);
        if (found == keys_.end()) return redis::answer::no();  // mutant: a free lock shown as held
        auto const& [holds, expires, has_record, marked] = found->second;
        auto told = std::make_shared<redis::node_report>();
        told->digest = holds;
        told->left = expires ? *expires - std::chrono::floor<std::chrono::milliseconds>(t_) : redis::unknown_time_left;
        told->clock = t_;
        if (has_record) told->record = record_text(marked);
        if (holds == read_phase::reserved) told->record = phases_[c.keys->lock].record();
        return with(std::move(told));
    }

    [[nodiscard]] redis::answer request_release(redis::command const& c) const
    {
        auto const found = keys_.find(c.keys->lock);
        auto no = redis::answer::no();
        if (found == keys_.end()) return no;
        auto& key = found->second;
        key.release_requested = key.has_record;
        no.no_record = !(key.holds == read_phase::reserved ? phases_[c.keys->lock].ask_all() : key.has_record);
        return no.no_record ? no : redis::answer::yes();
    }

    /// All in one answer. The pattern of `c` ends with a star, and nothing else in it stands for other characters.
    [[nodiscard]] redis::answer list(redis::command const& c) const
    {
        auto told = std::make_shared<redis::node_report>();
        auto const prefix = std::string_view{c.keys->lock}.substr(0, c.keys->lock.size() - 1);
        for (auto const& [name, key] : keys_)
            if (name.starts_with(prefix) && key.expires) told->names.push_back(name);
        return with(std::move(told));
    }

private:
    [[nodiscard]] static redis::answer with(std::shared_ptr<redis::node_report> told)
    {
        auto yes = redis::answer::yes();
        yes.report = std::move(told);
        return yes;
    }

    key_table& keys_;
    phase_table& phases_;
    std::chrono::microseconds t_;
};

}  // namespace holdfast::sim
