// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/result.hpp>
#include <holdfast/redis/node_set.hpp>
#include <holdfast/redis/transport.hpp>

#include <array>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::redis {

/// Why each node did not do what an operation asked of it when it was last asked; no error for one that did, or said no.
class node_errors {
public:
    void note(unsigned node, std::error_code why) noexcept { all_[node] = why; }

    /// Effects: notes that the answers of these nodes were not waited for; what was known of them before still counts.
    void note_unanswered(node_set nodes) noexcept
    {
        nodes.for_each([&](unsigned node) {
            if (!all_[node]) all_[node] = unanswered();
        });
    }

    /// Returns: `code`, which came from `node`, with the reasons of all nodes that failed: those that have other reasons first, as the words of
    /// `code` stand behind them all. Called without the transport's lock.
    template <Transport T>
    [[nodiscard]] failure explain(T& to, std::error_code code, unsigned node, std::string_view what = {}) const
    {
        failure why{code, std::string{what}, node == max_nodes ? std::string{} : to.describe(node, {})};
        auto add = [&, first = true](std::string const& text, char const* between) mutable {
            if (!std::exchange(first, false))
                why.detail += between;
            else if (!why.detail.empty())
                why.detail += ": ";
            why.detail += text;
        };
        if (to.size() > 1) add("no quorum of " + std::to_string(to.size()) + " masters", "");
        for (unsigned n = 0; n < to.size(); ++n)
            if (all_[n] && all_[n] != code) add(to.describe(n, all_[n]) + words(all_[n]), "; ");
        char const* between = "; ";
        for (unsigned n = 0; n < to.size(); ++n)
            if (all_[n] && all_[n] == code) add(to.describe(n, all_[n]), std::exchange(between, ", "));
        return why;
    }

private:
    [[nodiscard]] static std::error_code unanswered() noexcept { return std::make_error_code(std::errc::operation_in_progress); }

    [[nodiscard]] static std::string words(std::error_code why)
    {
        return why == unanswered() ? " had not answered yet" : ": " + why.message();
    }

    std::array<std::error_code, max_nodes> all_{};
};

}  // namespace holdfast::redis
