// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/lock/awaited.hpp>

#include <memory>
#include <new>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// How a lease is given back.
struct release_terms {
    bool was_valid = true;              ///< whether the lease was valid when it was given back
    bool ended_in_store = false;        ///< if it was not, or turns out not to have been: by the store's word
    bool keeps_others_waiting = false;  ///< no waiter of this process may ask before the answer
};

/// The release of one lease, which needs no memory. One that no thread waits for is made before the lease is asked for;
/// one that a thread waits for is on its stack.
class release_call final : public awaited {
public:
    /// Receives the answer to a release that no thread waits for.
    class receiver {
    public:
        virtual void released(std::unique_ptr<release_call> call) noexcept = 0;

    protected:
        ~receiver() = default;
    };

    explicit release_call(std::unique_ptr<pending_release> operation) : own_{std::move(operation)}, operation_{*own_} {}
    explicit release_call(pending_release& lent) noexcept : operation_{lent} {}
    ~release_call() override = default;

    /// Effects: it is the release of the lease of `token`, which was granted.
    void bind(owner_token const& token) noexcept { operation_.bind(token); }

    /// Effects: gives back the lease. Requires: `bind` was called.
    void start(boot_clock::time_point now) noexcept
    {
        begun_ = now;
        operation_.start(*this);
    }

    /// Effects: the same, but no thread waits for the answer. The thread that brings the answer passes `mine` to `of`.
    static void start(std::unique_ptr<release_call> mine, boot_clock::time_point now,
                      std::shared_ptr<receiver> of) noexcept
    {
        mine->receiver_ = std::move(of);
        mine.release()->start(now);
    }

    /// Effects: calls `f` with a release of `key`, which is on the stack.
    template <class F>
    static void lend(lock_store& store, shared_key const& key, F const& f) noexcept
    {
        struct user final : release_user {
            explicit user(F const& of) noexcept : f_{of} {}
            void use(pending_release& one) noexcept override
            {
                release_call call{one};
                f_(call);
            }
            F const& f_;
        } to{f};
        store.lend_release(key, to);
    }

    [[nodiscard]] boot_clock::time_point begun() const noexcept { return begun_; }
    [[nodiscard]] bool others_wait() const noexcept { return operation_.others_wait(); }
    [[nodiscard]] failure outcome() const noexcept
    try {
        return operation_.outcome();
    } catch (std::bad_alloc const&) {
        return {make_error_code(errc::outcome_unknown), {}};
    }

    release_terms terms;

private:
    void complete() noexcept override
    {
        if (auto const of = std::move(receiver_)) return of->released(std::unique_ptr<release_call>{this});
        awaited::complete();
    }

    std::unique_ptr<pending_release> own_;  // null: it is lent
    pending_release& operation_;
    std::shared_ptr<receiver> receiver_;
    boot_clock::time_point begun_{};
};

}  // namespace holdfast::detail
