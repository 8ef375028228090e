// SPDX-License-Identifier: MIT
//
// A lock on ZooKeeper. Start it several times: each waits for the one before it, in the order in which they came, and
// says who has the lock and who waits for it.
//
//   zookeeper_lock [SERVERS]      127.0.0.1:2181
#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

namespace {

char const* name(holdfast::zookeeper::session_state s)
{
    using enum holdfast::zookeeper::session_state;
    return s == connected   ? "connected"
           : s == suspended ? "suspended: no server is reached, the lock may live on"
                            : "lost, and the lock with it";
}

}  // namespace

int main(int argc, char** argv)
try {
    // Long enough for a restart of a server; a holder that crashes blocks the others for as long.
    holdfast::zookeeper::session zk{
        argc > 1 ? argv[1] : "127.0.0.1:2181",
        {.session_timeout = std::chrono::seconds{10},
         .label = "example",
         .on_state = [](holdfast::zookeeper::session_state s) { std::cout << "session: " << name(s) << std::endl; }}};
    holdfast::zookeeper::mutex orders{zk, "/locks/orders"};

    std::cout << "waiting for /locks/orders …" << std::endl;
    std::scoped_lock const hold{orders};
    std::cout << "mine, with fencing token " << orders.lease().fencing_token() << "; in line:" << std::endl;
    for (auto const& one : orders.contenders()) std::cout << "  " << one.content << std::endl;
    std::this_thread::sleep_for(std::chrono::seconds{3});
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
