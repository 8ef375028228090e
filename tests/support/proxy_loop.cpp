// SPDX-License-Identifier: MIT
#include "proxy_loop.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace holdfast::test {

proxy_loop::proxy_loop(std::uint16_t target_port, protocol const& spoken)
    : target_port_{target_port}, spoken_{spoken}, wake_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)}
{
    if (!wake_) throw std::system_error{errno, std::system_category(), "eventfd"};
    listen();
    thread_ = std::thread{[this] { serve(); }};
}

proxy_loop::~proxy_loop()
{
    run([this] {
        refuse();
        stopping_ = true;
    });
    thread_.join();
}

void proxy_loop::run(std::function<void()> task)
{
    std::packaged_task<void()> packaged{std::move(task)};
    auto done = packaged.get_future();
    {
        std::lock_guard const lock{mutex_};
        tasks_.push_back(std::move(packaged));
    }
    ::eventfd_write(wake_.get(), 1);
    done.get();
}

void proxy_loop::listen()
{
    rules_.refusing = false;
    if (std::exchange(listening_, true)) return;
    if (::listen(listener_.fd.get(), 1024) != 0) throw std::system_error{errno, std::system_category(), "listen"};
}

/// The port stays ours, so `listen` works again; and a copy of the descriptor in a forked child
/// cannot keep it open.
void proxy_loop::stop_listening()
{
    if (std::exchange(listening_, false)) ::shutdown(listener_.fd.get(), SHUT_RD);
}

void proxy_loop::refuse()
{
    stop_listening();
    reset_all();
}

void proxy_loop::reset_all()
{
    for (auto& connection : relays_) connection.reset();
    relays_.clear();
    rules_.held = 0;
}

void proxy_loop::serve()
{
    ::prctl(PR_SET_TIMERSLACK, 1);  // delays are short: the usual 50 us would show
    while (!stopping_) {
        wait();
        if (rules_.frozen) {
            run_tasks();
            continue;
        }
        // The relays are in the order in which they were polled until a task changes them.
        auto ready = polled_.begin() + 2;
        for (auto& connection : relays_) {
            if ((ready++)->revents & ~POLLOUT) connection.read_client();
            if ((ready++)->revents & ~POLLOUT) connection.read_server();
        }
        if (polled_[1].revents != 0) accept();
        run_tasks();
        for (auto& connection : relays_) connection.advance();
        relays_.remove_if([](relay const& connection) { return connection.over(); });
        if (rules_.refusing && listening_) refuse();
    }
}

void proxy_loop::wait()
{
    polled_.assign({{wake_.get(), POLLIN, 0}, {listening_ && !rules_.frozen ? listener_.fd.get() : -1, POLLIN, 0}});
    std::optional<outlet::time_point> next;
    for (auto const& connection : relays_) {
        if (rules_.frozen) break;
        // poll tells of hang-ups also to those who asked for nothing
        auto const add = [this](int fd, short events) { polled_.push_back({events != 0 ? fd : -1, events, 0}); };
        add(connection.client(), connection.client_events());
        add(connection.server(), connection.server_events());
        if (auto const due = connection.due()) next = std::min(next.value_or(*due), *due);
    }
    ::timespec timeout{};
    if (next) {
        auto const left = std::max(std::chrono::nanoseconds::zero(),
                                   std::chrono::nanoseconds{*next - std::chrono::steady_clock::now()});
        timeout = {left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    }
    if (::ppoll(polled_.data(), polled_.size(), next ? &timeout : nullptr, nullptr) < 0)
        for (auto& entry : polled_) entry.revents = 0;
}

void proxy_loop::run_tasks()
{
    ::eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
    std::vector<std::packaged_task<void()>> due;
    {
        std::lock_guard const lock{mutex_};
        due.swap(tasks_);
    }
    for (auto& task : due) task();
}

void proxy_loop::accept()
{
    for (;;) {
        file_descriptor client{::accept4(listener_.fd.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
        if (!client) return;
        int const yes = 1;
        ::setsockopt(client.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        ++accepted_;
        relays_.emplace_back(std::move(client), start_connecting(target_port_), spoken_, rules_);
    }
}

}  // namespace holdfast::test
