// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/operation.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/pending_operation.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Asks the servers something that ends with no session: if an answer is lost, all is asked for again. Fails with
/// `unavailable` if no server answers within the operation timeout; with `outcome_unknown` if a change is in doubt
/// then. From each answer to one of many requests on there is another timeout, unless as many came before a connection
/// broke: it ends, also if that happens again and again.
template <class R>
class question_operation : public pending_operation<operation<result<R>>> {
    using base = pending_operation<operation<result<R>>>;

public:
    /// `lock`: the name of the lock that is asked about; empty for none. `path`: the one that a failure names.
    question_operation(std::shared_ptr<session_core> in, std::string lock, std::string path)
        : base{std::move(in)}, lock_{std::move(lock)}, path_{std::move(path)}
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
    /// Effects: acts on the end of `send_all`.
    virtual void on_all() {}
    void on_expired() noexcept override
    {
        asked_ = false;
        if (session().refused()) end(known(session().refused()));
    }

    void send(unsigned tag, request what) { session().perform(*this, {{std::move(what), tag}}); }

    /// Effects: sends `all`, 64 at a time; their tags are their places.
    void send_all(std::vector<request> all)
    {
        all_ = std::move(all);
        next_ = 0;
        send_more();
    }

    /// Effects: ends with `why`, explained; with `outcome_unknown` if a change is in doubt.
    void fail(std::error_code why) { end(failure{known(why), session().explanation(known(why), path_)}); }

    [[nodiscard]] std::string const& path() const noexcept { return path_; }

    bool in_doubt_ = false;  ///< something may have been changed, and no answer says so

private:
    static constexpr std::size_t at_once = 64;

    /// Returns: what is known of the outcome after `why`.
    [[nodiscard]] std::error_code known(std::error_code why) const noexcept
    {
        return in_doubt_ ? make_error_code(holdfast::errc::outcome_unknown) : why;
    }

    /// Effects: gives the servers an operation timeout from now on.
    void wait_for_answers() { session().look_at(*this, timeout_after(boot_clock::now())); }

    void send_more()
    {
        std::vector<action> some;
        for (auto const stop = std::min(all_.size(), next_ + at_once); next_ < stop; ++next_)
            some.push_back({std::move(all_[next_]), static_cast<unsigned>(next_)});
        open_ = some.size();
        if (open_ == 0) return on_all();
        session().perform(*this, some);
    }

    void on_time(boot_clock::time_point) noexcept override
    try {
        if (canceled()) return end(std::make_error_code(std::errc::operation_canceled));
        fail(session().connected() ? make_error_code(errc::no_answer) : make_error_code(errc::not_connected));
    } catch (std::bad_alloc const&) {
        end(std::make_error_code(std::errc::not_enough_memory));
    }

    void on_connected(std::int64_t) override
    {
        if (ended() || std::exchange(asked_, true)) return;
        session().forget_answers(*this);
        if (most_answers_ > answers_before_) wait_for_answers();  // those that are lost take their time again
        answers_before_ = most_answers_;
        answers_ = 0;
        ask();
    }

    void on_answer(unsigned tag, reply const& r) override
    {
        if (ended() || !asked_) return;
        if (r.undecided()) {
            asked_ = false;
            return;
        }
        on_reply(tag, r);
        if (ended() || tag >= all_.size()) return;
        if (++answers_ > most_answers_) {
            most_answers_ = answers_;
            wait_for_answers();
        }
        if (--open_ == 0) send_more();
    }

    std::string const lock_;
    std::string const path_;
    bool asked_ = false;
    std::vector<request> all_;
    std::size_t next_ = 0;            // the first of them that was not sent
    std::size_t open_ = 0;            // how many answers are to come
    std::size_t answers_ = 0;         // to `all_`, that came since it was asked for all
    std::size_t most_answers_ = 0;    // that ever came so
    std::size_t answers_before_ = 0;  // the same, when it was last asked for all
};

}  // namespace holdfast::zookeeper
