// SPDX-License-Identifier: MIT
//
// Makes a session and a lock. Making them does no I/O, so no server is needed.
#include <holdfast/zookeeper.hpp>

int main()
{
    holdfast::zookeeper::session zk{"127.0.0.1:2181"};
    holdfast::zookeeper::mutex orders{zk, "/locks/orders"};
}
