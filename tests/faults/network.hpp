// SPDX-License-Identifier: MIT
#pragma once

#include <support/proxy.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::faults {

/// Effects: moves this process into a network of its own, where nothing that it cuts concerns anybody else. Requires:
/// no threads yet.
/// Returns: whether that is permitted, and `nft` works there.
bool enter_own_network();

/// Ways to some servers of 127.0.0.1, each of which can be cut: by packets that are dropped in a network of our own
/// (nftables), or else by proxies that pass nothing on.
class ways {
public:
    ways(std::vector<std::uint16_t> ports, bool own_network);

    [[nodiscard]] std::string url(std::size_t i) const;
    [[nodiscard]] std::vector<std::string> urls() const;
    /// Effects: from now on nothing arrives, in either direction, and nobody is told.
    void cut(std::size_t i);
    void mend(std::size_t i);
    /// Returns: "nftables" or "proxies".
    [[nodiscard]] char const* how() const noexcept { return proxies_.empty() ? "nftables" : "proxies"; }

private:
    std::vector<std::uint16_t> ports_;
    std::vector<test::proxy> proxies_;
};

}  // namespace holdfast::faults
