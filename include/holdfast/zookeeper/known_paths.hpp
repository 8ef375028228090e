// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string_view>

namespace holdfast::zookeeper {

/// Some of the paths of which something is known: each takes the place of an earlier one. Two of one hash pass for one.
class known_paths {
public:
    [[nodiscard]] bool contains(std::string_view path) const noexcept { return place_of(path) == hash(path); }
    void add(std::string_view path) noexcept { places_[hash(path) % places_.size()] = hash(path); }

private:
    [[nodiscard]] static std::size_t hash(std::string_view path) noexcept { return std::hash<std::string_view>{}(path) | 1U; }  // never 0
    [[nodiscard]] std::size_t place_of(std::string_view path) const noexcept { return places_[hash(path) % places_.size()]; }

    std::array<std::size_t, 1'021> places_{};
};

}  // namespace holdfast::zookeeper
