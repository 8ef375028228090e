// SPDX-License-Identifier: MIT
//
// The input is what a server answers, which arrives in pieces: cut anywhere, it says the same.
#include "input.hpp"
#include "replies.hpp"

#include <holdfast/redis/hiredis.hpp>

#include <algorithm>
#include <string>
#include <string_view>

namespace {

/// What came out of a stream: the replies, and whether it broke after them.
struct heard {
    std::string replies{};
    bool broken = false;

    void take_from(holdfast::redis::reply_reader& reader)
    {
        while (!broken) {
            auto const next = reader.next();
            broken = !next;
            if (broken || !*next) return;
            replies += holdfast::test::written(next->get()) + '\n';
        }
    }

    friend bool operator==(heard const&, heard const&) = default;
};

/// Returns: what is heard of `stream` when its first piece has `first` bytes and each other one `step`.
heard cut(std::string_view stream, std::size_t first, std::size_t step)
{
    holdfast::redis::reply_reader reader;
    heard all;
    for (auto size = first; !stream.empty() && !all.broken; size = step) {
        auto const piece = stream.substr(0, size);
        stream.remove_prefix(piece.size());
        all.broken = !reader.feed(piece);
        all.take_from(reader);
    }
    return all;
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    constexpr std::size_t longest = 256;  // or to cut it everywhere takes too long
    auto const stream = holdfast::test::text_of(data, std::min(size, longest));
    auto const whole = cut(stream, stream.size(), 1);
    holdfast::test::require(cut(stream, 1, 1) == whole, "byte after byte it says the same");
    for (std::size_t at = 1; at < stream.size(); ++at)
        holdfast::test::require(cut(stream, at, stream.size()) == whole, "cut in two it says the same");
    return 0;
}
