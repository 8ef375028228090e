// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/joint_hold.hpp>
#include <holdfast/core/joint_object.hpp>
#include <holdfast/core/joint_release.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/announce.hpp>
#include <holdfast/lock/ordered_locks.hpp>
#include <holdfast/lock/report.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The locks of one `multi_mutex`, in the order in which they are taken, and its present hold.
class joint_locks final : public joint_object, public std::enable_shared_from_this<joint_locks> {
public:
    joint_locks(std::vector<std::shared_ptr<lock_object>> locks, std::string name)
        : locks_{std::move(locks)}, name_{std::move(name)}
    {
    }

    bool lock(std::size_t place, patience const& p, std::stop_token const& stop) override
    {
        return locks_.lock(place, p, stop);
    }
    joint_outcome try_lock_all(patience const& p, std::stop_token const& stop) override
    {
        return locks_.try_lock_all(p, stop);
    }

    void close() noexcept override
    {
        if (!origin_.in_child()) closing_.request_stop();  // `keep` asks for it with the mutex locked
    }
    [[nodiscard]] bool closed() const noexcept { return closing_.stop_requested(); }

    bool keep(hold made) noexcept override
    {
        if (origin_.in_child()) return true;  // the mutex may be locked for ever
        std::scoped_lock guard{mutex_};
        if (closed()) return false;
        hold_ = std::move(made);
        return true;
    }

    [[nodiscard]] hold held() const noexcept override
    {
        if (origin_.in_child()) return nullptr;
        std::scoped_lock guard{mutex_};
        return hold_;
    }

    [[nodiscard]] hold let_go() noexcept override
    {
        if (origin_.in_child()) return nullptr;
        std::scoped_lock guard{mutex_};
        return std::exchange(hold_, nullptr);
    }

    [[nodiscard]] std::shared_ptr<async_object> to_lock() override { return made(); }

    [[nodiscard]] std::shared_ptr<async_object> to_unlock(holdfast::lease& of) override
    {
        auto one = made();
        one->take_over(let_go());
        of = one->lease();
        return one;
    }

private:
    /// One hold of all, during an asynchronous call and while a guard has it.
    ///
    /// | it | event | next |
    /// |---|---|---|
    /// | takes the nth lock | it is granted | takes the next one; after the last: held, if all are |
    /// | takes the nth lock | it may be one of those before it | asks, in a thread of the client; then as above |
    /// | takes the nth lock | it is not | gives back those before it; failed |
    /// | has all | one was lost meanwhile | gives all back, and takes them anew; or the time is over |
    /// | gives all back | the last answer | over |
    class one_joint final : public async_object, public std::enable_shared_from_this<one_joint> {
    public:
        explicit one_joint(std::shared_ptr<joint_locks> of) : of_{std::move(of)} { leases_.reserve(locks().size()); }

        /// What was not given back is kept: it could not be begun.
        ~one_joint() override
        {
            if (hold_ && !of_->keep(hold_)) give_back(lease());
        }

        /// Effects: has `of`, which may be null.
        void take_over(hold of)
        {
            hold_ = std::move(of);
            for (auto const& one : locks()) leases_.push_back(one->lease());
        }

        void begin_lock(patience const& p, std::stop_token stop, std::unique_ptr<async_result> told) override
        {
            limit_ = p;
            told_ = std::move(told);
            try {
                at_stop_.emplace(std::move(stop), cancel{&stop_});
                at_close_.emplace(of_->closing_.get_token(), cancel{&stop_});
                take_next();
            } catch (...) {
                told_ = nullptr;
                throw;
            }
        }

        void begin_unlock(holdfast::lease const& of, std::unique_ptr<async_result> told) override
        {
            if (!hold_ || of != lease() || of_->origin_.in_child())  // says `not_owner`, or that it is a child
                return locks().front()->begin_unlock({}, std::move(told));
            auto const all =
                std::make_shared<joint_release>([self = shared_from_this()](std::error_code ec, lock_object& last) {
                    self->released(last.calls());
                    self->finish(last.calls(), ec, false);
                });
            for (std::size_t n = 0; n < leases_.size(); ++n) all->add(locks()[n], leases_[n]);
            told_ = std::move(told);
            over_ = std::move(hold_);
            over_->release();
            all->begin();
        }

        void give_back(holdfast::lease const& of) noexcept override
        {
            if (!hold_ || of != lease() || of_->origin_.in_child()) return;
            over_ = std::move(hold_);
            over_->release();
            for (auto n = locks().size(); n-- > 0;) locks()[n]->give_back(leases_[n]);
            released(calls());
        }

        void begin_use() noexcept override
        {
            for (auto const& one : locks()) one->begin_use();
        }

        void leave() noexcept override
        {
            if (!of_->keep(hold_)) return give_back(lease());
            hold_ = nullptr;
        }
        [[nodiscard]] holdfast::lease lease() const override { return holdfast::lease{hold_}; }
        [[nodiscard]] bool closed() const noexcept override { return of_->closed(); }

    private:
        struct cancel {
            std::stop_source* what;
            void operator()() const noexcept { what->request_stop(); }
        };

        [[nodiscard]] std::vector<std::shared_ptr<lock_object>> const& locks() const noexcept
        {
            return of_->locks_.all();
        }

        /// Returns: the threads of a client that has not ended: of the one that was asked last, whose answer is being
        /// acted on.
        [[nodiscard]] announcer* calls() const { return locks()[asked_]->calls(); }

        void take_next()
        {
            auto* const threads = calls();
            asked_ = leases_.size();
            if (!of_->locks_.may_be_held(asked_)) return wait_for_next();
            // It waits for answers: the client's own thread, which brings them, must not.
            announcer::call ask{[self = shared_from_this()] { self->try_next(); }};
            if (!threads->try_tell(ask)) fail(make_error_code(errc::unavailable));
        }

        void wait_for_next()
        {
            locks()[asked_]->begin_lock(limit_, stop_.get_token(), result_to(shared_from_this(), &one_joint::taken));
        }

        /// Effects: attempts to take a lock that may be one of those before it, which takes some questions.
        void try_next() noexcept
        try {
            auto limit = limit_;
            limit.told_later = true;
            auto const stop = stop_.get_token();
            auto const got = of_->locks_.try_lock(asked_, limit, stop);
            if (!got) return wait_for_next();
            taken(stop.stop_requested() ? std::make_error_code(std::errc::operation_canceled)
                                        : make_error_code(errc::timed_out),
                  *got);
        } catch (...) {
            fail(current_exception_code());
        }

        /// Effects: acts on the answer to a lock that was asked for.
        void taken(std::error_code ec, bool is_held) noexcept
        try {
            if (!is_held) return fail(ec);
            leases_.push_back(locks()[leases_.size()]->lease());
            if (leases_.size() < locks().size()) return take_next();
            auto const all = std::make_shared<joint_hold>(locks().size());
            for (auto const& one : leases_) all->add(one, all);
            if (all->still_held() && !closed()) {
                hold_ = all;
                return finish(calls(), {}, true);
            }
            if (closed()) return fail(std::make_error_code(std::errc::operation_canceled));
            if (boot_clock::now() >= limit_.deadline) return fail(make_error_code(errc::timed_out));
            give_all();
            take_next();
        } catch (...) {
            fail(current_exception_code());
        }

        /// Effects: gives back what was taken in vain, which is free at once, whatever its `min_hold`.
        void give_all() noexcept
        {
            for (; !leases_.empty(); leases_.pop_back()) locks()[leases_.size() - 1]->give_back(leases_.back());
        }

        void fail(std::error_code ec) noexcept
        {
            give_all();
            finish(calls(), ec, false);
        }

        /// Effects: announces that one of them was lost, if so.
        void released(announcer* background) noexcept
        {
            if (over_->part_lost()) announce_loss(background, *over_);
        }

        void finish(announcer* background, std::error_code ec, bool is_held) noexcept
        {
            at_stop_.reset();
            at_close_.reset();
            detail::deliver(background, std::move(told_), ec, is_held);
        }

        std::shared_ptr<joint_locks> const of_;
        hold hold_;  // null: it has none, or has left it
        hold over_;  // is being given back
        std::vector<holdfast::lease> leases_;
        std::size_t asked_ = 0;  // which lock was asked last
        patience limit_;
        std::stop_source stop_;
        std::unique_ptr<async_result> told_;
        std::optional<std::stop_callback<cancel>> at_stop_;
        std::optional<std::stop_callback<cancel>> at_close_;
    };

    [[nodiscard]] std::shared_ptr<one_joint> made()
    {
        if (origin_.in_child()) throw made_before_fork(name_);
        return std::make_shared<one_joint>(shared_from_this());
    }

    ordered_locks const locks_;
    std::string const name_;
    std::stop_source closing_;
    mutable std::mutex mutex_;
    hold hold_;
    fork_guard const origin_;
};

}  // namespace holdfast::detail
