// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/question_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks for the names of the locks that are held: of the nodes below one node, those that have a child of a lock, and
/// those that are ephemeral (the plain form). Two requests for each node that may be a lock, 64 nodes at a time. Fails
/// with `unavailable` if no server answers for an operation timeout.
class list_operation final : public question_operation<std::vector<std::string>> {
public:
    /// Throws: `error` (`misconfigured`) if `prefix` cannot be that of a path.
    list_operation(std::shared_ptr<session_core> in, std::string_view prefix)
        : question_operation{std::move(in), {}}, with_slash_{prefix.starts_with('/')}
    {
        auto const path = with_slash_ ? std::string{prefix} : '/' + std::string{prefix};
        auto const above = parent_of(path);
        auto const fault = above.empty() ? std::string{} : detail::fault_of(above, session().chroot());
        if (!fault.empty())
            throw error{holdfast::errc::misconfigured, "the prefix of a list, " + quoted(prefix) +
                                                           ", is that of a ZooKeeper node, and the node above " +
                                                           fault};
        above_ = std::string{above} + '/';
        begin_ = leaf_of(path);
    }

private:
    static constexpr unsigned list_tag = 0;
    static constexpr unsigned first_tag = 1;  // and two for each node
    static constexpr std::size_t at_once = 64;

    [[nodiscard]] std::string const& about() const noexcept override { return above_; }

    void ask() override
    {
        auto path = session().chroot() + above_;
        if (path.size() > 1) path.pop_back();
        session().perform(*this, {{{request::kind::children, path}, list_tag}});
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        wait_for_answers();
        if (tag == list_tag) {
            if (r.what == answer::refused) return end(explained(r.code));
            names_.clear();
            for (auto const& one : r.children)
                if (one.starts_with(begin_) && detail::fault_of(above_ + one, session().chroot()).empty())
                    names_.push_back(one);
            std::sort(names_.begin(), names_.end());
            held_.assign(names_.size(), false);
            next_ = 0;
            return ask_some();
        }
        // A node that this session may not read is none of its locks.
        auto const node = (tag - first_tag) / 2;
        bool const of_lock = (tag - first_tag) % 2 == 0 ? !contenders_among(r.children).empty() : r.stat.owner != 0;
        if (r.what == answer::ok && of_lock && r.stat.owner != container_owner) held_[node] = true;
        if (--open_ == 0) ask_some();
    }

    void ask_some()
    {
        std::vector<action> actions;
        for (auto const end = std::min(names_.size(), next_ + at_once); next_ < end; ++next_) {
            auto const path = session().chroot() + above_ + names_[next_];
            auto const tag = first_tag + 2 * static_cast<unsigned>(next_);
            actions.push_back({{request::kind::children, path}, tag});
            actions.push_back({{request::kind::data, path}, tag + 1});
        }
        open_ = actions.size();
        if (open_ != 0) return session().perform(*this, actions);
        std::vector<std::string> found;
        for (std::size_t i = 0; i < names_.size(); ++i)
            if (held_[i]) found.push_back((with_slash_ ? above_ : above_.substr(1)) + names_[i]);
        end(std::move(found));
    }

    bool const with_slash_;  // as the user writes names
    std::string above_;      // the path of the node above, with a slash at its end
    std::string begin_;      // of the last part of the path
    std::vector<std::string> names_;
    std::vector<bool> held_;
    std::size_t next_ = 0;  // the first that was not asked about
    std::size_t open_ = 0;  // how many answers are to come
};

}  // namespace holdfast::zookeeper
