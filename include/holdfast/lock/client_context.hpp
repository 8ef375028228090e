// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/make_as.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/shared_object.hpp>
#include <holdfast/core/slot_source.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/client_parts.hpp>
#include <holdfast/lock/inspection.hpp>
#include <holdfast/lock/mutex_object.hpp>
#include <holdfast/lock/queue_table.hpp>
#include <holdfast/lock/report.hpp>
#include <holdfast/lock/shared_holds.hpp>
#include <holdfast/lock/slot_semaphore.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::detail {

/// What the locks of one client share: the store, the thread that renews their leases, and one queue for each name. The
/// program's handles own it, and nothing else: those of the store, and each lock. The client ends with the last of
/// them. The end waits for the user functions that the client's threads run, unless a user function of any client is
/// the caller.
class client_context final : public lock_factory, public std::enable_shared_from_this<client_context> {
public:
    explicit client_context(std::shared_ptr<lock_store> store)
        : queues_{std::make_shared<queue_table>(std::make_shared<client_parts>(std::move(store)))}
    {
        parts().store->on_loss([of = std::weak_ptr{parts().renews}] {
            if (auto const one = of.lock()) one->alarm();
        });
        parts().store->on_unfinished([of = std::weak_ptr{parts().renews}] {
            if (auto const one = of.lock()) one->finish_later();
        });
    }
    ~client_context() override { parts().renews->end(); }

    [[nodiscard]] bool in_child() const noexcept { return parts().origin.in_child(); }

    [[nodiscard]] std::shared_ptr<lock_object> make_mutex(std::string_view name, lock_options options) override
    {
        check_name(name);
        if (in_child()) throw made_before_fork(name);
        return make_mutex(store().make_key(name), std::move(options));
    }

    [[nodiscard]] shared_sides make_shared_mutex(std::string_view name, lock_options const& options) override
    {
        return make_sides([self = shared_from_this(), name = std::string{name}, options](access mode) {
            check_name(name);
            if (self->in_child()) throw made_before_fork(name);
            return self->make_shared_mutex(self->store().make_shared_key(name, mode), options);
        });
    }

    /// Returns: both sides of a `shared_mutex`, with holds of each mode that `make` makes.
    [[nodiscard]] static shared_sides make_sides(std::function<std::shared_ptr<lock_object>(access)> make)
    {
        std::shared_ptr<lock_object> exclusive = make(access::exclusive);
        return {std::move(exclusive),
                std::make_shared<shared_holds>([make = std::move(make)] { return make(access::shared); })};
    }

    /// Returns: what takes one mode of the `shared_mutex` of `key`, which the store has made. Each object for the
    /// shared mode has a lease of its own. Throws: `error` (`misconfigured`).
    [[nodiscard]] std::shared_ptr<lock_object> make_shared_mutex(shared_key key, lock_options options)
    {
        if (options.min_hold.count() != 0)
            throw error_of(key->name(), {make_error_code(errc::misconfigured), "min_hold is not for a shared_mutex"});
        if (options.fair)
            throw error_of(key->name(), {make_error_code(errc::misconfigured),
                                         "fair is not for a shared_mutex: readers and writers take turns"});
        options.max_local_handoffs = 0;  // a writer that went ahead of readers would do so for many sections
        return make_mutex(std::move(key), std::move(options));
    }

    /// Returns: what takes the lock of `key`, which the store has made. Throws: `error` (`misconfigured`).
    [[nodiscard]] std::shared_ptr<lock_object> make_mutex(shared_key key, lock_options options)
    {
        if (in_child()) throw made_before_fork(key->name());
        check_options(key->name(), options, store().refused_lease(*key, options.ttl));
        if (options.stop_margin.count() != 0)
            check_time(key->name(), "stop_margin", options.stop_margin,
                       store().refused_margin(*key, options.ttl, options.stop_margin));
        if (options.min_hold > options.ttl)
            check_time(key->name(), "min_hold", options.min_hold, store().refused_lease(*key, options.min_hold));
        if (options.fair) put_in_order(*key, options);
        return std::make_shared<mutex_object>(queues_, std::move(key), shared_from_this(),
                                              shared_options(std::move(options)));
    }

    [[nodiscard]] std::shared_ptr<semaphore_object> make_semaphore(std::string_view name, std::ptrdiff_t max,
                                                                   lock_options const& options) override
    {
        return std::make_shared<slot_semaphore>(
            name, max,
            [self = shared_from_this(), options](semaphore_slot const& of) { return self->make_slots(of, options); });
    }

    /// Returns: what makes the slots of the semaphore `of.semaphore`, of `of.permits`.
    [[nodiscard]] std::unique_ptr<slot_source> make_slots(semaphore_slot const& of, lock_options options)
    {
        return make_slots(
            of, store().make_key(turn_of(of)), [this](semaphore_slot const& one) { return store().make_slot_key(one); },
            std::move(options));
    }

    /// As above, with keys that `make_key` makes.
    [[nodiscard]] std::unique_ptr<slot_source>
    make_slots(semaphore_slot of, shared_key turn, std::function<shared_key(semaphore_slot const&)> const& make_key,
               lock_options options)
    {
        if (in_child()) throw made_before_fork(of.semaphore);  // first: the store's mutex may be locked for ever
        std::vector<shared_key> keys;
        for (of.slot = 0; of.slot < of.permits; ++of.slot) keys.push_back(make_key(of));
        return make_as<slot_source, own_slots>(shared_from_this(), std::move(keys), std::move(turn),
                                               store().use_semaphore(of), std::move(options));
    }

    /// Returns: the name of the lock of who collects several permits of a semaphore.
    [[nodiscard]] static std::string turn_of(semaphore_slot const& of) { return std::string{of.semaphore} + "#batch"; }

    [[nodiscard]] lock_stats stats() const override { return parts().reports.seen.stats(); }
    void observe(lock_observer f) override { parts().reports.seen.observe(std::move(f)); }

    [[nodiscard]] lock_report inspect(std::string_view name, report_of what) override
    {
        return operators(name).inspect(store().make_key(name), what);
    }
    bool force_release(std::string_view name) override { return operators(name).force_release(store().make_key(name)); }
    bool request_release(std::string_view name) override
    {
        return operators(name).request_release(store().make_key(name));
    }
    [[nodiscard]] std::vector<std::string> list(std::string_view prefix) override
    {
        if (in_child()) throw made_before_fork({});
        return inspection{store()}.list(prefix);
    }

private:
    /// The slots of one semaphore, and the lock of who collects several permits.
    class own_slots final : public slot_source {
    public:
        own_slots(std::shared_ptr<client_context> of, std::vector<shared_key> keys, shared_key turn,
                  std::shared_ptr<void const> use, lock_options options)
            : of_{std::move(of)},
              keys_{std::move(keys)},
              turn_{std::move(turn)},
              use_{std::move(use)},
              options_{std::move(options)}
        {
        }

        [[nodiscard]] std::shared_ptr<lock_object> make_slot(std::size_t slot) override
        {
            return of_->make_mutex(keys_.at(slot), options_);
        }
        [[nodiscard]] std::shared_ptr<lock_object> make_turn() override
        {
            auto of_turn = options_;  // who collects permits keeps the turn for as long as that takes
            of_turn.renew = true;
            of_turn.max_hold.reset();
            of_turn.min_hold = std::chrono::milliseconds{0};
            return of_->make_mutex(turn_, std::move(of_turn));
        }
        [[nodiscard]] std::size_t held() override { return inspection{of_->store()}.count_held(keys_); }
        void resize() override
        {
            inspection{of_->store()}.resize(keys_.front(), std::max(options_.ttl, options_.min_hold));
        }

    private:
        std::shared_ptr<client_context> const of_;
        std::vector<shared_key> const keys_;
        shared_key const turn_;
        std::shared_ptr<void const> const use_;
        lock_options const options_;
    };

    [[nodiscard]] client_parts& parts() const noexcept { return queues_->client(); }
    [[nodiscard]] lock_store& store() const noexcept { return *parts().store; }

    [[nodiscard]] inspection operators(std::string_view name) const
    {
        check_name(name);
        if (in_child()) throw made_before_fork(name);
        return inspection{store()};
    }

    /// Effects: `options`, which are fair, hand no lease on. Throws: `error` (`misconfigured`).
    void put_in_order(lock_key const& key, lock_options& options) const
    {
        if (auto const why = store().refused_order(key); !why.empty())
            throw error_of(key.name(), {make_error_code(errc::misconfigured), "fair is set, " + why});
        options.max_local_handoffs = 0;
    }

    /// Returns: `options`; locks that are made one after the other with the same options share their memory, unless
    /// there is a function in them: those cannot be compared, and what it refers to may end before the client.
    [[nodiscard]] std::shared_ptr<lock_options const> shared_options(lock_options options)
    {
        if (options.on_error) return std::make_shared<lock_options const>(std::move(options));
        std::scoped_lock guard{mutex_};
        if (!options_ || !same(*options_, options)) options_ = std::make_shared<lock_options const>(std::move(options));
        return options_;
    }

    /// Returns: whether the options are the same. Requires: neither has a function.
    [[nodiscard]] static bool same(lock_options const& a, lock_options const& b) noexcept
    {
        auto const& [ttl, renew, stop_margin, max_hold, min_hold, fencing, handoffs, fair, deferred, retry, patience,
                     on_error] = a;
        static_cast<void>(on_error);
        return ttl == b.ttl && renew == b.renew && stop_margin == b.stop_margin && max_hold == b.max_hold &&
               min_hold == b.min_hold && fencing == b.fencing && handoffs == b.max_local_handoffs && fair == b.fair &&
               deferred == b.deferred_release && retry.first == b.retry.first && retry.most == b.retry.most &&
               patience == b.unavailable_after;
    }

    std::shared_ptr<queue_table> const queues_;
    std::mutex mutex_;
    std::shared_ptr<lock_options const> options_;  // of the lock that was made last
};

}  // namespace holdfast::detail
