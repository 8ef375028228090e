// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/question_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks for the names of the locks that are held: of the nodes below one node, those that have a child of a lock, and
/// those that are ephemeral (the plain form). Two requests for each node that may be a lock.
class list_operation final : public question_operation<std::vector<std::string>> {
public:
    /// Throws: `error` (`misconfigured`) if `prefix` cannot be that of a path.
    list_operation(std::shared_ptr<session_core> const& in, std::string_view prefix)
        : question_operation{in, {}, path_above(prefix, in->chroot())},
          with_slash_{prefix.starts_with('/')},
          begin_{leaf_of(prefix)}
    {
    }

private:
    static constexpr unsigned list_tag = ~0U;

    /// Returns: the path of the node above those that begin with `prefix`, with a slash at its end.
    [[nodiscard]] static std::string path_above(std::string_view prefix, std::string const& chroot)
    {
        auto const path = (prefix.starts_with('/') ? "" : "/") + std::string{prefix};
        auto const above = parent_of(path);
        auto const fault = above.empty() ? std::string{} : detail::fault_of(above, chroot);
        if (!fault.empty())
            throw error{holdfast::errc::misconfigured, "the prefix of a list, " + quoted(prefix) +
                                                           ", is that of a ZooKeeper node, and the node above " +
                                                           fault};
        return std::string{above} + '/';
    }

    void ask() override
    {
        auto above = session().chroot() + path();
        if (above.size() > 1) above.pop_back();
        send(list_tag, {request::kind::children, above});
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        if (tag == list_tag) return r.what == answer::refused ? fail(r.code) : look_at(r.children);
        // A node that this session may not read is none of its locks.
        bool const of_lock = tag % 2 == 0 ? !contenders_among(r.children).empty() : r.stat.ephemeral();
        if (r.what == answer::ok && of_lock) held_[tag / 2] = true;
    }

    void look_at(std::vector<std::string> const& children)
    {
        names_.clear();
        for (auto const& one : children)
            if (one.starts_with(begin_) && detail::fault_of(path() + one, session().chroot()).empty())
                names_.push_back(one);
        std::sort(names_.begin(), names_.end());
        held_.assign(names_.size(), false);
        std::vector<request> all;
        for (auto const& one : names_)
            for (auto const what : {request::kind::children, request::kind::data})
                all.push_back({what, session().chroot() + path() + one});
        send_all(std::move(all));
    }

    void on_all() override
    {
        std::vector<std::string> found;
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (held_[i]) found.push_back((with_slash_ ? path() : path().substr(1)) + names_[i]);
        end(std::move(found));
    }

    bool const with_slash_;    // as the user writes names
    std::string const begin_;  // of the last part of the path
    std::vector<std::string> names_;
    std::vector<bool> held_;
};

}  // namespace holdfast::zookeeper
