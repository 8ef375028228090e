// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/number.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/queued_recipe.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Takes one of `max` permits: makes a node beside those of the other permits, and has it when there are no more than
/// `max` of them. Run by a client that has the queue's lock, so that one client waits at a time. The states are those
/// of `queued_recipe`, with a watch set by each list; and *waiting*, from which the notice leads to *listing*.
///
/// | the nodes | next |
/// |---|---|
/// | ours is not there | creating with a new GUID |
/// | no more than `max` | granted |
/// | more, `once` | failed (`timed_out`) |
/// | more | waiting: any that goes counts |
///
/// No more than `max` have a permit: of those that have one at a time, the one whose node was made last has seen the
/// nodes of all. After the end of the session it fails (`session_expired`): the place in the queue is gone, too, and
/// two that wait outside of it could wait for each other. Source: Curator's recipe for a shared semaphore.
///
/// For kazoo the node above them says `max`, and stays: its clients make that node once. The data are read beside the
/// first list that counts. If they are another number, it fails (`other_number`); what is no number is of no concern.
/// Source: kazoo's recipe/lock.py, `Semaphore`. It looks before it makes a node, which the lock of the queue allows it.
class permit_recipe final : public queued_recipe {
public:
    /// `as`: whose permits; Curator's or kazoo's.
    permit_recipe(acquire_plan plan, std::size_t max, permits as = permits::curator)
        : queued_recipe{std::move(plan)}, max_{max}, as_{as}
    {
    }

    [[nodiscard]] std::string detail() const override
    {
        return other_.empty() ? std::string{} : other_number_of(other_, std::to_string(max_));
    }

private:
    [[nodiscard]] std::string prefix() const override
    {
        if (as_ == permits::kazoo) return zookeeper::detail::guid(naming::kazoo, id_) + "-lease-";
        return "_c_" + zookeeper::detail::guid(naming::curator, id_) + "-lease-";
    }

    [[nodiscard]] request::kind listing() const noexcept override
    {
        return plan().once ? request::kind::children : request::kind::watch_children;
    }

    [[nodiscard]] bool asks_for_number() const noexcept { return as_ == permits::kazoo && !number_known_; }

    [[nodiscard]] request parent(std::string const& path) const override
    {
        if (as_ != permits::kazoo || path != plan().lock) return queued_recipe::parent(path);
        return {request::kind::create_persistent, path, std::to_string(max_)};
    }

    void ask_for_list() override
    {
        if (asks_for_number()) send(beside, {request::kind::data, plan().lock});
        queued_recipe::ask_for_list();
    }

    void take_beside(reply const& r) override
    {
        if (r.what != answer::ok) return;
        number_known_ = true;
        auto const number = number_said(r.text);
        if (!number || *number == max_) return;
        other_ = std::to_string(*number);
        fail(errc::other_number);
    }

    /// Returns: the number that `text` says, in plain digits, as Python reads them; nothing if it says none.
    [[nodiscard]] static std::optional<std::size_t> number_said(std::string_view text) noexcept
    {
        constexpr std::string_view blanks = " \t\r\n";
        text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
        text = text.substr(0, text.find_last_not_of(blanks) + 1);
        return holdfast::detail::number_in<std::size_t>(text);
    }

    void start_over() override
    {
        if (std::exchange(begun_, true)) return fail(errc::session_expired);
        queued_recipe::start_over();
    }

    void take_children(reply const& r) override
    {
        if (std::find(r.children.begin(), r.children.end(), node_) == r.children.end())
            return queued_recipe::start_over();
        if (asks_for_number()) return stall();
        // All count, whatever their names.
        if (r.children.size() <= max_) return grant();  // mutant: a permit that does not count its own node
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        was_noticed() ? list() : wait();  // no other notice would come
    }

    std::size_t max_;
    permits as_;
    bool begun_ = false;
    bool number_known_ = false;
    std::string other_;  // the number that the others have
};

}  // namespace holdfast::zookeeper
