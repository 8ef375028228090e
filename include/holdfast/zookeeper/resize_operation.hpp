// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/mark_watch.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/number_recipe.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/question_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Changes the number of permits of a semaphore: makes the mark of its own session, and removes those of other numbers.
/// Once a server was asked, it fails with `outcome_unknown` if none answers.
class resize_operation final : public question_operation<bool> {
public:
    /// `lock`: the name that a failure of the client's threads has.
    resize_operation(std::shared_ptr<session_core> in, std::string lock, std::shared_ptr<permit_number> to)
        : question_operation{std::move(in), std::move(lock), to->path}, number_{std::move(to)}
    {
    }

private:
    void ask() override
    {
        in_doubt_ = true;
        machine_.connected(session().session());
        go_on();
    }

    void on_reply(unsigned tag, reply const& r) override
    {
        machine_.answered(tag, r);
        go_on();
    }

    void on_undecided(unsigned tag, reply const& r) override { on_reply(tag, r); }

    void on_expired() noexcept override
    {
        machine_.expired();
        question_operation::on_expired();
    }

    void go_on()
    {
        using enum acquire_machine::phase;
        session().perform(*this, machine_.take_actions());
        if (machine_.stalled()) ask_again();
        if (machine_.now() == failed) return fail(machine_.why());
        if (machine_.now() != granted) return;
        if (!keep_mark(session(), number_, machine_)) return fail(std::make_error_code(std::errc::operation_canceled));
        end(true);
    }

    void fail(std::error_code why) override
    {
        undo(session(), machine_);
        question_operation::fail(why);
    }

    std::shared_ptr<permit_number> const number_;
    number_recipe machine_{{.lock = number_->path, .tokens = [this] { return session().host().fresh_token(); }},
                           number_->permits,
                           number_recipe::other_numbers::replaced};
};

}  // namespace holdfast::zookeeper
