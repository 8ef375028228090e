// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A model of a ZooKeeper ensemble, as locks see it: a leader that orders all writes, servers that follow it at their
/// own pace, sessions and their ephemeral nodes. It does nothing by itself. The driver decides when a server catches
/// up, when a session ends, when empty containers are collected, and which sessions may only create.
///
/// What is modelled:
///
/// - A container is collected when it has had children and has none.
/// - A server answers reads from what it has applied, and a write when it has applied it. `confirm` makes it catch up.
/// - The children's numbers come from a signed counter that sticks at its end, or passes to negative numbers for a
///   moment. Each node has one, which goes on when the node is made again.
class ensemble {
public:
    struct node {
        std::int64_t czxid = 0;
        std::int64_t owner = 0;  ///< the session that it ends with; `container_owner`; 0 if it stays
        std::string content = {};
        std::int64_t children_changed = 0;  ///< by which write
        bool had_child = false;
    };

    /// What a server has applied.
    struct change {
        enum class kind : std::uint8_t { made, removed, written } what;
        std::string path;
        node now;
    };

    ensemble(std::size_t servers, std::int32_t first_number) : first_number_{first_number}, servers_(servers) {}

    /// Effects: the node at `path` exists, and is no container.
    void make_lasting(std::string const& path) { write({change::kind::made, path, {.czxid = next()}}); }

    /// Effects: the session may only create.
    void permit_create_only(std::int64_t session) { create_only_.insert(session); }

    [[nodiscard]] std::int64_t open_session()
    {
        sessions_.insert(++last_session_);
        return last_session_;
    }
    [[nodiscard]] bool lives(std::int64_t session) const { return sessions_.count(session) != 0; }

    /// Effects: the leader ends a session and removes its nodes.
    void end_session(std::int64_t session)
    {
        sessions_.erase(session);
        auto const nodes = leader_.nodes;
        for (auto const& [path, one] : nodes)
            if (one.owner == session) write({change::kind::removed, path, {}});
    }

    /// Effects: removes each container that has had children and has none.
    void collect()
    {
        auto const nodes = leader_.nodes;
        for (auto one = nodes.rbegin(); one != nodes.rend(); ++one)  // what is below comes first
            if (is_container(one->second) && one->second.had_child && !leader_.has_children(one->first))
                write({change::kind::removed, one->first, {}});
    }

    /// Returns: whether there is a container that will never be collected: it has had no child.
    [[nodiscard]] bool barren() const
    {
        return std::any_of(leader_.nodes.begin(), leader_.nodes.end(),
                           [](auto const& one) { return is_container(one.second) && !one.second.had_child; });
    }

    /// Returns: how far a server is behind.
    [[nodiscard]] std::size_t lag(std::size_t server) const { return log_.size() - servers_[server].applied; }
    [[nodiscard]] std::size_t applied(std::size_t server) const { return servers_[server].applied; }

    /// Effects: a server applies its next change. Returns: that change.
    change const& catch_up(std::size_t server)
    {
        auto& s = servers_[server];
        auto const& one = log_[s.applied];
        s.apply(one);
        return one;
    }

    /// Returns: whether a server must catch up before it can answer `r`.
    [[nodiscard]] bool must_catch_up(std::size_t server, zookeeper::request const& r) const
    {
        return r.what == zookeeper::request::kind::confirm && lag(server) > 0;
    }

    /// Effects: does a write at the leader; the answer must not be given before the server has caught up.
    /// `pass_the_end`: the counter gives a negative number if it is at its end.
    [[nodiscard]] zookeeper::reply process(std::size_t server, std::int64_t session, zookeeper::request const& r,
                                           bool pass_the_end)
    {
        using kind = zookeeper::request::kind;
        using zookeeper::answer;
        auto const& local = servers_[server];
        bool const reads_or_erases = !creates(r.what) && r.what != kind::confirm;
        if (reads_or_erases && create_only_.count(session) != 0)
            return {answer::refused,
                    r.what == kind::erase ? zookeeper::errc::may_not_delete : zookeeper::errc::may_not_read};
        switch (r.what) {
        case kind::create_container: return create(r.path, {.owner = zookeeper::container_owner});
        case kind::create_persistent: return create(r.path, {.content = r.content});
        case kind::create_plain: return create(r.path, {.owner = session, .content = r.content});
        case kind::create_sequential: {
            auto const above = std::string{zookeeper::parent_of(r.path)};
            if (!leader_.find(above)) return {answer::no_node};
            return create(r.path + number(above, pass_the_end), {.owner = session, .content = r.content});
        }
        case kind::erase: return erase(r.path);
        case kind::write: {
            auto const* const found = leader_.find(r.path);
            if (!found) return {answer::no_node};
            auto written = *found;
            written.content = r.content;
            write({change::kind::written, r.path, written});
            return {answer::ok};
        }
        case kind::watch_children:
        case kind::children: {
            if (!local.find(r.path)) return {answer::no_node};
            return {.what = answer::ok, .children = local.children(r.path)};
        }
        case kind::data:
        case kind::watch: {
            auto const* const found = local.find(r.path);
            if (!found) return {answer::no_node};
            return {.what = answer::ok, .text = found->content, .stat = stat(*found)};
        }
        default: return {answer::ok};
        }
    }

    /// Returns: whether the children of the node at `path` have changed, or it is gone, since the server had applied so
    /// much, as that server knows it now.
    [[nodiscard]] bool children_changed(std::size_t server, std::string const& path, std::size_t since) const
    {
        auto const* const found = servers_[server].find(path);
        return !found || found->children_changed > static_cast<std::int64_t>(since);
    }

    /// Returns: whether there is a node of the session in the folder `path`, as that server knows it now.
    [[nodiscard]] bool is_in(std::size_t server, std::string const& path, std::int64_t session) const
    {
        auto const& local = servers_[server];
        auto const all = local.children(path);
        return std::any_of(all.begin(), all.end(), [&](std::string const& name) {
            auto const* const one = local.find(path + '/' + name);
            return one->owner == session;
        });
    }

    /// Returns: the path of a node that ends with its session; empty if there is none.
    [[nodiscard]] std::string left() const
    {
        auto const found = std::find_if(leader_.nodes.begin(), leader_.nodes.end(),
                                        [](auto const& one) { return is_ephemeral(one.second); });
        return found == leader_.nodes.end() ? std::string{} : found->first;
    }

    /// Returns: the node at `path`, if there is one and it ends with its session; null otherwise.
    [[nodiscard]] node const* ephemeral(std::string const& path) const
    {
        auto const* const found = leader_.find(path);
        return found && is_ephemeral(*found) ? found : nullptr;
    }

    /// Returns: the names below the node at `path`.
    [[nodiscard]] std::vector<std::string> children(std::string const& path) const { return leader_.children(path); }

    /// Returns: what the node at `path` says; empty if there is none.
    [[nodiscard]] std::string content(std::string const& path) const
    {
        auto const* const found = leader_.find(path);
        return found ? found->content : std::string{};
    }

private:
    struct state {
        std::map<std::string, node> nodes;
        std::size_t applied = 0;

        [[nodiscard]] node const* find(std::string const& path) const
        {
            auto const found = nodes.find(path);
            return found == nodes.end() ? nullptr : &found->second;
        }

        [[nodiscard]] std::vector<std::string> children(std::string const& path) const
        {
            auto const above = path + '/';
            std::vector<std::string> all;
            for (auto one = nodes.lower_bound(above); one != nodes.end() && one->first.starts_with(above); ++one)
                if (one->first.find('/', above.size()) == std::string::npos)
                    all.push_back(one->first.substr(above.size()));
            return all;
        }

        [[nodiscard]] bool has_children(std::string const& path) const
        {
            auto const one = nodes.lower_bound(path + '/');
            return one != nodes.end() && one->first.starts_with(path + '/');
        }

        void apply(change const& c)
        {
            ++applied;
            if (c.what == change::kind::removed)
                nodes.erase(c.path);
            else
                nodes[c.path] = c.now;
            if (c.what == change::kind::written) return;
            auto const above = nodes.find(std::string{zookeeper::parent_of(c.path)});
            if (above == nodes.end()) return;
            above->second.children_changed = static_cast<std::int64_t>(applied);
            above->second.had_child = true;
        }
    };

    [[nodiscard]] static bool creates(zookeeper::request::kind k) noexcept
    {
        using kind = zookeeper::request::kind;
        return k == kind::create_sequential || k == kind::create_plain || k == kind::create_container ||
               k == kind::create_persistent;
    }

    [[nodiscard]] static bool is_container(node const& n) noexcept { return n.owner == zookeeper::container_owner; }
    [[nodiscard]] static bool is_ephemeral(node const& n) noexcept { return n.owner != 0 && !is_container(n); }
    [[nodiscard]] static zookeeper::node_stat stat(node const& n) { return {n.czxid, n.owner}; }
    [[nodiscard]] std::int64_t next() const { return static_cast<std::int64_t>(log_.size()) + 1; }

    zookeeper::reply create(std::string const& path, node what)
    {
        using zookeeper::answer;
        std::string const above{zookeeper::parent_of(path)};
        if (!above.empty() && !leader_.find(above)) return {answer::no_node};
        if (leader_.find(path)) return {answer::node_exists};
        what.czxid = next();
        write({change::kind::made, path, what});
        return {.what = answer::ok, .text = path, .stat = stat(what)};
    }

    zookeeper::reply erase(std::string const& path)
    {
        using zookeeper::answer;
        auto const* const found = leader_.find(path);
        if (!found) return {answer::no_node};
        if (leader_.has_children(path)) return {answer::refused, zookeeper::errc::server_error};
        write({change::kind::removed, path, {}});
        return {answer::ok};
    }

    void write(change const& c)
    {
        log_.push_back(c);
        leader_.apply(c);
    }

    std::string number(std::string const& above, bool pass_the_end)
    {
        constexpr std::int32_t end = 0x7FFFFFFF;
        auto& counter = numbers_.try_emplace(above, first_number_).first->second;
        auto const value = counter == end && pass_the_end ? std::int64_t{-2147483648} : std::int64_t{counter};
        if (counter < end) ++counter;
        char text[16];
        std::snprintf(text, sizeof text, "%010lld", static_cast<long long>(value));
        return text;
    }

    std::int32_t first_number_;
    std::map<std::string, std::int32_t> numbers_;
    state leader_;
    std::vector<state> servers_;
    std::vector<change> log_;
    std::set<std::int64_t> sessions_;
    std::set<std::int64_t> create_only_;
    std::int64_t last_session_ = 0;
};

}  // namespace holdfast::test
