// SPDX-License-Identifier: MIT
#pragma once

#include "requests.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// What becomes of a connection that has suffered a fault.
enum class aftermath {
    reset,
    silence,
    refuse  ///< of all connections, as `proxy::refuse` does
};

/// Something that happens to a request or to its reply.
struct fault {
    enum class kind { drop_request, swallow_reply, cut_reply, spoil_reply, answer_instead };

    kind what = kind::drop_request;
    request_predicate matches;
    int times = 1;
    aftermath then = aftermath::reset;
    std::size_t passed_bytes = 0;  ///< of a reply that is cut
    std::string answer = {};       ///< instead of the server's
};

/// What a proxy does to all of its connections. Belongs to the proxy's thread, except the counts.
struct traffic {
    std::chrono::microseconds delay_to_server{0};
    std::chrono::microseconds delay_to_client{0};
    std::chrono::microseconds trickle{0};
    bool blackholed = false;
    bool frozen = false;
    bool refusing = false;

    struct endless {
        request_predicate matches;
        std::shared_ptr<std::string const> bytes;
    };

    struct counted {
        request_predicate matches;
        std::shared_ptr<std::atomic<int>> count;
    };

    /// The end of a connection after so many bytes of replies.
    struct ending {
        std::size_t bytes;
        bool reset;
    };

    std::vector<fault> faults;
    std::vector<endless> floods;
    std::vector<request_predicate> holds;
    std::vector<counted> counts;
    std::optional<ending> end_after;
    std::optional<std::string> heard;  ///< what clients say, where that is kept
    std::uint64_t last_gate = 1;  ///< held requests wait for this one
    std::uint64_t open_gate = 0;

    std::atomic<int> requests{0};
    std::atomic<int> held{0};
    std::atomic<int> struck{0};
    std::atomic<int> left{0};

    /// Returns: the first fault chosen by the request, which counts it down.
    std::optional<fault> strike(std::string_view request)
    {
        for (auto& candidate : faults) {
            if (candidate.times <= 0 || !candidate.matches(request)) continue;
            --candidate.times;
            return candidate;
        }
        return std::nullopt;
    }

    /// Returns: the gate at which the request has to wait; 0 for none.
    std::uint64_t hold(std::string_view request)
    {
        for (auto& matches : holds)
            if (matches(request)) {
                ++held;
                return last_gate;
            }
        return 0;
    }

    /// Returns: what is to be sent without end to whom the request is from; null where that is nothing.
    std::shared_ptr<std::string const> flood(std::string_view request)
    {
        for (auto& one : floods)
            if (one.matches(request)) return one.bytes;
        return nullptr;
    }

    void count(std::string_view request)
    {
        ++requests;
        for (auto& one : counts)
            if (one.matches(request)) ++*one.count;
    }

    void let_go()
    {
        holds.clear();
        open_gate = last_gate++;
        held = 0;
    }
};

}  // namespace holdfast::test
