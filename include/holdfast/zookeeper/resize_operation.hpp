// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/mark_watch.hpp>
#include <holdfast/zookeeper/node_cleanup.hpp>
#include <holdfast/zookeeper/number_recipe.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Changes the number of permits of a semaphore: makes the mark of its own session, and removes those of other numbers.
/// Fails with `unavailable` if no server answers within the operation timeout; with `outcome_unknown` if one was asked.
class resize_operation final : public pending_operation<operation<result<bool>>> {
public:
    /// `lock`: the name that a failure of the client's threads has.
    resize_operation(std::shared_ptr<session_core> in, std::string lock, std::shared_ptr<permit_number> to)
        : pending_operation{std::move(in)}, lock_{std::move(lock)}, number_{std::move(to)}
    {
    }

    void start(completion& done) override
    {
        session().ensure_running(lock_);
        std::scoped_lock guard{session().mutex()};
        begin(done);
        if (session().refused()) return end(session().refused());
        session().look_at(*this, timeout_after(boot_clock::now()));
        try {
            session().attach(*this);
        } catch (...) {  // the mark may be made
            undo(session(), machine_);
            throw;
        }
    }

private:
    void on_connected(std::int64_t in) override
    {
        if (ended()) return;
        asked_ = true;
        machine_.connected(in);
        go_on();
    }

    void on_answer(unsigned tag, reply const& r) override
    {
        if (ended()) return;
        machine_.answered(tag, r);
        go_on();
    }

    void on_expired() noexcept override
    {
        machine_.expired();
        if (session().refused()) end(session().refused());
    }

    void on_time(boot_clock::time_point) noexcept override
    try {
        if (ended()) return;
        auto const why = canceled() ? std::make_error_code(std::errc::operation_canceled)
                         : asked_   ? make_error_code(holdfast::errc::outcome_unknown)
                                    : make_error_code(errc::not_connected);
        fail(why);
    } catch (std::bad_alloc const&) {
        if (machine_.left_something()) session().abandon_session(machine_.session());  // the mark goes with it
        end(std::make_error_code(std::errc::not_enough_memory));
    }

    void go_on()
    {
        using enum acquire_machine::phase;
        session().perform(*this, machine_.take_actions());
        if (machine_.stalled()) session().go_on_later();
        if (machine_.now() == failed) return fail(machine_.why());
        if (machine_.now() != granted) return;
        if (!keep_mark(session(), number_, machine_)) return fail(std::make_error_code(std::errc::operation_canceled));
        end(true);
    }

    void fail(std::error_code why)
    {
        undo(session(), machine_);
        end(failure{why, session().explanation(why, number_->path)});
    }

    std::string const lock_;
    std::shared_ptr<permit_number> const number_;
    number_recipe machine_{{.lock = number_->path, .tokens = [this] { return session().host().fresh_token(); }},
                           number_->permits,
                           number_recipe::other_numbers::replaced};
    bool asked_ = false;
};

}  // namespace holdfast::zookeeper
