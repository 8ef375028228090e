// SPDX-License-Identifier: MIT
#include "resp_splitter.hpp"

#include <algorithm>
#include <charconv>
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

std::size_t whole_value(std::string_view bytes)
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

}  // namespace

void resp_splitter::feed(std::string_view bytes)
{
    bytes_.erase(0, std::exchange(taken_, 0));
    bytes_ += bytes;
}

std::optional<std::string> resp_splitter::next()
{
    auto const length = whole_value(std::string_view{bytes_}.substr(taken_));
    if (length == 0) return std::nullopt;
    auto value = bytes_.substr(taken_, length);
    taken_ += length;
    return value;
}

std::string resp_splitter::rest() { return std::exchange(bytes_, {}).substr(std::exchange(taken_, 0)); }

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
    std::ranges::transform(word, word.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return word;
}

}  // namespace holdfast::test
