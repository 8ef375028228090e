// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/receiver.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace holdfast::zookeeper {

/// The watches of a session by their numbers, and the paths of those that nobody waits for any more: server and C client would keep them
/// for as long as the node is there.
class watch_list {
public:
    /// How many bytes the paths can have together. The C client names them all in one request when it is connected again, which a server refuses
    /// from about 1 MB on (`jute.maxbuffer`), and then every time; some that are being removed may be among them.
    static constexpr std::size_t most_bytes = 512UL * 1'024;

    struct watch {
        receiver* of;
        unsigned tag;
        std::string path;
    };

    /// Effects: `of` watches `path`. Returns: the number of the watch; never 0.
    /// Throws: `error` (`too_many_watches`) if the paths would have more than `most_bytes`.
    [[nodiscard]] std::uint64_t add(receiver& of, unsigned tag, std::string path)
    {
        auto const size = size_of(path);
        if (bytes_ + size > most_bytes) throw error{make_error_code(errc::too_many_watches), "watch"};
        abandoned_.erase(path);
        watches_.emplace(last_ + 1, watch{&of, tag, std::move(path)});
        bytes_ += size;
        return ++last_;
    }

    /// Effects: forgets a watch that went off, or was not set after all. Returns: it; nothing where it is not known.
    std::optional<watch> take(std::uint64_t number)
    {
        auto const found = watches_.find(number);
        if (found == watches_.end()) return std::nullopt;
        auto one = std::move(found->second);
        watches_.erase(found);
        bytes_ -= size_of(one.path);
        return one;
    }

    /// Effects: nobody waits for this watch any more; it is to be removed, unless somebody else watches the same path.
    void abandon(std::uint64_t number) noexcept
    {
        if (auto one = take(number)) abandon(std::move(one->path));
    }

    /// Effects: the same of one that could not be removed.
    void abandon(std::string path) noexcept
    try {
        if (std::none_of(watches_.begin(), watches_.end(), [&](auto const& one) { return one.second.path == path; })) abandoned_.insert(std::move(path));
    } catch (std::bad_alloc const&) {  // NOLINT(bugprone-empty-catch): it goes with its node
    }

    /// Returns: the paths whose watches are to be removed. Effects: forgets them.
    [[nodiscard]] std::set<std::string> take_abandoned() noexcept { return std::exchange(abandoned_, {}); }

    /// Effects: forgets all: the session is over.
    void clear() noexcept
    {
        watches_.clear();
        abandoned_.clear();
        bytes_ = 0;
    }

private:
    [[nodiscard]] static std::size_t size_of(std::string const& path) noexcept { return path.size() + 4; }  // as it is sent

    std::map<std::uint64_t, watch> watches_;
    std::set<std::string> abandoned_;
    std::uint64_t last_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace holdfast::zookeeper
