// SPDX-License-Identifier: MIT
//
// A hold that may be lost: what a careful holder asks about its lease, and how a resource tells a late write by its
// fencing token. Stop this program for longer than its ttl (Ctrl-Z, then `fg`) and see it notice.
//
//   leased [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <stop_token>
#include <string>
#include <thread>

using namespace std::chrono_literals;

namespace {

/// Stands for a database that keeps the greatest token it has seen beside the row.
class fenced_row {
public:
    bool write(std::string value, std::uint64_t fencing_token)
    {
        if (fencing_token == 0 || fencing_token < newest_) return false;  // 0 is none
        newest_ = fencing_token;
        value_ = std::move(value);
        return true;
    }

private:
    std::string value_;
    std::uint64_t newest_ = 0;
};

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::mutex orders{redis, "orders/42", {.ttl = 10s}};
    fenced_row row;

    holdfast::leased_lock hold{orders, 5s};
    if (!hold) {
        std::cout << "another client has the lock" << std::endl;
        return 0;
    }

    // Told as soon as the lease is lost, in a thread of the client: say so and return.
    std::stop_callback const when_lost{hold.lost_token(), [] { std::cout << "the lease is lost" << std::endl; }};

    std::cout << "holding with fencing token " << hold.fencing_token() << std::endl;
    for (int step = 1; step <= 3; ++step) {
        std::this_thread::sleep_for(1s);
        if (!hold.still_held()) {  // reads the clock: right also in the first call after a pause
            std::cout << "no longer the holder: giving up before step " << step << std::endl;
            return 1;
        }
        bool const written = row.write("step " + std::to_string(step), hold.fencing_token());
        std::cout << "step " << step << (written ? " written" : " refused") << ", lease good for another "
                  << std::chrono::ceil<std::chrono::milliseconds>(hold.remaining()).count() << " ms" << std::endl;
    }
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
