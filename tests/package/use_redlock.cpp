// SPDX-License-Identifier: MIT
//
// Makes a quorum of masters and a lock. Making them does no I/O, so no server is needed.
#include <holdfast/redlock.hpp>

int main()
{
    holdfast::redlock::masters three{{"redis://127.0.0.1:6379", "redis://127.0.0.1:6380", "redis://127.0.0.1:6381"}};
    holdfast::redlock::mutex orders{three, "orders/42"};
}
