// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/redis/keys.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace holdfast::redis {

/// The keys of locks that were used lately: who makes a mutex anew for each use goes on with what is known of its name.
class key_cache {
public:
    explicit key_cache(unsigned nodes) noexcept : nodes_{nodes} {}

    /// Returns: the keys of that lock, the same as last time where few others were asked for in between. Throws: `std::bad_alloc`.
    [[nodiscard]] shared_keys get(std::string lock)
    {
        auto& place = places_[place_of(lock)];
        std::scoped_lock guard{mutex_};
        if (!place || place->lock != lock) place = std::make_shared<lock_keys const>(std::move(lock), nodes_);
        return place;
    }

    /// How many locks have a place here at most; and the place of one, by its name.
    static constexpr std::size_t places = 256;
    [[nodiscard]] static std::size_t place_of(std::string const& lock) noexcept { return std::hash<std::string>{}(lock) % places; }

private:
    unsigned nodes_;
    std::mutex mutex_;
    std::array<shared_keys, places> places_{};  // the last who came has the place
};

}  // namespace holdfast::redis
