// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/lock/domain.hpp>
#include <holdfast/lock/local_queue.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/several_locks.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace holdfast {

template <class B>
basic_mutex<B>::basic_mutex(std::shared_ptr<detail::domain<B>> const& domain, std::string_view name, lock_options options)
{
    static_assert(Backend<B>);
    check_name(name);
    queue_ = domain->queue(name);
    domain->backend().check(name, options);
    owner_.options = std::make_shared<lock_options const>(std::move(options));
}

template <class B>
basic_mutex<B>::~basic_mutex()
{
    if (queue_->hold_of(owner_)) unlock();
}

template <class B>
void basic_mutex<B>::unlock() noexcept
{
    auto const queue = queue_;
    auto const options = owner_.options;
    detail::several_locks::of_this_thread().gave_back(queue.get());
    if (auto const why = queue->release(owner_); why.code) queue->reports().unlock_failed(*options, queue->name(), why);
}

template <class B>
void basic_mutex<B>::unlock(std::error_code& ec) noexcept
{
    auto const queue = queue_;
    detail::several_locks::of_this_thread().gave_back(queue.get());
    ec = queue->release(owner_).code;
}

template <class B>
bool basic_mutex<B>::extend(std::chrono::milliseconds ttl, std::error_code& ec)
{
    auto const queue = queue_;  // who hears of a loss may destroy this
    if (queue->in_child()) {    // before anything that may be locked there for ever
        ec = make_error_code(errc::not_owner);
        return false;
    }
    bool possible = ttl.count() > 0 && ttl <= longest_ttl && can_be_held(ttl);
    if constexpr (requires(B& backend) { backend.refused_lease(ttl); }) possible = possible && queue->backend().refused_lease(ttl).empty();
    ec = possible ? queue->extend(owner_, ttl) : make_error_code(errc::misconfigured);
    return !ec;
}

template <class B>
void basic_mutex<B>::extend(std::chrono::milliseconds ttl)
{
    auto const queue = queue_;
    std::error_code ec;
    if (extend(ttl, ec)) return;
    std::string why = ec == make_error_code(errc::misconfigured) ? ", which cannot be a ttl here" : "";
    if constexpr (requires(B& backend) { backend.refused_lease(ttl); })
        if (auto refused = queue->backend().refused_lease(ttl); !why.empty() && !refused.empty()) why = ", " + std::move(refused);
    throw detail::error_of(queue->name(), {ec, "extend to " + std::to_string(ttl.count()) + " ms" + why});
}

template <class B>
lease basic_mutex<B>::lease() const
{
    return holdfast::lease{queue_->hold_of(owner_)};
}

template <class B>
std::string const& basic_mutex<B>::name() const noexcept
{
    return queue_->name();
}

template <class B>
bool basic_mutex<B>::acquire(boot_clock::time_point deadline, std::stop_token const& stop)
{
    if (stop.stop_requested()) return false;
    if (queue_->in_child())
        throw detail::error_of(name(), {make_error_code(errc::misconfigured), "its client was made before fork(); make one in the child"});
    auto& thread = detail::several_locks::of_this_thread();
    bool const once = deadline == boot_clock::time_point::min();
    if (auto const rest = once ? boot_clock::duration{} : thread.rest(); rest.count() > 0)
        std::this_thread::sleep_for(std::min(rest, deadline - boot_clock::now()));
    auto const why = queue_->acquire(owner_, deadline, stop);
    detail::report_servers(queue_->backend(), *owner_.options);
    detail::report_remark(queue_->backend(), queue_->key(), *owner_.options, name());
    if (!why) {
        thread.granted(queue_.get(), this);
        return true;
    }
    if (once && why->code == errc::timed_out && thread.refused(queue_.get(), this))
        detail::report(*owner_.options, name(),
                       {make_error_code(errc::misconfigured),
                        "two lock objects of this name are taken together, by std::scoped_lock or std::lock; they are one lock, so that "
                        "never succeeds: take one of them"});
    if (why->code == errc::timed_out || why->code == std::errc::operation_canceled) return false;
    throw detail::error_of(name(), *why);
}

}  // namespace holdfast
