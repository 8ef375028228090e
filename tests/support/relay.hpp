// SPDX-License-Identifier: MIT
#pragma once

#include "loopback.hpp"
#include "outlet.hpp"
#include "protocol.hpp"
#include "traffic.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::test {

/// One proxied connection: request by request one way, reply by reply the other.
class relay {
public:
    relay(file_descriptor client, file_descriptor server, protocol const& spoken, traffic& rules);

    [[nodiscard]] int client() const noexcept { return client_.fd.get(); }
    [[nodiscard]] int server() const noexcept { return server_.fd.get(); }
    [[nodiscard]] short client_events() const noexcept { return events(client_); }
    [[nodiscard]] short server_events() const noexcept { return events(server_); }

    void read_client();
    void read_server();
    void advance();
    void reset();

    [[nodiscard]] std::optional<outlet::time_point> due() const;
    [[nodiscard]] bool over() const noexcept { return over_; }

private:
    struct side {
        file_descriptor fd;
        splitter in;
        outlet out = {};
        bool ended = false;     ///< nothing more will come from it
        bool finished = false;  ///< nothing more will go to it
        bool full = false;
    };

    struct expectation {
        std::optional<fault> strikes;
        std::int64_t number;
        std::size_t replies;
    };

    [[nodiscard]] static short events(side const& s) noexcept;
    [[nodiscard]] bool receive(side& from);
    void forward(std::string request);
    void answer(std::string reply);
    void send_reply(std::string bytes);
    void strike(fault const& f, std::string reply);
    void advance(side& to, outlet::pace trickle);
    void flood();

    protocol const& spoken_;
    traffic& rules_;
    side client_;
    side server_;
    std::deque<expectation> expected_;
    std::shared_ptr<std::string const> flood_;  ///< is sent to the client without end
    std::size_t flooded_ = 0;                   ///< so many bytes of it were, since it began anew
    bool silent_ = false;
    bool over_ = false;
};

}  // namespace holdfast::test
