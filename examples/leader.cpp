// SPDX-License-Identifier: MIT
//
// One of several processes is the leader. Start it twice: the second one leads when the first has ended. Stop the
// leader for longer than its ttl (Ctrl-Z, then `fg`) and see the other one take over.
//
//   leader [URL]      redis://127.0.0.1:6379
#include <holdfast/redis.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <stop_token>

using namespace std::chrono_literals;

namespace {

/// Waits for `d`, or until `stop` is requested. Returns: whether there is still time to work.
bool rest(std::stop_token const& stop, std::chrono::milliseconds d)
{
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock{mutex};
    wake.wait_for(lock, stop, d, [] { return false; });
    return !stop.stop_requested();
}

}  // namespace

int main(int argc, char** argv)
try {
    holdfast::redis::client redis{argc > 1 ? argv[1] : "redis://127.0.0.1:6379"};
    holdfast::redis::mutex reports{redis, "reports/leader", {.ttl = 10s}};
    std::atomic<bool> done{false};

    std::cout << "campaigning …" << std::endl;
    holdfast::election leader{reports,
                              {.on_elected =
                                   [&](holdfast::term const& t) {
                                       std::cout << "elected: term " << t.fencing_token() << std::endl;
                                       int step = 1;
                                       while (step <= 3 && rest(t.stop_token(), 1s))
                                           std::cout << "step " << step++ << std::endl;
                                       if (step <= 3) return;  // deposed: the next term begins anew
                                       done = true;
                                       done.notify_all();
                                   },
                               .on_deposed = [] { std::cout << "deposed" << std::endl; },
                               .on_error = [](holdfast::error const& e) { std::cerr << e.what() << '\n'; },
                               .stop_margin = 2s}};
    done.wait(false);
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
