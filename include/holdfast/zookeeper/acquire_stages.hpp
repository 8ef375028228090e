// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/holder_text.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/number_recipe.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <cstdint>
#include <memory>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The machines that an acquire runs: that of the lock; before it, for a slot of a semaphore, one that agrees about the
/// number of permits, unless the session has done so. Called with the session's mutex held.
class acquire_stages {
public:
    acquire_stages(session_core& in, node_key const& key, acquire_request const& request)
        : session_{in}, key_{key}, request_{request}
    {
    }

    /// Returns: the machine to begin with. `once`: there is one attempt only.
    [[nodiscard]] std::unique_ptr<acquire_machine> begin(bool once)
    {
        auto const tokens = [this] { return session_.host().fresh_token(); };
        auto const& number = key_.number();
        numbering_ = number && !number->agreed(session_.session());
        if (numbering_)
            return std::make_unique<number_recipe>(acquire_plan{.lock = number->path, .tokens = tokens},
                                                   number->permits);
        acquire_plan plan{.lock = key_.path(),
                          .content = holdfast::detail::holder_text(session_.options().label),
                          .once = once,
                          .look_first = !session_.may_list(key_.path()),
                          .tokens = tokens};
        if (!request_.beside) return key_.machine(std::move(plan));
        auto const* const held = session_.held().find(*request_.beside);
        return key_.machine(std::move(plan), held ? *held : held_nodes::node{});
    }

    /// Returns: whether the machine agrees about the number of permits.
    [[nodiscard]] bool numbering() const noexcept { return numbering_; }

    /// Returns: whether the number has to be agreed again, in `session`: the mark went with an earlier one, or with a
    /// change of the number.
    [[nodiscard]] bool outdated(std::int64_t session) const noexcept
    {
        return !numbering_ && key_.number() && !key_.number()->agreed(session);
    }

private:
    session_core& session_;
    node_key const& key_;
    acquire_request const& request_;
    bool numbering_ = false;
};

}  // namespace holdfast::zookeeper
