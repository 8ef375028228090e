// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Cuts a RESP2 byte stream, of requests or of replies, into whole values.
/// https://redis.io/docs/latest/develop/reference/protocol-spec/
class resp_splitter {
public:
    void feed(std::string_view bytes);

    /// Returns: the next whole request or reply, with its framing; nothing until it is complete.
    [[nodiscard]] std::optional<std::string> next();

    /// Returns: what has come of a value that is not complete, and forgets it.
    [[nodiscard]] std::string rest();

private:
    std::string bytes_;
    std::size_t taken_ = 0;
};

/// Returns: how many elements the array has; 0 when it is none.
[[nodiscard]] std::size_t element_count(std::string_view array);

/// Returns: the first element of an array of strings (of a request, the command) in lower case.
[[nodiscard]] std::string first_element(std::string_view array);

}  // namespace holdfast::test
