// SPDX-License-Identifier: MIT
#pragma once

#include <support/name_server.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace holdfast::faults {

/// Names that are looked up for this process, by whatever library, at a server that answers late or never: in a view of
/// the file system of its own, resolv.conf names that server. Only in a network of its own, where its port is free and
/// nobody else asks there.
class own_names {
public:
    /// Effects: this thread, and those and the processes that it will start, look names up there from now on. `folder`
    /// is for the files.
    /// Throws: `std::runtime_error` where that was permitted, and yet names are looked up elsewhere.
    own_names(std::filesystem::path const& folder, bool own_network);

    /// Returns: whether that is permitted.
    explicit operator bool() const noexcept { return server_.has_value(); }
    /// Returns: "a DNS server of our own", or why there is none.
    [[nodiscard]] std::string const& how() const noexcept { return how_; }

    /// Requires: there is one.
    [[nodiscard]] test::name_server& server() { return *server_; }
    /// Returns: a name that no file has.
    [[nodiscard]] static char const* name() noexcept { return "store.holdfast.test"; }

private:
    std::optional<test::name_server> server_;
    std::string how_;
};

}  // namespace holdfast::faults
