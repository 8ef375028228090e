// SPDX-License-Identifier: MIT
#include "sleeper.hpp"
#include "stores.hpp"
#include "support/catch.hpp"
#include "support/eventually.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using holdfast::test::eventually;
using holdfast::test::renewed;
using holdfast::test::sleeper;

namespace {

long threads()
{
    return static_cast<long>(
        std::distance(std::filesystem::directory_iterator{"/proc/self/task"}, std::filesystem::directory_iterator{}));
}

}  // namespace

TEMPLATE_TEST_CASE("200 locks that are held and 200 threads that wait take no thread of their own", "", HOLDFAST_STORES)
{
    constexpr int many = 200;
    constexpr int names = 20;  // of which another client has the locks
    std::thread{[] {}}.join();  // with which ThreadSanitizer begins one of its own
    auto const before = threads();
    auto options = renewed<TestType>();
    TestType store;
    auto client = store.another();
    std::deque<typename TestType::mutex> others;
    for (int i = 0; i < names; ++i)
        others.emplace_back(store.other, "order of another " + std::to_string(i), options).lock();
    std::deque<typename TestType::mutex> held;
    for (int i = 0; i < many; ++i) held.emplace_back(client, "order " + std::to_string(i), options).lock();

    std::deque<typename TestType::mutex> waited_for;
    std::vector<std::unique_ptr<sleeper>> waiting;
    for (int i = 0; i < many; ++i) {
        auto& m = waited_for.emplace_back(client, "order of another " + std::to_string(i % names), options);
        waiting.push_back(std::make_unique<sleeper>([&m] {
            m.lock();
            m.unlock();
        }));
    }
    CHECK(std::all_of(waiting.begin(), waiting.end(), [](auto const& one) { return one->sleeps() && !one->done(); }));

    // Renewed, all of them, while the others wait.
    std::vector<holdfast::boot_clock::time_point> until;
    for (auto& m : held) until.push_back(m.lease().expires_at());
    long most = 0;
    CHECK(eventually([&] {
        most = std::max(most, threads());
        for (std::size_t i = 0; i < held.size(); ++i)
            if (held[i].lease().expires_at() == until[i]) return false;
        return true;
    }));
    CHECK(std::all_of(held.begin(), held.end(), [](auto& m) { return m.lease().still_held(); }));
    constexpr int clients = 3;
    CHECK(most >= before + many);
    CHECK(most <= before + many + clients * TestType::threads);

    others.clear();
    for (auto& one : waiting) one->join();
}
