// SPDX-License-Identifier: MIT
//
// Handlers, and the execution contexts that they belong to, for one of the two Asios. <holdfast/asio.hpp> and
// <holdfast/boost_asio.hpp> include this file, each once: so it has no #pragma once. HOLDFAST_ASIO is the namespace of
// the Asio, HOLDFAST_ASIO_SCOPE our namespace for it: everything here has a different name for each Asio.

namespace holdfast::inline HOLDFAST_ABI::detail::HOLDFAST_ASIO_SCOPE {

namespace net = HOLDFAST_ASIO;
using error_code = decltype(make_error_code(net::error::operation_aborted));

struct any_initiation {
    template <class... Args>
    void operator()(Args&&...) const;
};

/// A completion token of this Asio: a handler; a token that begins an operation in its own way; or one, like
/// `use_future`, that is made into a handler. (Asio's own concept takes the tokens of the other Asio, too.)
template <class Token, class Signature, class Result = net::async_result<std::decay_t<Token>, Signature>>
concept token_for = net::completion_token_for<Token, Signature> && (requires(Token&& token, any_initiation begin) {
                        Result::initiate(begin, std::forward<Token>(token));
                    } || !std::is_same_v<typename Result::completion_handler_type, std::decay_t<Token>>);

/// Knows the calls that are pending in an execution context, and ends them when it is destroyed.
class pending_service : public net::execution_context::service {
public:
    static inline net::execution_context::id id;

    explicit pending_service(net::execution_context& owner) : net::execution_context::service{owner} {}
    [[nodiscard]] std::shared_ptr<pending_calls> const& calls() const noexcept { return calls_; }

private:
    void shutdown() override
    {
        for (auto const& calls : of_parents_) calls->shut_down();
        calls_->shut_down();
    }

    /// In a child, a lock that another thread of the parent had during the fork is never free again.
    void notify_fork(net::execution_context::fork_event event) override
    {
        if (event != net::execution_context::fork_child) return;
        of_parents_.push_back(calls_);
        calls_ = std::make_shared<pending_calls>();
    }

    std::shared_ptr<pending_calls> calls_ = std::make_shared<pending_calls>();
    std::vector<std::shared_ptr<pending_calls>>
        of_parents_;  // what was pending when this child, or one before, was forked
};

/// Returns: the calls of the context of `executor`.
template <class Executor>
[[nodiscard]] std::shared_ptr<pending_calls> calls_of(Executor const& executor)
{
    if constexpr (net::can_query_v<Executor, net::execution::context_t>) {
        net::execution_context& context = net::query(executor, net::execution::context);
        return net::use_service<pending_service>(context).calls();
    } else if constexpr (requires { executor.context(); }) {  // an executor of the Networking TS
        net::execution_context& context = executor.context();
        return net::use_service<pending_service>(context).calls();
    } else {
        static_assert(sizeof(Executor) == 0, "the handler's executor does not tell its context: use bind_executor");
    }
}

/// Returns: `ec` as an error code of this Asio: its category stays. A cancellation becomes Asio's own code for it.
[[nodiscard]] inline error_code translated(std::error_code ec)
{
    if (ec == std::errc::operation_canceled) return net::error::operation_aborted;
    return ec;
}

// How a handler is told the result of a call; `ec` is `timed_out` if the time passed.

struct tells_error {
    using signature = void(error_code);

    template <class Handler>
    static void tell(Handler handler, std::error_code ec, async_guard hold)
    {
        hold.release();
        std::move(handler)(translated(ec));
    }
};

struct tells_held {
    using signature = void(error_code, bool);

    template <class Handler>
    static void tell(Handler handler, std::error_code ec, async_guard hold)
    {
        bool const held = hold.owns_lock();
        hold.release();
        std::move(handler)(translated(ec == errc::timed_out ? std::error_code{} : ec), held);
    }
};

struct tells_guard {
    using signature = void(error_code, async_guard);

    template <class Handler>
    static void tell(Handler handler, std::error_code ec, async_guard hold)
    {
        std::move(handler)(translated(ec == errc::timed_out ? std::error_code{} : ec), std::move(hold));
    }
};

/// A handler that waits for its result, in memory of its associated allocator, and outstanding work of its executor.
template <class Tells, class Handler>
class pending final : public pending_handler {
public:
    using executor_type = net::associated_executor_t<Handler>;
    using allocator_type =
        typename std::allocator_traits<net::associated_allocator_t<Handler>>::template rebind_alloc<pending>;

    /// Requires: made by `make`.
    pending(Handler&& handler, executor_type const& executor) : handler_{std::move(handler)}, work_{executor} {}

    [[nodiscard]] static pending& make(Handler handler, executor_type const& executor)
    {
        allocator_type memory{net::get_associated_allocator(handler)};
        auto* const place = std::allocator_traits<allocator_type>::allocate(memory, 1);
        try {
            return *std::construct_at(std::to_address(place), std::move(handler), executor);
        } catch (...) {
            std::allocator_traits<allocator_type>::deallocate(memory, place, 1);
            throw;
        }
    }

    void complete(std::error_code ec, async_guard hold) override;

    void destroy() noexcept override
    {
        auto const work = std::move(work_);
        std::optional<Handler> last;  // the memory may be the handler's
        try {
            last.emplace(std::move(handler_));
        } catch (...) {  // NOLINT(bugprone-empty-catch): its move is a copy, which has failed
        }
        free(last ? *last : handler_);
    }

    [[nodiscard]] Handler& handler() noexcept { return handler_; }

    /// Effects: destroys this, in memory of the allocator of `handler`.
    void free(Handler const& handler) noexcept
    {
        allocator_type memory{net::get_associated_allocator(handler)};
        this->~pending();
        std::allocator_traits<allocator_type>::deallocate(memory, this, 1);
    }

private:
    ~pending() = default;

    Handler handler_;
    net::executor_work_guard<executor_type> work_;
};

/// What an executor is given: the handler, where it waits, with its result. So the handler is moved by its executor
/// alone: its move may copy, throw, or destroy what belongs to the user. If this is destroyed without having been
/// called, the lock is given back.
template <class Tells, class Handler>
class told_handler {
public:
    using allocator_type = net::associated_allocator_t<Handler>;

    told_handler(pending<Tells, Handler>& waits, std::error_code ec, async_guard hold)
        : waits_{&waits}, memory_{net::get_associated_allocator(waits.handler())}, ec_{ec}, hold_{std::move(hold)}
    {
    }
    told_handler(told_handler&&) noexcept = default;
    told_handler& operator=(told_handler&&) = delete;
    ~told_handler() { hold_.give_back(); }  // before the handler, which may own the mutex

    [[nodiscard]] allocator_type get_allocator() const noexcept { return memory_; }

    void operator()()
    {
        auto handler = std::move(waits_->handler());
        waits_.release()->free(handler);  // before the call of the handler, which may need as much memory again
        if (hold_ && origin_.in_child()) {
            ec_ = make_error_code(errc::misconfigured);
            async_access::forget(hold_);  // it is the parent's
        }
        if (hold_ && !reach_user(*async_access::of(hold_), hold_.lease(), ec_)) async_access::forget(hold_);
        Tells::tell(std::move(handler), ec_, std::move(hold_));
    }

private:
    struct destroyer {
        void operator()(pending_handler* one) const noexcept { one->destroy(); }
    };

    std::unique_ptr<pending<Tells, Handler>, destroyer> waits_;
    allocator_type memory_;
    std::error_code ec_;
    async_guard hold_;
    fork_guard origin_;
};

template <class Tells, class Handler>
void pending<Tells, Handler>::complete(std::error_code ec, async_guard hold)
{
    auto const work = std::move(work_);
    net::post(work.get_executor(), told_handler<Tells, Handler>{*this, ec, std::move(hold)});
}

}  // namespace holdfast::detail::HOLDFAST_ASIO_SCOPE
