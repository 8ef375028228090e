// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/backend.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/validity.hpp>
#include <holdfast/memory/data.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::memory {

/// Leases in the memory of this process. Everything is known at once; only acquiring may have to wait.
class backend {
public:
    using key = std::shared_ptr<std::string const>;

    explicit backend(std::shared_ptr<data> d) : data_{std::move(d)} {}

    [[nodiscard]] static key make_key(std::string_view name) { return std::make_shared<std::string const>(name); }
    static void check(std::string_view name, lock_options const& options) { check_options(name, options, std::chrono::milliseconds{0}); }

    [[nodiscard]] std::shared_ptr<data> const& shared() const noexcept { return data_; }

    class acquire_operation;
    class extend_operation;
    class release_operation;

private:
    std::shared_ptr<data> data_;
};

/// | state   | event                                    | next |
/// |---------|------------------------------------------|------|
/// | -       | start: nobody has the lock               | done: granted |
/// | -       | start: otherwise, one attempt only       | done: `timed_out` |
/// | -       | start: otherwise                         | waiting in the store's line |
/// | waiting | a release, or the end of the lease there | done: granted; or waiting where another came first |
/// | waiting | the deadline; cancel                     | done: `timed_out`; `operation_canceled` |
class backend::acquire_operation {
public:
    acquire_operation(backend& b, key name, acquire_request const& request) : data_{b.shared()}, name_{std::move(name)}, request_{request} {}

    acquire_operation(acquire_operation const&) = delete;
    acquire_operation& operator=(acquire_operation const&) = delete;

    ~acquire_operation() { stop_watching(); }

    void start()
    {
        bool const free = attempt();
        if (!free && request_.deadline == boot_clock::time_point::min()) outcome_.emplace(errc::timed_out);
        if (outcome_) return;
        place_ = self_.insert(self_.end(), &bed_);
        data_->watch(*name_, self_);
    }

    bool wait_until(boot_clock::time_point t)
    {
        while (!outcome_) {
            if (attempt()) break;
            auto const now = boot_clock::now();
            if (canceled_.load(std::memory_order_acquire))
                outcome_.emplace(std::make_error_code(std::errc::operation_canceled));
            else if (now >= request_.deadline)
                outcome_.emplace(errc::timed_out);
            else if (now >= t)
                return false;
            else
                bed_.park_until(std::min({t, request_.deadline, lease_ends_}));
        }
        stop_watching();
        return true;
    }

    void cancel() noexcept
    {
        canceled_.store(true, std::memory_order_release);
        bed_.unpark();
    }

    [[nodiscard]] result<grant> outcome() const { return *outcome_; }

private:
    bool attempt()
    {
        auto const sent = boot_clock::now();
        auto const token = owner_token::fresh();
        auto const got = data_->acquire(*name_, token, request_.fences, sent, sent + request_.ttl);
        lease_ends_ = got.expires;
        if (!got.granted) return false;
        auto const first = request_.fences == 0 ? 0 : got.last_fence - request_.fences + 1;
        outcome_.emplace(grant{.token = token, .valid_until = valid_until(sent, request_.ttl), .fence = first, .fences = request_.fences});
        return true;
    }

    void stop_watching()
    {
        if (place_) data_->unwatch(*name_, *place_, self_);
        place_.reset();
    }

    std::shared_ptr<data> data_;
    key name_;
    acquire_request request_;
    std::optional<result<grant>> outcome_;
    holdfast::detail::parker bed_;
    data::waiters self_;
    std::optional<data::waiters::iterator> place_;
    boot_clock::time_point lease_ends_{};
    std::atomic<bool> canceled_{false};
};

class backend::extend_operation {
public:
    extend_operation(backend& b, key name, owner_token const& token, std::chrono::milliseconds ttl)
        : data_{b.shared()}, name_{std::move(name)}, token_{token}, ttl_{ttl}
    {
    }

    void start()
    {
        sent_ = boot_clock::now();
        extended_ = data_->extend(*name_, token_, sent_, sent_ + ttl_);
    }

    [[nodiscard]] static bool wait_until(boot_clock::time_point) noexcept { return true; }

    [[nodiscard]] result<boot_clock::time_point> outcome() const
    {
        if (extended_) return valid_until(sent_, ttl_);
        return errc::lease_lost;
    }

private:
    std::shared_ptr<data> data_;
    key name_;
    owner_token token_;
    std::chrono::milliseconds ttl_;
    boot_clock::time_point sent_{};
    bool extended_ = false;
};

class backend::release_operation {
public:
    release_operation(backend& b, key name, owner_token const& token) : data_{b.shared()}, name_{std::move(name)}, token_{token} {}

    void start() { released_ = data_->release(*name_, token_, boot_clock::now()); }
    [[nodiscard]] static bool wait_until(boot_clock::time_point) noexcept { return true; }
    [[nodiscard]] std::error_code outcome() const noexcept { return released_ ? std::error_code{} : make_error_code(errc::not_owner); }

private:
    std::shared_ptr<data> data_;
    key name_;
    owner_token token_;
    bool released_ = false;
};

static_assert(Backend<backend>);

}  // namespace holdfast::memory
