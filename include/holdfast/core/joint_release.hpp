// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Gives several locks back at once, and waits for all outcomes.
class joint_release : public std::enable_shared_from_this<joint_release> {
public:
    /// Effects: gives back `one`.
    void begin(lock_object& one) noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            ++pending_;
        }
        try {
            one.begin_unlock(one.lease(), result_to(shared_from_this(), &joint_release::answered));
        } catch (...) {  // without the means to do so in the background
            std::error_code why;
            one.unlock(why);
            answered(why, false);
        }
    }

    /// Effects: gives back `all`, and waits. Returns: as `wait`; `not_owner` if there is none.
    [[nodiscard]] std::error_code give_back(held_slots const& all) noexcept
    {
        for (auto const& one : all) begin(*one.lock);
        return all.empty() ? make_error_code(errc::not_owner) : wait();
    }

    /// Effects: waits for all. Returns: no error; `lease_lost` if one was lost; otherwise why the outcome of one is not
    /// known.
    [[nodiscard]] std::error_code wait() noexcept
    {
        std::unique_lock guard{mutex_};
        changed_.wait(guard, [this] { return pending_ == 0; });
        return worst_;
    }

private:
    void answered(std::error_code ec, bool /*held*/) noexcept
    {
        std::scoped_lock guard{mutex_};
        worst_ = worse(worst_, ec);
        --pending_;
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    int pending_ = 0;
    std::error_code worst_;
};

}  // namespace holdfast::detail
