// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/keys.hpp>
#include <holdfast/redis/operator_operation.hpp>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// Asks how many slots of a semaphore are held. Each node says all of its slots in one step; on one Redis that is a
/// number of one moment.
///
/// | of the nodes, say the same owner for a slot | the slot |
/// |---------------------------------------------|----------|
/// | a majority                                  | is counted |
/// | fewer, and a majority with all the silent   | is counted: it may be held |
/// | fewer                                       | is not counted: no owner has a majority |
///
/// So none is missing that was held through the whole question.
class count_operation final : public operator_operation<std::size_t> {
public:
    /// `keys`: of slot 0. Requires: there are `slots` of them.
    count_operation(transport& way, shared_keys keys, std::size_t slots)
        : operator_operation{way,
                             {.what = command::verb::count, .keys = std::move(keys), .token = {}, .value = slots},
                             lost_answer::repeat},
          slots_{slots}
    {
    }

private:
    [[nodiscard]] result<std::size_t> evaluate() const override
    {
        auto const silent = size() - answered().size();
        std::size_t held = 0;
        for (std::size_t slot = 0; slot < slots_; ++slot) held += most_of(slot) + silent >= majority() ? 1U : 0U;
        return held;
    }

    /// Returns: how many nodes say the same owner for `slot`, at most.
    [[nodiscard]] unsigned most_of(std::size_t slot) const
    {
        unsigned most = 0;
        answered().for_each([&](unsigned node) {
            std::string_view const owner = owner_at(node, slot);
            if (owner.empty()) return;
            unsigned same = 0;
            answered().for_each([&](unsigned other) { same += owner_at(other, slot) == owner ? 1U : 0U; });
            most = std::max(most, same);
        });
        return most;
    }

    [[nodiscard]] std::string_view owner_at(unsigned node, std::size_t slot) const
    {
        return answer_of(node).report->names[slot];
    }

    std::size_t slots_;
};

}  // namespace holdfast::redis
