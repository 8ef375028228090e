// SPDX-License-Identifier: MIT
//
// Processes that take turns in the order in which they came. Start it in several terminals, and press Enter in the one
// whose turn it is: the one that has waited longest is the next.
//
//   fair_queue [URL [NAME]]      redis://127.0.0.1:6379, desk
#include <holdfast/fair_mutex.hpp>
#include <holdfast/redis.hpp>

#include <unistd.h>

#include <exception>
#include <iostream>
#include <mutex>
#include <string>

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::fair_mutex desk{redis, argc > 2 ? argv[2] : "desk"};

    std::cout << "process " << ::getpid() << " waits" << std::endl;
    std::scoped_lock const hold{desk};
    std::cout << "process " << ::getpid() << " has its turn; Enter ends it" << std::endl;
    std::string line;
    std::getline(std::cin, line);
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
