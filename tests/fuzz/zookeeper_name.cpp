// SPDX-License-Identifier: MIT
//
// The input is the name of a lock, the names of the nodes below it, one a line, and what a node says of its owner.
#include "input.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/judge.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/parents.hpp>
#include <holdfast/zookeeper/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace zk = holdfast::zookeeper;
using holdfast::access;
using holdfast::test::require;

bool printable(std::string_view text)
{
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

/// Effects: goes up from `path` where there is no node at all.
void check_parents(std::string const& path)
{
    zk::parents line;
    auto const& all = line.missing();
    auto const depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
    for (std::size_t i = 0; i <= depth; ++i) {
        require(all.size() == i, "each node of a path is made once");
        require(!line.go_up(path), "the nodes above a path can be made");
    }
    require(all.size() == depth, "no more than there are");
    require(all.back() == path && zk::parent_of(all.front()).empty(), "from the top, and the path's last");
    for (std::size_t i = 1; i < all.size(); ++i)
        require(zk::parent_of(all[i]) == all[i - 1], "each below the one before");
}

void check_name(std::string_view name)
{
    std::string path;
    try {
        path = zk::lock_path(name);
    } catch (holdfast::error const& e) {
        require(e.code() == holdfast::errc::misconfigured, "a name that is refused is a misconfiguration");
        return;
    }
    require(path == name || path == '/' + std::string{name}, "the path is the name");
    require(zk::lock_path(path) == path, "the path of a path is itself");
    require(std::string{zk::parent_of(path)} + '/' + std::string{zk::leaf_of(path)} == path,
            "a path is what is above it and its leaf");
    require(!zk::leaf_of(path).empty() && zk::leaf_of(path) != "." && zk::leaf_of(path) != "..", "a leaf is a name");
    require(std::none_of(path.begin(), path.end(),
                         [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }),
            "no path has control characters");
    require(path.find("//") == std::string::npos && !(path + '/').starts_with("/zookeeper/"),
            "no path is one that the server refuses");
    if (!zk::parent_of(path).empty())
        require(zk::lock_path(zk::parent_of(path)) == zk::parent_of(path), "what is above a path is a path");
    if (path.size() < 300) check_parents(path);
}

/// Effects: looks at what a client with the node `mine` would do beside `children`.
void check_verdict(std::vector<std::string> children, std::string const& mine)
{
    using kind = zk::verdict::kind;
    children.push_back(mine);
    auto line = zk::contenders_among(children);
    auto const self = *std::find_if(line.begin(), line.end(), [&](auto const& one) { return one.name == mine; });
    for (std::size_t i = 0; i < line.size(); ++i) line[i].czxid = static_cast<std::int64_t>(i) + 1;
    auto const said = zk::judge(line, mine);
    require(said.what == kind::granted || said.what == kind::waits, "a client with a node holds or waits");
    auto const conflicts = [&](zk::contender const& one) {
        return self.mode != access::shared || one.mode != access::shared;
    };
    bool watched = said.what == kind::granted;
    for (auto const& one : line) {
        if (one.name == mine) break;
        require(said.what == kind::waits || !conflicts(one), "a holder comes before all that conflict with it");
        if (one.name == said.watch) watched = conflicts(one);
    }
    require(watched, "what a client waits for comes before it and conflicts with it");
}

void check_nodes(std::string_view text)
{
    std::vector<std::string> children;
    while (!text.empty()) {
        auto const line = text.substr(0, text.find('\n'));
        children.emplace_back(line);
        text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    auto const line = zk::contenders_among(children);
    auto const known = std::count_if(children.begin(), children.end(),
                                     [](std::string const& c) { return zk::sequence_of(c).has_value(); });
    require(line.size() == static_cast<std::size_t>(known),
            "who stands in the line has a sequence, and who has one stands in it");
    for (std::size_t i = 0; i < line.size(); ++i) {
        require(zk::sequence_of(line[i].name) == line[i].sequence && line[i].sequence <= zk::exhausted_sequence,
                "a sequence is the name's");
        require(i == 0 || line[i - 1].sequence <= line[i].sequence, "the line is in order");
        auto const above = line[i].name.substr(0, line[i].name.size() - 10);
        require(zk::sequence_of(above + "0000000000").has_value() && !zk::sequence_of(above),
                "ten digits are the sequence");
    }

    auto const token = holdfast::owner_token::from_bits(children.size(), 1);
    for (auto const& [as, mode] : {std::pair{zk::naming::curator, access::sole},
                                   {zk::naming::curator, access::exclusive},
                                   {zk::naming::curator, access::shared},
                                   {zk::naming::kazoo, access::exclusive},
                                   {zk::naming::kazoo, access::shared}}) {
        auto const prefix = zk::node_prefix(as, token, mode);
        check_verdict(children, prefix + "1000000000");
        require(!zk::sequence_of(prefix), "a node has no sequence before the server gives it one");
        require(zk::sequence_of(prefix + "0000000042") == 42U &&
                    zk::sequence_of(prefix + "-2147483648") == zk::exhausted_sequence,
                "what the server adds is the sequence");
        for (auto const& child : children) {
            bool const counts = child.size() == 10 && child <= "2147483647" &&
                                child.find_first_not_of("0123456789") == std::string::npos;
            if (counts)
                require(zk::sequence_of(prefix + child) == std::stoul(child), "a number is read as it is written");
        }
    }
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    auto const text = holdfast::test::text_of(data, size);
    check_name(text);
    check_nodes(text);
    auto const content = holdfast::detail::holder_text(text);
    require(content.starts_with("host=") && content.find(" pid=") != std::string::npos,
            "a node names the host and the process");
    require(text.empty() ? content.find(" label=") == std::string::npos
                         : content.ends_with(" label=" + std::string{text}),
            "a node says its label as it was given");
    require(!printable(text) || text.size() > 128 || text.find_first_of("\"\\") != std::string_view::npos ||
                holdfast::quoted(text) == '"' + std::string{text} + '"',
            "what can be printed is quoted as it is");
    auto const quoted = holdfast::quoted(text);
    require(printable(text.size() > 128 ? std::string_view{quoted}.substr(0, quoted.size() - 4) : quoted),
            "what is quoted can be printed");
    return 0;
}
