// SPDX-License-Identifier: MIT
//
// What a client's locks do, as Prometheus reads it: GET /metrics over HTTP, in the text format 0.0.4. Two threads lock
// and unlock meanwhile, so that there is something to see; without a server they try again and again, and the metrics
// say so. The metrics of a client are of all its locks together; with --names, how often each was acquired is counted,
// too. Do that only with few names: each label is a time series of its own.
//
//   metrics [--names] [URL [PORT]]     memory:, redis://127.0.0.1:6379, …; without a port any free one; ends with its
//                                      input
#include <holdfast/make_store.hpp>
#include <holdfast/memory.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>

#include <asio/buffer.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read_until.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

using namespace std::chrono_literals;
using asio::ip::tcp;

namespace {

double in_seconds(std::chrono::nanoseconds d) { return std::chrono::duration<double>{d}.count(); }

void put(std::ostream& out, std::string_view type, std::string_view name, std::string_view help, std::uint64_t value)
{
    out << "# HELP holdfast_" << name << ' ' << help << "\n# TYPE holdfast_" << name << ' ' << type << "\nholdfast_"
        << name << ' ' << value << '\n';
}

/// A histogram of Prometheus counts in each bucket what is in the smaller ones, too.
void put(std::ostream& out, std::string_view name, std::string_view help, holdfast::duration_histogram const& h)
{
    out << "# HELP holdfast_" << name << ' ' << help << "\n# TYPE holdfast_" << name << " histogram\n";
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < h.counts.size(); ++i) {
        count += h.counts.at(i);
        out << "holdfast_" << name << "_bucket{le=\"";
        i < h.bounds.size() ? out << in_seconds(h.bounds.at(i)) : out << "+Inf";
        out << "\"} " << count << '\n';
    }
    out << "holdfast_" << name << "_sum " << in_seconds(h.sum) << "\nholdfast_" << name << "_count " << count << '\n';
}

std::string exposition(holdfast::lock_stats const& s)
{
    std::ostringstream out;
    put(out, "gauge", "locks_held", "Locks that are held now.", s.held);
    put(out, "gauge", "waiting", "Calls that wait for a lock now.", s.waiting);
    put(out, "counter", "acquired_total", "Locks that were acquired.", s.acquired);
    put(out, "counter", "handed_over_total", "Of those, from another thread, without the store.", s.handed_over);
    put(out, "counter", "timed_out_total", "Attempts that others outlasted.", s.timed_out);
    put(out, "counter", "canceled_total", "Waits that were stopped.", s.canceled);
    put(out, "counter", "failed_total", "Attempts for which the store could not be asked.", s.failed);
    put(out, "counter", "released_total", "Locks that were given up before their lease was lost.", s.released);
    put(out, "counter", "renewed_total", "Leases that were renewed.", s.renewed);
    put(out, "counter", "renewals_failed_total", "Renewals that failed while the lease went on.", s.renewals_failed);
    out << "# HELP holdfast_lost_total Leases that were lost.\n# TYPE holdfast_lost_total counter\n"
        << "holdfast_lost_total{cause=\"deadline\"} " << s.lost_by_deadline << '\n'
        << "holdfast_lost_total{cause=\"store\"} " << s.lost_in_store << '\n';
    put(out, "wait_seconds", "How long those waited that got a lock.", s.waits);
    put(out, "hold_seconds", "How long locks were held.", s.holds);
    return out.str();
}

/// How often each lock was acquired.
class acquired_by_name {
public:
    void count(holdfast::lock_event const& e)
    {
        if (e.what != holdfast::lock_event::kind::acquired) return;
        std::scoped_lock const guard{mutex_};
        ++counts_[e.lock_name];
    }

    std::string exposition() const
    {
        std::ostringstream out;
        out << "# HELP holdfast_lock_acquired_total Locks that were acquired, by name.\n"
            << "# TYPE holdfast_lock_acquired_total counter\n";
        std::scoped_lock const guard{mutex_};
        for (auto const& [name, count] : counts_)
            out << "holdfast_lock_acquired_total{lock=\"" << escaped(name) << "\"} " << count << '\n';
        return out.str();
    }

private:
    /// What Prometheus wants to be written in another way in the value of a label.
    static std::string escaped(std::string_view name)
    {
        std::string text;
        for (char const c : name) {
            if (c == '\\' || c == '"') text += '\\';
            c == '\n' ? text += "\\n" : text += c;
        }
        return text;
    }

    mutable std::mutex mutex_;
    std::map<std::string, std::uint64_t> counts_;
};

/// A client of the HTTP server: it is answered once, unless it sends no request in ten seconds, or too long a one.
class scrape : public std::enable_shared_from_this<scrape> {
public:
    scrape(tcp::socket socket, std::function<std::string()> metrics)
        : socket_{std::move(socket)}, deadline_{socket_.get_executor()}, metrics_{std::move(metrics)}
    {
    }

    void begin()
    {
        deadline_.expires_after(10s);
        deadline_.async_wait([self = shared_from_this()](asio::error_code ec) {
            if (!ec) self->socket_.close(ec);
        });
        asio::async_read_until(socket_, asio::dynamic_buffer(request_, 8192), "\r\n\r\n",
                               [self = shared_from_this()](asio::error_code const& ec, std::size_t) {
                                   ec ? self->end() : self->answer();
                               });
    }

private:
    void answer()
    {
        bool const known = request_.starts_with("GET /metrics ");
        auto const body = known ? metrics_() : std::string{"see /metrics\n"};
        answer_ = (known ? "HTTP/1.1 200 OK" : "HTTP/1.1 404 Not Found") +
                  std::string{"\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: "} +
                  std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
        asio::async_write(socket_, asio::buffer(answer_),
                          [self = shared_from_this()](asio::error_code const&, std::size_t) { self->end(); });
    }

    void end() { deadline_.cancel(); }  // nothing waits for this object any more, which closes the socket

    tcp::socket socket_;
    asio::steady_timer deadline_;
    std::function<std::string()> metrics_;
    std::string request_;
    std::string answer_;
};

void serve(tcp::acceptor& port, std::function<std::string()> const& metrics)
{
    port.async_accept([&](asio::error_code const& ec, tcp::socket socket) {
        if (ec) {
            std::cerr << "accept: " << ec.message() << '\n';
            std::this_thread::sleep_for(100ms);  // there may be too many open files
        } else {
            std::make_shared<scrape>(std::move(socket), metrics)->begin();
        }
        serve(port, metrics);
    });
}

void work(std::stop_token const& stop, holdfast::mutex& orders)
{
    while (!stop.stop_requested()) {
        try {
            if (!orders.try_lock_for(1s)) continue;
            std::scoped_lock hold{std::adopt_lock, orders};
            std::this_thread::sleep_for(2ms);
        } catch (holdfast::error const&) {  // no server can be reached: failed_total counts it, and later one may be
            std::this_thread::sleep_for(100ms);
        }
    }
}

}  // namespace

int main(int argc, char** argv)
try {
    bool const names = argc > 1 && argv[1] == std::string_view{"--names"};
    if (names) --argc, ++argv;
    acquired_by_name by_name;
    auto store = holdfast::make_store(argc > 1 ? argv[1] : "memory:");
    if (names) store.observe([&](holdfast::lock_event const& e) { by_name.count(e); });
    asio::io_context io;
    tcp::acceptor port{
        io, {asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(argc > 2 ? std::stoi(argv[2]) : 0)}};
    std::cout << "http://127.0.0.1:" << port.local_endpoint().port() << "/metrics" << std::endl;
    holdfast::mutex orders{store, "orders/42"};
    holdfast::mutex same{store, "orders/42"};
    std::jthread const one{[&](std::stop_token const& stop) { work(stop, orders); }};
    std::jthread const other{[&](std::stop_token const& stop) { work(stop, same); }};
    std::function<std::string()> const metrics = [&] {
        return exposition(store.stats()) + (names ? by_name.exposition() : "");
    };
    serve(port, metrics);
    std::jthread const serves{[&](std::stop_token const& stop) {
        std::stop_callback const at_end{stop, [&] { io.stop(); }};
        io.run();
    }};
    while (std::cin.get() != std::char_traits<char>::eof()) continue;
} catch (std::exception const& e) {
    std::cerr << e.what() << '\n';
    return 1;
}
