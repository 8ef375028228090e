// SPDX-License-Identifier: MIT
#pragma once

#include "protocol.hpp"
#include "requests.hpp"
#include "traffic.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

class proxy_loop;

struct fault_options {
    request_predicate matches = any_request();
    int times = 1;
    aftermath then = aftermath::reset;
};

/// A TCP proxy on a free port of 127.0.0.1 in front of a server, which does to its connections what
/// networks and dying machines do. It forwards whole requests and whole replies, so that a fault hits
/// exactly the one that was chosen, pipelined or not.
///
/// All members may be called from any thread of the process that made it, while traffic flows, and
/// have taken effect when they return. The first matching fault that is not used up strikes. A
/// predicate runs in the proxy's thread and calls none of these.
class proxy {
public:
    explicit proxy(std::uint16_t target_port, protocol const& spoken = resp);
    proxy(proxy&&) noexcept;
    proxy& operator=(proxy&&) noexcept;
    ~proxy();

    [[nodiscard]] std::uint16_t port() const noexcept;
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    [[nodiscard]] std::string url() const { return "redis://" + address(); }

    /// Connections that are accepted from now on lead to this port, as after a name was moved to another server.
    void lead_to(std::uint16_t target_port);

    /// Every request and every reply is passed on this long after it came, whatever the others do.
    void delay(std::chrono::microseconds to_server, std::chrono::microseconds to_client);
    /// Replies go out a byte at a time, this far apart; zero ends it.
    void trickle(std::chrono::microseconds interval);

    /// A silent peer: connections are accepted and read, nothing is passed on or answered. A
    /// connection that lost bytes so stays silent after `pass`, for it could not be trusted.
    void blackhole();
    /// A peer that stands still: nothing is read, passed on or accepted, and nothing is lost; all goes on after `pass`.
    void freeze();
    /// A dead peer: connections are reset, new ones refused.
    void refuse();
    /// Ends `blackhole`, `freeze` and `refuse`.
    void pass();
    /// RST to both ends of every connection. What was under way or held is lost.
    void cut_all();

    /// Neither the request nor anything behind it reaches the server.
    void drop_next_request(fault_options options = {});
    /// The server has done what was asked, and the client never hears.
    void swallow_next_reply(fault_options options = {});
    /// The client gets this much of the reply.
    void cut_mid_reply(std::size_t passed_bytes, fault_options options = {});

    /// The server has done what was asked, and the client gets `answer`, which may be anything.
    void spoil_next_reply(std::string answer, fault_options options = {});

    /// The client gets `answer`, which may be anything, and the server nothing of the request.
    void answer_next_request(std::string answer, fault_options options = {});

    enum class ending { reset, end_of_file };

    /// Of the replies from now on, of all connections together, so many bytes go on; then the connection whose bytes
    /// they are ends in this way for the client. Once.
    void end_after(std::size_t bytes, ending how);

    /// The connection of a matching request is sent `bytes` again and again from then on, whole each time, beside the
    /// server's replies: as fast as it takes them.
    void flood(std::string const& bytes, request_predicate matches = any_request());

    /// Matching requests, and those behind them on their connection, wait until `let_go`; they are
    /// passed on then even if the client has closed its end meanwhile.
    void hold(request_predicate matches = any_request());
    void let_go();

    /// Effects: no faults, floods and delays any more, all held requests let go, connections passed.
    void heal();

    /// Effects: counts the matching requests that come from now on.
    /// Returns: what says how many those were.
    [[nodiscard]] std::function<int()> count(request_predicate matches);

    /// Effects: keeps what clients say from now on, for `heard`.
    void listen_in();
    /// Returns: what was kept.
    [[nodiscard]] std::string heard() const;

    /// Returns: how many connections were accepted.
    [[nodiscard]] int connections() const noexcept;
    /// Returns: how many are open.
    [[nodiscard]] int open_connections() const;
    /// Returns: how many clients have said that nothing follows, or have gone.
    [[nodiscard]] int left() const noexcept;
    /// Returns: how many requests came, those struck by a fault and those held included.
    [[nodiscard]] int requests() const noexcept;
    /// Returns: how many requests and replies were struck by a fault, `end_after` included.
    [[nodiscard]] int struck() const noexcept;
    /// Returns: how many matching requests wait.
    [[nodiscard]] int held() const noexcept;

private:
    void add(fault_options options, fault::kind what, std::size_t passed_bytes = 0, std::string answer = {});

    std::unique_ptr<proxy_loop> loop_;
};

/// Returns: the URLs of `ways`, in their order.
[[nodiscard]] inline std::vector<std::string> urls(std::vector<proxy> const& ways)
{
    std::vector<std::string> all;
    all.reserve(ways.size());
    for (auto const& one : ways) all.push_back(one.url());
    return all;
}

}  // namespace holdfast::test
