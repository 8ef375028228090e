// SPDX-License-Identifier: MIT
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <thread>

namespace holdfast::test {

/// Asks until the answer is yes. The limit is only there to end a test that fails, so it is generous.
/// Returns: false when the limit passed without a yes.
template <std::predicate Condition>
[[nodiscard]] bool eventually(Condition condition, std::chrono::milliseconds limit = std::chrono::minutes{1})
{
    using namespace std::chrono_literals;
    auto const deadline = std::chrono::steady_clock::now() + limit;
    for (auto pause = 50us; !condition(); pause = std::min<std::chrono::microseconds>(2 * pause, 2ms)) {
        if (std::chrono::steady_clock::now() >= deadline) return condition();
        std::this_thread::sleep_for(pause);
    }
    return true;
}

}  // namespace holdfast::test
