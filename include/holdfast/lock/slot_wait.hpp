// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/store.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// A wait for the first of several locks: an asynchronous call for each, of which the client's thread tells the
/// results. The first lock that is granted is taken, and the other calls are cancelled. A lock that is granted to one
/// of these is given back at once.
///
/// | a call ends with          | the wait |
/// |---------------------------|----------|
/// | the lock                  | has won, if it is the first; otherwise the lock is given back |
/// | `timed_out`, a cancel     | goes on |
/// | `unavailable`             | goes on if it has a deadline; otherwise it has failed |
/// | another error             | has failed |
class slot_wait : public std::enable_shared_from_this<slot_wait> {
public:
    /// How a wait has ended.
    struct outcome {
        std::optional<std::size_t> slot{};    ///< which lock is held; nothing if none is
        std::error_code code{};               ///< why none is held: `timed_out` if one of them could be asked
        std::optional<std::size_t> failed{};  ///< which lock the code came from, if it is a failure of one
    };

    explicit slot_wait(patience const& p) : limit_{p} {}
    slot_wait(slot_wait const&) = delete;
    slot_wait& operator=(slot_wait const&) = delete;
    ~slot_wait() = default;

    /// Effects: `f` is called, with no lock held, when `settled` may have a result. `f` runs no user code. To be called
    /// before any call is begun. Until `begun` there is no result.
    void tell(std::function<void()> f) { told_ = std::move(f); }

    /// Effects: notes that all calls were begun.
    void begun() noexcept
    {
        {
            std::scoped_lock guard{mutex_};
            beginning_ = false;
        }
        told_();
    }

    /// Effects: the wait has failed with `why`: a call could not be begun.
    void fail(std::error_code why) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (!failed_) failed_ = why;
    }

    /// Effects: if the wait has won or failed, cancels the other calls. Returns: how it has ended, after it has won, or
    /// all calls have ended; once. Not before all were begun.
    [[nodiscard]] std::optional<outcome> settled() noexcept
    {
        std::unique_lock guard{mutex_};
        if (beginning_ || told_of_end_) return std::nullopt;
        bool const over = won_ || pending_ == 0;
        bool const cancels = over || failed_;
        guard.unlock();
        if (cancels) cancel();
        if (!over) return std::nullopt;
        guard.lock();
        if (std::exchange(told_of_end_, true)) return std::nullopt;  // what was cancelled has ended meanwhile
        return result();
    }

    /// Effects: waits for `object`, too, which has the number `slot`. Throws: what `begin_lock` throws, and
    /// `std::bad_alloc`; then that call was not begun.
    void begin(std::size_t slot, std::shared_ptr<lock_object> const& object)
    {
        auto told = result_to([of = shared_from_this(), slot, object](std::error_code ec, bool held) {
            // mutant: two permits granted at once and both kept
            if (held && !of->wins(slot)) object->give_back(object->lease());
            of->ended(slot, ec);
            of->told_();
        });
        change_pending(1);
        try {
            object->begin_lock(limit_, stop_.get_token(), std::move(told));
        } catch (...) {
            change_pending(-1);
            throw;
        }
    }

    /// Returns: whether there is no need to begin more calls.
    [[nodiscard]] bool decided() noexcept
    {
        std::scoped_lock guard{mutex_};
        return won_ || failed_;
    }

    /// Effects: cancels the calls, also those that are begun later. May be called from any thread.
    void cancel() noexcept { stop_.request_stop(); }

private:
    [[nodiscard]] outcome result() const noexcept
    {
        if (won_) return {.slot = won_};  // mutant: a permit that came as the time passed forgotten
        if (failed_) return {.code = failed_, .failed = failed_slot_};
        if (timed_out_) return {.code = make_error_code(errc::timed_out)};
        if (canceled_) return {.code = std::make_error_code(std::errc::operation_canceled)};
        return {.code = make_error_code(errc::unavailable)};
    }

    [[nodiscard]] bool wins(std::size_t slot) noexcept
    {
        std::scoped_lock guard{mutex_};
        if (won_) return false;
        won_ = slot;
        return true;
    }

    /// Effects: notes that the call for `slot` has ended, and that what it was granted is taken or given back.
    void ended(std::size_t slot, std::error_code ec) noexcept
    {
        std::scoped_lock guard{mutex_};
        --pending_;
        bool const outlasts = limit_.deadline != boot_clock::time_point::max();
        if (ec == errc::timed_out) {
            timed_out_ = true;
        } else if (ec == std::errc::operation_canceled) {
            canceled_ = true;
        } else if (ec && !failed_ && !(ec == errc::unavailable && outlasts)) {
            failed_ = ec;
            failed_slot_ = slot;
        }
    }

    void change_pending(std::ptrdiff_t by) noexcept
    {
        std::scoped_lock guard{mutex_};
        pending_ += by;
    }

    patience const limit_;
    std::function<void()> told_;
    bool beginning_ = true;
    bool told_of_end_ = false;
    std::stop_source stop_;
    std::mutex mutex_;
    std::ptrdiff_t pending_ = 0;  // calls that have not ended
    std::optional<std::size_t> won_;
    std::error_code failed_;
    std::optional<std::size_t> failed_slot_;
    bool timed_out_ = false;
    bool canceled_ = false;
};

}  // namespace holdfast::detail
