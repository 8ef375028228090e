// SPDX-License-Identifier: MIT
//
// A first lock. Start it twice: the second one waits for the first.
//
//   first_lock [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42"};

    std::cout << "waiting for orders/42 …" << std::endl;
    std::scoped_lock const hold{orders};  // in every process of the fleet, one at a time
    std::cout << "mine" << std::endl;
    std::this_thread::sleep_for(std::chrono::seconds{3});
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
