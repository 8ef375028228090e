// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/asio/async_guard.hpp>
#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/linked_line.hpp>

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// The handler of an asynchronous call, and the executor that will run it.
class pending_handler {
public:
    pending_handler() = default;
    pending_handler(pending_handler const&) = delete;
    pending_handler& operator=(pending_handler const&) = delete;

    /// Effects: gives the handler with its result to its executor, and destroys this. `hold` is what was granted. The
    /// handler owns it, or what is destroyed in its place.
    virtual void complete(std::error_code ec, async_guard hold) = 0;

    /// Effects: destroys the handler, which is not called, and this.
    virtual void destroy() noexcept = 0;

    std::stop_source stop;            ///< cancels the call
    pending_handler* next = nullptr;  ///< in the list of those that end together

protected:
    ~pending_handler() = default;
};

class pending_calls;

/// Passes the result of an asynchronous call from the client's thread to a handler that belongs to an execution
/// context. The context may end before.
class async_call final : public async_result {
public:
    /// Effects: `handler` will be told the result, unless its context ends before.
    async_call(std::shared_ptr<pending_calls> among, std::shared_ptr<async_object> object, pending_handler& handler);
    ~async_call() override;

    /// Returns: whether the handler will be told; false: its context was being destroyed when this was made.
    [[nodiscard]] bool tells() const noexcept { return tells_; }

    void deliver(std::error_code ec, bool held) noexcept override;

private:
    friend class pending_calls;
    friend class linked_line<async_call>;

    std::shared_ptr<pending_calls> const among_;
    std::shared_ptr<async_object> const object_;

    // Guarded by the mutex of `among_`.
    pending_handler* handler_;  // null: it was told, or its context has ended
    async_call* previous = nullptr;
    async_call* next = nullptr;

    bool const tells_;  // set last: the others are used for that
};

/// The calls that are pending in one execution context. An executor is not used after its context has ended: the end of
/// the context waits for the client's threads that are just giving a handler to an executor. It takes the handlers of
/// all other calls, which are cancelled.
class pending_calls {
public:
    /// Effects: to be called when the context ends. What calls were or will be granted is given back. In a forked child
    /// only the handlers are destroyed: the calls are the parent's, and so are the threads that might be waited for.
    void shut_down() noexcept
    {
        bool const in_child = origin_.in_child();
        pending_handler* ended = nullptr;
        {
            std::unique_lock guard{mutex_, std::defer_lock};
            // One that was locked during the fork stays so, with the line half changed: its handlers are leaked.
            if (in_child && !guard.try_lock()) return;
            if (!in_child) guard.lock();
            shut_ = true;
            while (auto* const first = line_.first()) {
                auto* const handler = std::exchange(first->handler_, nullptr);
                line_.remove(*first);
                handler->next = std::exchange(ended, handler);
            }
            if (!in_child) idle_.wait(guard, [this] { return delivering_ == 0; });
        }
        while (ended) {
            auto* const one = std::exchange(ended, ended->next);
            if (!in_child) one->stop.request_stop();
            one->destroy();
        }
    }

private:
    friend class async_call;

    /// Effects: `one` is pending, or has no handler if the context is ending. Returns: whether it is pending.
    [[nodiscard]] bool join(async_call& one)
    {
        std::scoped_lock guard{mutex_};
        if (shut_)
            one.handler_ = nullptr;
        else
            line_.add(one);
        return !shut_;
    }

    /// Returns: the handler of `one`, whose context does not end before `delivered()`; null if the context has ended.
    [[nodiscard]] pending_handler* claim(async_call& one) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (!one.handler_) return nullptr;
        line_.remove(one);
        ++delivering_;
        return std::exchange(one.handler_, nullptr);
    }

    void delivered() noexcept
    {
        std::scoped_lock guard{mutex_};
        if (--delivering_ == 0) idle_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable idle_;
    linked_line<async_call> line_;
    std::size_t delivering_ = 0;
    bool shut_ = false;
    fork_guard const origin_;
};

inline async_call::async_call(std::shared_ptr<pending_calls> among, std::shared_ptr<async_object> object,
                              pending_handler& handler)
    : among_{std::move(among)}, object_{std::move(object)}, handler_{&handler}, tells_{among_->join(*this)}
{
}

/// A call that still has its handler was not begun: the caller tells the handler.
inline async_call::~async_call()
{
    std::scoped_lock guard{among_->mutex_};
    if (handler_) among_->line_.remove(*this);
}

inline void async_call::deliver(std::error_code ec, bool held) noexcept
{
    auto* const handler = among_->claim(*this);
    auto hold = held ? async_access::guard(object_) : async_guard{};
    if (!handler) return;  // no user was told of it
    handler->complete(ec, std::move(hold));
    among_->delivered();
}

}  // namespace holdfast::detail
