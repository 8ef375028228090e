// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::test {

/// A look at what a ZooKeeper server stores, and a hand in it, over a session of its own.
class zookeeper_tree {
public:
    struct node {
        std::string data;
        std::int64_t czxid = 0;
        std::int64_t owner = 0;  ///< the session of an ephemeral node
        std::int32_t version = 0;
    };

    /// `servers` is a connection string; `digest` is "user:password", for `auth`.
    /// Throws: std::runtime_error when it is not connected within a minute.
    explicit zookeeper_tree(std::string const& servers, std::string const& digest = {});
    ~zookeeper_tree();
    zookeeper_tree(zookeeper_tree const&) = delete;
    zookeeper_tree& operator=(zookeeper_tree const&) = delete;

    /// Returns: the names of the children, sorted; none where there is no such node.
    [[nodiscard]] std::vector<std::string> children(std::string const& path);
    [[nodiscard]] bool exists(std::string const& path);
    /// Throws: std::runtime_error where there is no such node.
    [[nodiscard]] node get(std::string const& path);
    /// Returns: the session of an ephemeral node; nothing where there is no such node, as that can end at any time.
    [[nodiscard]] std::optional<std::int64_t> owner_of(std::string const& path);
    /// Returns: the permissions and identities, as "31 digest:user:…", one for each entry.
    [[nodiscard]] std::vector<std::string> acl(std::string const& path);

    /// Effects: everybody may do with the node what `permissions` says, of the C client's.
    void permit(std::string const& path, int permissions);

    /// Effects: makes a node that everybody may use, with its parents. Returns: its path.
    std::string create(std::string const& path, std::string const& data = {}, bool ephemeral = false,
                       bool sequential = false);
    /// Effects: removes the node and what is below it, where it is there.
    void remove(std::string const& path);

    /// Effects: closes the session `id` of another client, as its server does when it expires: connects as that client,
    /// with the password that servers derive from the id.
    void end_session(std::int64_t id);

    [[nodiscard]] std::int64_t session_id() const;

private:
    class impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace holdfast::test
