// SPDX-License-Identifier: MIT
#pragma once

#include "requests.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::test {

/// What a proxy has to know of a protocol.
struct protocol {
    /// How long the first message of a stream is, in either direction; 0: it is not whole yet.
    std::size_t (*length)(std::string_view stream);
    /// How many replies a request gets.
    std::size_t (*replies)(std::string_view request);
    /// A reply belongs to the first unanswered request of the same number. To a reply of another it is only passed on.
    std::int64_t (*number_of_request)(std::string_view request);
    std::int64_t (*number_of_reply)(std::string_view reply);
    /// A request that changes nothing, whose reply comes in the place of that to `request`.
    std::string (*harmless)(std::string_view request);
    /// What the client gets in place of `reply` where a fault says `answer`.
    std::string (*instead)(std::string_view reply, std::string const& answer);
};

/// Redis, RESP2: the numbers are 0, as replies come in order, and that of a published message is another; UNSUBSCRIBE
/// without a channel is not understood. https://redis.io/docs/latest/develop/reference/protocol-spec/
extern protocol const resp;

/// ZooKeeper: a packet has its length in front. An `answer` is one of `zookeeper_error`.
extern protocol const zookeeper_packets;

/// Bytes that nothing is known of, as those of TLS: a message is what comes at once, and no request has a reply.
extern protocol const plain_bytes;

/// Cuts a byte stream into whole messages.
class splitter {
public:
    explicit splitter(protocol const& cut) : cut_{cut} {}

    void feed(std::string_view bytes);

    /// Returns: the next whole message, with its framing; nothing until it is complete.
    [[nodiscard]] std::optional<std::string> next();

    /// Returns: what has come of a message that is not complete, and forgets it.
    [[nodiscard]] std::string rest();

private:
    protocol const& cut_;
    std::string bytes_;
    std::size_t taken_ = 0;
};

/// Returns: how many elements the array of RESP has; 0 when it is none.
[[nodiscard]] std::size_t element_count(std::string_view array);

/// Returns: the first element of an array of strings (of a request, the command) in lower case.
[[nodiscard]] std::string first_element(std::string_view array);

/// Types of requests, as in ZooKeeper's protocol.
enum class zookeeper_request : std::int32_t {
    erase = 2,
    get_data = 4,
    set_data = 5,
    get_children = 8,
    create = 15,
    create_container = 19
};

/// Chooses the requests of these types.
[[nodiscard]] request_predicate of(std::initializer_list<zookeeper_request> types);
[[nodiscard]] inline request_predicate of(zookeeper_request type) { return of({type}); }

/// Returns: the answer that a request failed with `code`, one of ZooKeeper's.
[[nodiscard]] std::string zookeeper_error(std::int32_t code);

}  // namespace holdfast::test
