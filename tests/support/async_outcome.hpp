// SPDX-License-Identifier: MIT
#pragma once

#include "eventually.hpp"

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::test {

/// What an asynchronous call of a lock has told. Thread-safe.
class async_outcome {
public:
    /// Returns: a function to be told; `then` is called by it first.
    [[nodiscard]] auto hears(std::function<void()> then = {}) const { return hearer{state_, std::move(then)}; }

    /// Returns: whether it was told, sooner or later.
    [[nodiscard]] bool comes() const
    {
        return eventually([this] { return told(); });
    }
    [[nodiscard]] bool told() const { return calls() != 0; }

    [[nodiscard]] int calls() const
    {
        std::scoped_lock const guard{state_->mutex};
        return state_->calls;
    }
    /// Returns: what it was told. Requires: it was.
    [[nodiscard]] std::error_code code() const
    {
        std::scoped_lock const guard{state_->mutex};
        return state_->code.value();
    }
    [[nodiscard]] bool held() const
    {
        std::scoped_lock const guard{state_->mutex};
        return state_->held.value();
    }
    /// Returns: by which thread.
    [[nodiscard]] std::thread::id by() const
    {
        std::scoped_lock const guard{state_->mutex};
        return state_->by;
    }

private:
    struct state {
        std::mutex mutex;
        int calls = 0;
        std::optional<std::error_code> code;
        std::optional<bool> held;
        std::thread::id by;
    };

    struct hearer {
        void operator()(std::error_code ec) const { tell(ec, !ec); }
        void operator()(std::error_code ec, bool held) const { tell(ec, held); }

        void tell(std::error_code ec, bool held) const
        {
            if (then) then();
            std::scoped_lock const guard{of->mutex};
            ++of->calls;
            of->code = ec;
            of->held = held;
            of->by = std::this_thread::get_id();
        }

        std::shared_ptr<state> of;
        std::function<void()> then;
    };

    std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace holdfast::test
