// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// A model of a ZooKeeper ensemble, as the locks at one path see it: a leader that orders all writes, servers that
/// follow it at their own pace, sessions and their ephemeral nodes. It does nothing by itself. The driver decides when
/// a server catches up, when a session ends, when the empty container above the nodes is collected, and which sessions
/// may only create.
///
/// What is modelled:
///
/// - The node above is a container, which is collected when it has had children and has none.
/// - A server answers reads from what it has applied, and a write when it has applied it. `confirm` makes it catch up.
/// - The children's numbers come from a signed counter that sticks at its end, or passes to negative numbers for a
///   moment.
class ensemble {
public:
    struct node {
        std::int64_t czxid;
        std::int64_t owner;
        std::string content = {};
    };

    /// The nodes are below `container`: the lock's own path, unless the lock's node is at that path itself.
    ensemble(std::string lock, std::size_t servers, std::int32_t first_number, std::string container = {})
        : lock_{std::move(lock)},
          container_{container.empty() ? lock_ : std::move(container)},
          number_{first_number},
          servers_(servers)
    {
    }

    /// Effects: the node above exists from the beginning, and is no container.
    void make_lasting()
    {
        lasting_ = true;
        if (!leader_.parent) write({change::kind::parent, {}, {}});
    }

    /// Effects: at the node above, the session may only create. Requires: `make_lasting`.
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
        for (auto const& [name, one] : nodes)
            if (one.owner == session) write({change::kind::remove, name, {}});
    }

    /// Effects: removes the container, if it has had children and has none.
    void collect()
    {
        if (leader_.parent && !lasting_ && had_child_ && leader_.nodes.empty())
            write({change::kind::no_parent, {}, {}});
    }

    /// Returns: whether there is a container that will never be collected: it has had no child.
    [[nodiscard]] bool barren() const { return leader_.parent && !lasting_ && !had_child_; }

    /// Returns: how far a server is behind.
    [[nodiscard]] std::size_t lag(std::size_t server) const { return log_.size() - servers_[server].applied; }
    [[nodiscard]] std::size_t applied(std::size_t server) const { return servers_[server].applied; }

    /// Effects: a server applies its next change. Returns: the path of the node that this removed; empty for none.
    std::string catch_up(std::size_t server)
    {
        auto& s = servers_[server];
        auto const& next = log_[s.applied];
        s.apply(next);
        return next.what != change::kind::remove ? std::string{} : next.name.empty() ? lock_ : lock_ + '/' + next.name;
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
        auto const name = r.path.size() > lock_.size() ? r.path.substr(lock_.size() + 1) : std::string{};
        bool const creates =
            r.what == kind::create_sequential || r.what == kind::create_plain || r.what == kind::create_container;
        if (!creates && r.what != kind::confirm && create_only_.count(session) != 0)
            return {answer::refused,
                    r.what == kind::erase ? zookeeper::errc::may_not_delete : zookeeper::errc::may_not_read};
        if (r.path == container_ && (r.what == kind::data || r.what == kind::erase))
            return process_container(local, r.what == kind::erase);
        switch (r.what) {
        case kind::create_container:
            if (leader_.parent) return {answer::node_exists};
            write({change::kind::parent, {}, {}});
            return {answer::ok};
        case kind::create_sequential: {
            if (!leader_.parent) return {answer::no_node};
            auto const full = name + number(pass_the_end);
            write({change::kind::make, full, {static_cast<std::int64_t>(log_.size()) + 1, session}});
            return {.what = answer::ok, .text = lock_ + '/' + full, .stat = stat(leader_.nodes.at(full))};
        }
        case kind::
            create_plain:  // at the lock's own path: its name here is empty, and the container is the one above it
            if (!leader_.parent) return {answer::no_node};
            if (leader_.nodes.count(name) != 0) return {answer::node_exists};
            write({change::kind::make, name, {static_cast<std::int64_t>(log_.size()) + 1, session, r.content}});
            return {.what = answer::ok, .text = r.path, .stat = stat(leader_.nodes.at(name))};
        case kind::erase:
            if (leader_.nodes.count(name) == 0) return {answer::no_node};
            robbed_ = robbed_ || leader_.nodes.at(name).owner != session;
            write({change::kind::remove, name, {}});
            return {answer::ok};
        case kind::children: {
            if (!local.parent) return {answer::no_node};
            zookeeper::reply all{.what = answer::ok};
            for (auto const& one : local.nodes) all.children.push_back(one.first);
            return all;
        }
        case kind::data:
        case kind::watch: {
            auto const found = local.nodes.find(name);
            if (found == local.nodes.end()) return {answer::no_node};
            return {.what = answer::ok, .text = found->second.content, .stat = stat(found->second)};
        }
        default: return {answer::ok};
        }
    }

    /// Returns: whether a session has removed the node of another one.
    [[nodiscard]] bool robbed() const noexcept { return robbed_; }

    [[nodiscard]] std::map<std::string, node> const& nodes() const noexcept { return leader_.nodes; }

private:
    struct change {
        enum class kind { make, remove, parent, no_parent } what;
        std::string name;
        node made;
    };

    struct state {
        bool parent = false;
        std::map<std::string, node> nodes;
        std::size_t applied = 0;

        void apply(change const& c)
        {
            ++applied;
            if (c.what == change::kind::make)
                nodes.insert_or_assign(c.name, c.made);
            else if (c.what == change::kind::remove)
                nodes.erase(c.name);
            else
                parent = c.what == change::kind::parent;
        }
    };

    zookeeper::reply process_container(state const& local, bool erase)
    {
        using zookeeper::answer;
        if (!(erase ? leader_ : local).parent) return {answer::no_node};
        if (!erase) return {.what = answer::ok, .stat = {1, lasting_ ? 0 : zookeeper::container_owner}};
        if (!leader_.nodes.empty()) return {answer::refused, zookeeper::errc::server_error};
        write({change::kind::no_parent, {}, {}});
        return {answer::ok};
    }

    static zookeeper::node_stat stat(node const& n) { return {n.czxid, n.owner}; }

    void write(change const& c)
    {
        log_.push_back(c);
        leader_.apply(c);
        if (c.what == change::kind::make) had_child_ = true;
        if (c.what == change::kind::parent) had_child_ = false;
    }

    std::string number(bool pass_the_end)
    {
        constexpr std::int32_t end = 0x7FFFFFFF;
        auto const value = number_ == end && pass_the_end ? std::int64_t{-2147483648} : std::int64_t{number_};
        if (number_ < end) ++number_;
        char text[16];
        std::snprintf(text, sizeof text, "%010lld", static_cast<long long>(value));
        return text;
    }

    std::string lock_;
    std::string container_;
    std::int32_t number_;
    state leader_;
    std::vector<state> servers_;
    std::vector<change> log_;
    std::set<std::int64_t> sessions_;
    std::set<std::int64_t> create_only_;
    bool lasting_ = false;
    bool had_child_ = false;
    bool robbed_ = false;
    std::int64_t last_session_ = 0;
};

}  // namespace holdfast::test
