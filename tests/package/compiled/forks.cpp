// SPDX-License-Identifier: MIT
//
// A worker that is forked after the first client was made has locks of its own. Its lease is asked by the code of this
// file, and was made by that of the library: both count the same forks.
#include <holdfast/memory.hpp>

#include <sys/wait.h>
#include <unistd.h>

int main()
{
    holdfast::memory::store store;
    holdfast::memory::mutex orders{store, "orders/42"};
    auto const worker = ::fork();
    if (worker == 0) {
        holdfast::memory::store own;
        holdfast::memory::mutex invoices{own, "invoices/42"};
        invoices.lock();
        ::_exit(invoices.lease().lost_token().stop_requested() ? 1 : 0);
    }
    int status = 1;
    return worker > 0 && ::waitpid(worker, &status, 0) == worker && status == 0 ? 0 : 1;
}
