// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks the servers something that changes with no session: if an answer is lost, all is asked for again. Fails with
/// `unavailable` if no server answers within the operation timeout.
template <class R>
class question_operation : public pending_operation<operation<result<R>>> {
    using base = pending_operation<operation<result<R>>>;

public:
    /// `lock`: the name of the lock that is asked about; empty for none.
    question_operation(std::shared_ptr<session_core> in, std::string lock) : base{std::move(in)}, lock_{std::move(lock)}
    {
    }

    void start(completion& done) override
    {
        session().ensure_running(lock_);
        std::scoped_lock guard{session().mutex()};
        begin(done);
        if (session().refused()) return end(session().refused());
        wait_for_answers();
        session().attach(*this);
    }

protected:
    using base::session, base::begin, base::end, base::ended, base::canceled, base::timeout_after;

    /// Effects: begins anew: sends the first requests.
    virtual void ask() = 0;
    /// Effects: acts on an answer to what was sent with `tag`.
    virtual void on_reply(unsigned tag, reply const& r) = 0;
    /// Returns: the path that a failure names.
    [[nodiscard]] virtual std::string const& about() const noexcept = 0;

    /// Effects: gives the servers an operation timeout from now on.
    void wait_for_answers() { session().look_at(*this, timeout_after(boot_clock::now())); }

    [[nodiscard]] failure explained(std::error_code why) const { return {why, session().explanation(why, about())}; }

private:
    void on_time(boot_clock::time_point) noexcept override
    try {
        if (canceled()) return end(std::make_error_code(std::errc::operation_canceled));
        end(explained(make_error_code(session().connected() ? errc::no_answer : errc::not_connected)));
    } catch (std::bad_alloc const&) {
        end(std::make_error_code(std::errc::not_enough_memory));
    }

    void on_expired() noexcept override
    {
        asked_ = false;
        if (session().refused()) end(session().refused());
    }

    void on_connected(std::int64_t) override
    {
        if (ended() || std::exchange(asked_, true)) return;
        session().forget_answers(*this);
        ask();
    }

    void on_answer(unsigned tag, reply const& r) override
    {
        if (ended() || !asked_) return;
        if (r.undecided())
            asked_ = false;
        else
            on_reply(tag, r);
    }

    std::string const lock_;
    bool asked_ = false;
};

}  // namespace holdfast::zookeeper
