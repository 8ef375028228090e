// SPDX-License-Identifier: MIT
//
// Makes a client and a lock. Making them does no I/O, so no server is needed. One that is to talk TLS is refused: no
// file of the program brings it. A worker that is forked then has locks of its own.
#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace {

/// Returns: whether a lock that a forked worker takes is held there. Its lease is asked by this program's own code, and
/// may have been made by that of a shared library.
bool worker_holds()
{
    auto const worker = ::fork();
    if (worker == 0) {
        holdfast::memory::store store;
        holdfast::memory::mutex own{store, "orders/42"};
        own.lock();
        ::_exit(own.lease().lost_token().stop_requested() ? 1 : 0);
    }
    int status = 1;
    return worker > 0 && ::waitpid(worker, &status, 0) == worker && status == 0;
}

}  // namespace

int main()
{
    holdfast::redis::client redis{"redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42"};
    if (!worker_holds()) return 3;
    try {
        holdfast::redis::client secured{"rediss://redis.example"};
    } catch (holdfast::error const& e) {
        return e.code() == holdfast::errc::misconfigured && std::strstr(e.what(), "holdfast/tls.hpp") ? 0 : 2;
    }
    return 1;
}
