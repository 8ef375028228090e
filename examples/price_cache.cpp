// SPDX-License-Identifier: MIT
//
// A cache that is read often and written seldom: readers look at it together, and a writer changes all of it alone.
// Here four readers and a writer are threads; they could as well be processes. No reader ever sees half of a change.
//
//   price_cache [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Stands for a store that many processes use, one value at a time.
struct price_list {
    std::array<std::atomic<int>, 3> prices{};
};

void read(holdfast::shared_mutex& lock, price_list const& shop, std::atomic<int>& torn, std::atomic<int>& reads)
{
    for (int n = 0; n < 10; ++n) {
        holdfast::leased_shared_lock const reading{lock, 30s};
        if (!reading) continue;
        int const first = shop.prices[0];
        std::this_thread::sleep_for(1ms);
        for (auto const& one : shop.prices)
            if (one != first) ++torn;
        ++reads;
    }
}

void write(holdfast::shared_mutex& lock, price_list& shop)
{
    for (int price = 1; price <= 3; ++price) {
        std::unique_lock writing{lock};
        for (auto& one : shop.prices) {
            one = price;
            std::this_thread::sleep_for(1ms);
        }
        lock.unlock_and_lock_shared();  // no other writer before we have looked; if it throws, `writing` unlocks
        writing.release();
        std::shared_lock const reading{lock, std::adopt_lock};
        std::cout << "wrote " << shop.prices[0] << ", with fencing token " << lock.lease_shared().fencing_token()
                  << '\n';
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::shared_mutex lock{redis, "prices", {.ttl = 10s}};
    price_list shop;
    std::atomic<int> torn{0};
    std::atomic<int> reads{0};
    {
        std::scoped_lock const first{lock};
    }  // throws if there is no server
    {
        std::vector<std::jthread> threads;
        std::atomic<bool> failed{false};
        auto const run = [&](auto f) {
            threads.emplace_back([&failed, f] {
                try {
                    f();
                } catch (std::exception const& e) {
                    std::cerr << e.what() << '\n';
                    failed = true;
                }
            });
        };
        for (int reader = 0; reader < 4; ++reader) run([&] { read(lock, shop, torn, reads); });
        run([&] { write(lock, shop); });
        threads.clear();
        if (failed) return 1;
    }
    std::cout << reads << " reads, " << torn << " of them torn\n";
    return torn == 0 && shop.prices[0] == 3 ? 0 : 1;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
