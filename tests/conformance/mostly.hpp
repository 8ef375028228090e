// SPDX-License-Identifier: MIT
#pragma once

namespace holdfast::test {

/// Returns: whether `f()`, which is called up to 20 times, was true 12 times. A waiter that is called has its turn for
/// 50 ms, or for 100 ms. If the machine lets it wait for longer, it has lost it, and the order is another.
template <class F>
bool mostly(F f)
{
    int right = 0;
    for (int wrong = 0; right < 12 && wrong < 9;) ++(f() ? right : wrong);
    return right == 12;
}

}  // namespace holdfast::test
