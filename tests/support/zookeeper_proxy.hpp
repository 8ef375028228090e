// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::test {

/// A TCP proxy on a free port of 127.0.0.1 in front of a ZooKeeper server. It forwards whole packets, so that a fault hits exactly the one
/// that was chosen.
class zookeeper_proxy {
public:
    /// Types of requests, as in ZooKeeper's protocol.
    enum operation : std::int32_t { erase = 2, get_data = 4, get_children = 8, create = 15, create_container = 19 };

    explicit zookeeper_proxy(std::uint16_t target);
    ~zookeeper_proxy();
    zookeeper_proxy(zookeeper_proxy const&) = delete;
    zookeeper_proxy& operator=(zookeeper_proxy const&) = delete;

    [[nodiscard]] std::string address() const;

    /// The next request of `what` does not reach the server, and its connection is closed.
    void drop_next(operation what);
    /// The server does what the next request of `what` asks for; the answer does not reach the client, and its connection is closed.
    void swallow_next(operation what);
    /// The same, and then as `cut`.
    void swallow_next_and_cut(operation what);
    /// The server gets nothing of the next `times` requests of `what`, and the client is told that they failed with `code`, one of the protocol's.
    void refuse_next(operation what, std::int32_t code, int times = 1);
    /// Nothing is passed on in either direction, and new connections are not answered, until `pass`.
    void silence();
    /// All connections are closed, and new ones, too, as soon as they are made, until `pass`.
    void cut();
    void pass();
    /// Effects: `pass`, and nothing is dropped or swallowed any more.
    void heal();

    /// Returns: how many requests or answers were struck.
    [[nodiscard]] int struck() const;
    /// Returns: how many requests of `what` came.
    [[nodiscard]] int seen(operation what) const;

private:
    class impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::test
