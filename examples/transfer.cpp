// SPDX-License-Identifier: MIT
//
// Two locks at once. Money is moved between two accounts, in both directions at the same time, and each account has a
// lock of its own. A multi_mutex takes both locks or none, and always in the same order, so that no two transfers wait
// for each other for ever. Here the transfers are in threads; they could as well be in processes.
//
//   transfer [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

/// Stands for a database, which keeps the greatest token that it has seen beside each amount.
class bank {
public:
    struct account {
        int amount = 0;
        std::uint64_t fence = 0;
    };

    int amount(std::string const& name)
    {
        std::scoped_lock const transaction{mutex_};
        return accounts_[name].amount;
    }

    /// Effects: writes both accounts in one transaction. Returns: whether it has; false if one of the tokens is late.
    bool write(std::string const& one, account of_one, std::string const& other, account of_other)
    {
        std::scoped_lock const transaction{mutex_};
        if (!may_write(one, of_one.fence) || !may_write(other, of_other.fence)) return false;
        accounts_[one] = of_one;
        accounts_[other] = of_other;
        return true;
    }

private:
    bool may_write(std::string const& name, std::uint64_t fence)
    {
        return fence != 0 && fence >= accounts_[name].fence;  // 0 is none
    }

    std::mutex mutex_;
    std::map<std::string, account> accounts_{{"alice", {.amount = 100}}, {"bob", {.amount = 100}}};
};

/// Returns: whether `amount` was moved; false if `from` has less, or the database has refused the write.
bool transfer(holdfast::store const& locks, bank& db, std::string const& from, std::string const& to, int amount)
{
    holdfast::mutex giver{locks, "accounts/" + from};
    holdfast::mutex taker{locks, "accounts/" + to};
    holdfast::multi_mutex both{giver, taker};

    std::scoped_lock const hold{both};
    int const left = db.amount(from) - amount;
    int const sum = db.amount(to) + amount;
    if (left < 0) return false;
    std::this_thread::sleep_for(1ms);  // what is decided, and told to others
    return db.write(from, {left, both.lease_of(giver).fencing_token()}, to,
                    {sum, both.lease_of(taker).fencing_token()});
}

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    bank db;
    std::atomic<int> moved{0};
    std::atomic<bool> failed{false};
    {
        std::vector<std::jthread> threads;
        auto const run = [&](char const* from, char const* to, int amount) {
            threads.emplace_back([&, from, to, amount] {
                try {
                    for (int n = 0; n < 5; ++n)
                        if (transfer(redis, db, from, to, amount)) ++moved;
                } catch (std::exception const& e) {
                    std::cerr << e.what() << '\n';
                    failed = true;
                }
            });
        };
        run("alice", "bob", 3);
        run("bob", "alice", 1);
        run("alice", "bob", 5);
        run("bob", "alice", 2);
    }
    if (failed) return 1;
    int const alice = db.amount("alice");
    int const bob = db.amount("bob");
    std::cout << moved << " transfers; alice has " << alice << ", bob has " << bob << ", together they have "
              << alice + bob << '\n';
    return moved == 20 && alice == 75 && bob == 125 ? 0 : 1;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
