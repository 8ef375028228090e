// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/held_nodes.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Watches the mark of a session. If it goes, another client has changed the number of permits, and the session agrees
/// again before its next acquire. A server tells of that before it answers an acquire that came later, so that one is
/// looked at again, too.
///
/// If the mark cannot be watched, the session is not told; then it asks for the slots of its number until it ends.
class mark_watch final : public session_operation {
public:
    mark_watch(session_core& in, std::shared_ptr<permit_number> of)
        : session_{in}, number_{std::move(of)}, made_in_{number_->agreed_in}, node_{number_->mark.node}
    {
    }

    void on_connected(std::int64_t in) override
    {
        if (in != made_in_) return session_.drop(*this);
        session_.perform(*this, {{{request::kind::watch, node_}, 0}});
    }
    void on_answer(unsigned, reply const& r) override
    {
        if (r.what == answer::no_node) gone();
    }
    void on_notice(unsigned) override { gone(); }  // mutant: a mark that was removed not missed
    void on_expired() noexcept override { session_.drop(*this); }

private:
    void gone()
    {
        if (number_->agreed(made_in_) && number_->mark.node == node_) remove_mark(session_, *number_);
        session_.drop(*this);
    }

    session_core& session_;
    std::shared_ptr<permit_number> const number_;
    std::int64_t const made_in_;
    std::string const node_;
};

/// Effects: the mark that `made` has made is that of its session, unless there is one, and is watched. Returns: whether
/// the semaphore is in use; otherwise the mark is left.
[[nodiscard]] inline bool keep_mark(session_core& session, std::shared_ptr<permit_number> const& of,
                                    acquire_machine const& made)
{
    auto& number = *of;
    if (number.uses == 0) return false;
    if (number.agreed(made.session())) {
        undo(session, made);
        return true;
    }
    number.mark = made.what_is_left();
    number.agreed_in = made.session();
    session.keep(std::make_shared<mark_watch>(session, of), held_nodes::bytes_of(number.mark));
    return true;
}

}  // namespace holdfast::zookeeper
