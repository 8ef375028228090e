// SPDX-License-Identifier: MIT
#pragma once

#include "loopback.hpp"
#include "relay.hpp"
#include "traffic.hpp"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace holdfast::test {

/// The thread of a proxy: all connections in one poll loop, woken when a delayed step is due.
class proxy_loop {
public:
    proxy_loop(std::uint16_t target_port, protocol const& spoken);
    ~proxy_loop();
    proxy_loop(proxy_loop const&) = delete;
    proxy_loop& operator=(proxy_loop const&) = delete;

    /// Effects: runs `task` in the loop's thread and waits for it. All below except the constants
    /// and counts may be called only from there.
    void run(std::function<void()> task);

    void listen();
    void refuse();
    void reset_all();
    void lead_to(std::uint16_t target_port) noexcept { target_port_ = target_port; }
    [[nodiscard]] traffic& rules() noexcept { return rules_; }
    [[nodiscard]] int open() const noexcept { return static_cast<int>(relays_.size()); }

    [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port; }
    [[nodiscard]] int accepted() const noexcept { return accepted_; }

private:
    void serve();
    void wait();
    void run_tasks();
    void accept();
    void stop_listening();

    std::uint16_t target_port_;
    protocol const& spoken_;
    bound_socket listener_ = bind_free_port();
    bool listening_ = false;
    bool stopping_ = false;
    traffic rules_;
    std::list<relay> relays_;
    std::vector<::pollfd> polled_;
    std::atomic<int> accepted_{0};

    file_descriptor wake_;
    std::mutex mutex_;
    std::vector<std::packaged_task<void()>> tasks_;  // guarded by mutex_
    std::thread thread_;
};

}  // namespace holdfast::test
