// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/queued_recipe.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
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
class permit_recipe final : public queued_recipe {
public:
    permit_recipe(acquire_plan plan, std::size_t max) : queued_recipe{std::move(plan)}, max_{max} {}

private:
    [[nodiscard]] std::string prefix() const override { return "_c_" + detail::guid(naming::curator, id_) + "-lease-"; }

    [[nodiscard]] request::kind listing() const noexcept override
    {
        return plan().once ? request::kind::children : request::kind::watch_children;
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
        if (r.children.size() <= max_) return grant();  // all count, whatever their names
        if (plan().once) return fail(make_error_code(holdfast::errc::timed_out));
        wait();
    }

    std::size_t max_;
    bool begun_ = false;
};

}  // namespace holdfast::zookeeper
