// SPDX-License-Identifier: MIT
#include "protocol.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

namespace holdfast::test {
namespace {

struct line {
    char type;
    long long number;  ///< what follows the type, where it is a number
    std::size_t end;   ///< behind CR LF
};

std::optional<line> line_at(std::string_view bytes, std::size_t at)
{
    auto const end = bytes.find("\r\n", at);
    if (end == std::string_view::npos || end == at) return std::nullopt;
    line found{bytes[at], 0, end + 2};
    std::from_chars(bytes.data() + at + 1, bytes.data() + end, found.number);
    return found;
}

std::size_t length_of_value(std::string_view bytes)
{
    std::size_t at = 0;
    for (long long missing = 1; missing > 0; --missing) {
        auto const head = line_at(bytes, at);
        if (!head) return 0;
        at = head->end;
        if (head->type == '*')
            missing += std::max(head->number, 0LL);
        else if (head->type == '$' && head->number >= 0)
            at += static_cast<std::size_t>(head->number) + 2;
        if (at > bytes.size()) return 0;
    }
    return at;
}

std::size_t replies_to_command(std::string_view request)
{
    return first_element(request).ends_with("subscribe") ? std::max<std::size_t>(2, element_count(request)) - 1 : 1;
}

std::int64_t is_published(std::string_view reply)
{
    auto const kind = first_element(reply);
    return kind == "message" || kind == "pmessage" || kind == "smessage";
}

std::int32_t number_at(std::string_view packet, std::size_t at)
{
    if (packet.size() < at + 4) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value = (value << 8U) | static_cast<unsigned char>(packet[at + i]);
    return static_cast<std::int32_t>(value);
}

std::string as_number(std::int32_t value)
{
    std::string bytes;
    for (unsigned shift = 32; shift > 0; shift -= 8)
        bytes += static_cast<char>(static_cast<std::uint32_t>(value) >> (shift - 8));
    return bytes;
}

std::size_t length_of_packet(std::string_view stream)
{
    if (stream.size() < 4) return 0;
    auto const size = static_cast<std::size_t>(number_at(stream, 0)) + 4;
    return stream.size() < size ? 0 : size;
}

/// The first packet of a connection, and the answer to it, have 0 there: the version of the protocol.
std::int64_t number_of_packet(std::string_view packet) { return number_at(packet, 4); }

/// Whether there is a node "/", which sets no watch.
std::string look_at_root(std::string_view request)
{
    constexpr std::int32_t exists = 3;
    return as_number(14) + std::string{request.substr(4, 4)} + as_number(exists) + as_number(1) + '/' + '\0';
}

/// With the numbers of the request and the transaction that the reply has.
std::string failed_packet(std::string_view reply, std::string const& code)
{
    return as_number(16) + std::string{reply.substr(4, 12)} + code;
}

std::size_t one(std::string_view) { return 1; }
std::size_t none(std::string_view) { return 0; }
std::int64_t same(std::string_view) { return 0; }

}  // namespace

protocol const resp{
    .length = length_of_value,
    .replies = replies_to_command,
    .number_of_request = same,
    .number_of_reply = is_published,
    .harmless = [](std::string_view) { return std::string{"*1\r\n$4\r\nPING\r\n"}; },
    .instead = [](std::string_view, std::string const& answer) { return answer; },
};

protocol const zookeeper_packets{
    .length = length_of_packet,
    .replies = one,
    .number_of_request = number_of_packet,
    .number_of_reply = number_of_packet,
    .harmless = look_at_root,
    .instead = failed_packet,
};

protocol const plain_bytes{
    .length = [](std::string_view stream) { return stream.size(); },
    .replies = none,
    .number_of_request = same,
    .number_of_reply = same,
    .harmless = [](std::string_view) { return std::string{}; },
    .instead = [](std::string_view, std::string const& answer) { return answer; },
};

request_predicate of(std::initializer_list<zookeeper_request> types)
{
    return [types = std::set(types)](std::string_view packet) {
        return number_of_packet(packet) != 0 && types.contains(zookeeper_request{number_at(packet, 8)});
    };
}

std::string zookeeper_error(std::int32_t code) { return as_number(code); }

void splitter::feed(std::string_view bytes)
{
    bytes_.erase(0, std::exchange(taken_, 0));
    bytes_ += bytes;
}

std::optional<std::string> splitter::next()
{
    auto const length = cut_.length(std::string_view{bytes_}.substr(taken_));
    if (length == 0) return std::nullopt;
    auto value = bytes_.substr(taken_, length);
    taken_ += length;
    return value;
}

std::string splitter::rest() { return std::exchange(bytes_, {}).substr(std::exchange(taken_, 0)); }

std::size_t element_count(std::string_view array)
{
    auto const head = line_at(array, 0);
    return head && head->type == '*' && head->number > 0 ? static_cast<std::size_t>(head->number) : 0;
}

std::string first_element(std::string_view array)
{
    if (element_count(array) == 0) return {};
    auto const head = line_at(array, line_at(array, 0)->end);
    if (!head || head->type != '$' || head->number < 0) return {};
    std::string word{array.substr(head->end, static_cast<std::size_t>(head->number))};
    std::ranges::transform(word, word.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return word;
}

}  // namespace holdfast::test
