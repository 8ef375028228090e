// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/async_object.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/joint_object.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Several locks, in the order in which they are taken. Some may be one, although their addresses differ: clients can
/// name one server differently. Such twins have the same name at their servers. One that is refused is not waited for
/// before it is known that the lease of its twin is not in the way: it would wait for itself.
///
/// | an attempt at a lock, while its twin is held | next |
/// |---|---|
/// | granted | held: they are two locks |
/// | refused; the servers of both say that one lease has both | fails: they are one lock |
/// | refused; another lease has it | waits, as for any lock |
/// | refused; the servers do not say now | waits for a second, and is asked about again |
/// | unavailable | the same, for as long as `lock()` would wait out an outage |
class ordered_locks {
public:
    /// `locks`: in the order of their addresses.
    explicit ordered_locks(std::vector<std::shared_ptr<lock_object>> locks) : locks_{std::move(locks)}
    {
        std::string last;
        for (std::size_t i = 0; i < locks_.size(); ++i) {
            auto name = locks_[i]->address();
            name.resize(std::min(name.find('\0'), name.size()));
            first_.push_back(i > 0 && name == last ? first_.back() : i);
            last = std::move(name);
            objects_.push_back(locks_[i].get());
        }
    }

    [[nodiscard]] std::vector<std::shared_ptr<lock_object>> const& all() const noexcept { return locks_; }

    /// Effects: one attempt at all of them by one request, if their store has that and `p` leaves the time.
    [[nodiscard]] joint_outcome try_lock_all(patience const& p, std::stop_token const& stop) const
    {
        bool const in_time = p.once || boot_clock::now() < p.deadline;
        constexpr std::size_t most = 256;  // for one answer
        if (objects_.size() < 2 || objects_.size() > most || !in_time) return {};
        return objects_.front()->try_lock_all(objects_, p, stop);
    }

    /// Effects: takes the lock at `place`; those before it are held. Returns: whether it is held. Throws: as
    /// `try_lock`.
    [[nodiscard]] bool lock(std::size_t place, patience const& p, std::stop_token const& stop) const
    {
        auto const got = may_be_held(place) ? try_lock(place, p, stop) : std::nullopt;
        return got ? *got : objects_[place]->lock(p, stop);
    }

    /// Returns: whether the lock at `place` may be one of those before it.
    [[nodiscard]] bool may_be_held(std::size_t place) const noexcept { return first_[place] != place; }

    /// Effects: attempts to take the lock at `place`, as above. Returns: whether it is held; nothing if it is to be
    /// waited for. Throws: as `lock_object::lock`; `resource_deadlock_would_occur` if it is one of those before it.
    [[nodiscard]] std::optional<bool> try_lock(std::size_t place, patience const& p, std::stop_token const& stop) const
    {
        auto& one = *locks_[place];
        auto attempt = p;
        attempt.once = true;
        for (auto answered = boot_clock::now();;) {
            try {
                if (one.lock(attempt, stop)) return true;
                answered = boot_clock::now();
                if (stop.stop_requested() || (!p.once && answered >= p.deadline)) return false;
                auto const own = is_held_before(place);
                if (own == true) throw one_lock(one.name());
                if (p.once) return false;
                if (own) return std::nullopt;
            } catch (error const& e) {
                if (e.code() != errc::unavailable || p.once || boot_clock::now() >= outage_ends(one, p, answered))
                    throw;
            }
            attempt.once = false;
            attempt.deadline = std::min(p.deadline, boot_clock::now() + std::chrono::seconds{1});
        }
    }

private:
    [[nodiscard]] static error one_lock(std::string const& name)
    {
        return error_of(name, {std::make_error_code(std::errc::resource_deadlock_would_occur),
                               "another lock of this multi_mutex has it: the clients of both lead to the same server "
                               "by different names; give one of the two, or name the server alike"});
    }

    /// A store judges an outage within one request. Here each lasts a second at most, as the twin is asked about again.
    [[nodiscard]] static boot_clock::time_point outage_ends(lock_object const& one, patience const& p,
                                                            boot_clock::time_point answered)
    {
        bool const limited = p.deadline != boot_clock::time_point::max();
        return limited ? p.deadline : saturating_add(answered, one.unavailable_after());
    }

    /// Returns: whether what has the lock at `place` is the lease of one of those before it; nothing if the servers do
    /// not say that now; false if they never do.
    [[nodiscard]] std::optional<bool> is_held_before(std::size_t place) const
    try {
        auto const lease = locks_[place]->inspect().lease;
        auto const has_it = [&](auto const& twin) {
            return twin->inspect().lease == lease && twin->lease().still_held();
        };
        auto const at = [&](std::size_t i) { return locks_.begin() + static_cast<std::ptrdiff_t>(i); };
        return !lease.empty() && std::any_of(at(first_[place]), at(place), has_it);
    } catch (error const& e) {
        if (e.code() == errc::misconfigured) return false;
        return std::nullopt;
    }

    std::vector<std::shared_ptr<lock_object>> const locks_;
    std::vector<lock_object*> objects_;
    std::vector<std::size_t> first_;  // for each, the place of the first that has its name
};

}  // namespace holdfast::detail
