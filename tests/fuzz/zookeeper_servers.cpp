// SPDX-License-Identifier: MIT
//
// The input is a connection string.
#include "input.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/session_options.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace {

namespace zk = holdfast::zookeeper;
using holdfast::test::require;

std::optional<zk::ensemble> parsed(std::string_view text)
{
    try {
        return zk::parse_servers(text);
    } catch (holdfast::error const& e) {
        require(e.code() == holdfast::errc::misconfigured, "servers that are refused are a misconfiguration");
        return std::nullopt;
    }
}

void check_host(std::string_view host)
{
    auto const colon = host.rfind(':');
    require(colon != std::string_view::npos && colon > 0, "a server has a host and a port");
    auto const port = std::string{host.substr(colon + 1)};
    require(port.front() != '0' && host.find_first_of("[]") == std::string_view::npos,
            "a host is written as the C client reads it");
    require(port.size() <= 5 && std::stoul(port) >= 1 && std::stoul(port) <= 65535, "a port is in range");
    require(std::none_of(host.begin(), host.end(),
                         [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7f; }),
            "a host has no blanks, nor what C would end it at");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    auto const text = holdfast::test::text_of(data, size);
    auto const servers = parsed(text);
    if (!servers) return 0;
    auto const all = servers->text + servers->chroot;
    require(all == text || all + '/' == text, "nothing of a connection string is dropped but a root that says nothing");
    auto const again = parsed(all);
    require(again && again->hosts == servers->hosts && again->chroot == servers->chroot,
            "written again it says the same");
    require(servers->chroot.empty() || zk::lock_path(servers->chroot) == servers->chroot,
            "the root is the path of a node");
    require(servers->chroot.find_first_of(",?") == std::string::npos, "no server and no option is part of the root");

    std::string_view rest = servers->hosts;
    for (;;) {
        auto const comma = rest.find(',');
        check_host(rest.substr(0, comma));
        if (comma == std::string_view::npos) return 0;
        rest.remove_prefix(comma + 1);
    }
}
