// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lock_holder.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/semaphore_slot.hpp>
#include <holdfast/core/sweep_pace.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/zookeeper/acquire_operation.hpp>
#include <holdfast/zookeeper/contenders_operation.hpp>
#include <holdfast/zookeeper/count_operation.hpp>
#include <holdfast/zookeeper/extend_operation.hpp>
#include <holdfast/zookeeper/list_operation.hpp>
#include <holdfast/zookeeper/node_key.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/permit_operation.hpp>
#include <holdfast/zookeeper/release_operation.hpp>
#include <holdfast/zookeeper/resize_operation.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_lease.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The locks of one session. The threads of the C client and of the session serve all operations: a caller that waits
/// only sleeps.
class session_store final : public lock_store {
public:
    explicit session_store(std::shared_ptr<session_core> in) : session_{std::move(in)} {}

    [[nodiscard]] session_core& session() const noexcept { return *session_; }

    [[nodiscard]] shared_key make_key(std::string_view name) const override { return make_key(name, {}); }

    /// Returns: the key of a lock with nodes as `nodes` says.
    [[nodiscard]] shared_key make_key(std::string_view name, node_options nodes) const
    {
        return std::make_shared<node_key const>(name, lock_path(name, session().chroot()), nodes);
    }

    /// Returns: the key of a permit of Curator's or kazoo's semaphore.
    [[nodiscard]] shared_key make_permit_key(semaphore_slot const& of, permits as) const
    {
        auto path = lock_path(of.semaphore, session().chroot());
        if (as == permits::curator) path.append("/").append(leases_of_permits);
        return std::make_shared<node_key const>(of.lock_name(), std::move(path), of.permits, as);
    }

    [[nodiscard]] shared_key make_slot_key(semaphore_slot const& of) override { return make_slot_key(of, {}); }

    /// As above, of a semaphore whose slots have nodes as `nodes` says.
    [[nodiscard]] shared_key make_slot_key(semaphore_slot const& of, node_options nodes)
    {
        auto const name = of.lock_name();
        return std::make_shared<node_key const>(name, lock_path(name, session().chroot()), nodes, number_of(of));
    }

    [[nodiscard]] std::shared_ptr<void const> use_semaphore(semaphore_slot const& of) override
    {
        return std::make_shared<use const>(session_, number_of(of));
    }

    /// The number is kept in marks of sessions, and lasts as they do. Curator keeps none; kazoo's stays.
    [[nodiscard]] std::unique_ptr<operation<result<bool>>> resize(shared_key const& slot,
                                                                  std::chrono::milliseconds /*ttl*/) override
    {
        auto const& number = of(slot)->number();
        if (!number) return {};
        return std::make_unique<resize_operation>(session_, std::string{slot->name()}, number);
    }

    [[nodiscard]] std::unique_ptr<pending_count> count_held(std::vector<shared_key> const& slots) override
    {
        std::vector<std::shared_ptr<node_key const>> keys;
        for (auto const& one : slots) {
            keys.push_back(of(one));
            if (keys.back()->max() != 0) break;  // such permits are all in one place
        }
        return std::make_unique<count_operation>(session_, std::move(keys));
    }

    [[nodiscard]] std::string refused_order(lock_key const& key) const override
    {
        return static_cast<node_key const&>(key).queued() ? "" : "but the plain form has no queue";
    }

    /// The lease is the session's, whatever the ttl. When it is granted, half of it is left.
    [[nodiscard]] std::string refused_margin(lock_key const& /*key*/, std::chrono::milliseconds /*ttl*/,
                                             std::chrono::milliseconds margin) const override
    {
        auto const most = session_lease::duration(session().options().session_timeout) / 3;
        if (margin <= most) return {};
        return "but at most a sixth of session_timeout is allowed, " + std::to_string(most.count()) + " ms";
    }

    [[nodiscard]] shared_key make_shared_key(std::string_view name, access mode) const override
    {
        return make_shared_key(name, mode, {});
    }

    /// As above, of a lock with nodes as `nodes` says. Throws: `error` (`misconfigured`) if waiters would have none.
    [[nodiscard]] shared_key make_shared_key(std::string_view name, access mode, node_options nodes) const
    {
        if (nodes.queueing == queueing::none)
            throw holdfast::detail::error_of(name, {make_error_code(holdfast::errc::misconfigured),
                                                    "a shared_mutex needs a queue; queueing::none is for a mutex"});
        return std::make_shared<node_key const>(name, lock_path(name, session().chroot()), nodes, mode);
    }

    [[nodiscard]] std::string address_of(lock_key const& key) const override
    {
        return static_cast<node_key const&>(key).path() + '\0' + session().address() + '\0' + key.kind();
    }

    [[nodiscard]] std::unique_ptr<pending_acquire> acquire(shared_key const& key,
                                                           acquire_request const& request) override
    {
        if (of(key)->max() != 0) return std::make_unique<permit_operation>(session_, of(key), request);
        return std::make_unique<acquire_operation>(session_, of(key), request);
    }

    /// The ttl has no effect: it is the session's.
    [[nodiscard]] std::unique_ptr<pending_extend> extend(shared_key const& /*key*/, owner_token const& token,
                                                         std::chrono::milliseconds /*ttl*/) override
    {
        return std::make_unique<extend_operation>(session_, token);
    }

    [[nodiscard]] std::unique_ptr<pending_release> release(shared_key const& /*key*/) override
    {
        return std::make_unique<release_operation>(session_);
    }

    void lend_release(shared_key const& /*key*/, release_user& to) noexcept override
    {
        release_operation one{session_};
        to.use(one);
    }

    /// Asks which clients have the lock or wait for it.
    [[nodiscard]] std::unique_ptr<operation<result<participants>>> contenders(shared_key const& key) const
    {
        return std::make_unique<contenders_operation>(session_, of(key), report_of::contenders);
    }

    [[nodiscard]] std::unique_ptr<pending_inspection> inspect(shared_key const& key, report_of what) override
    {
        return std::make_unique<inspect_operation>(session_, of(key), what);
    }

    [[nodiscard]] std::unique_ptr<pending_request> force_release(shared_key const& key) override
    {
        return std::make_unique<force_release_operation>(session_, of(key), report_of::holder);
    }

    [[nodiscard]] std::unique_ptr<pending_request> request_release(shared_key const& key) override
    {
        return std::make_unique<request_release_operation>(session_, of(key), report_of::holder);
    }

    [[nodiscard]] std::unique_ptr<pending_list> list(std::string_view prefix) override
    {
        return std::make_unique<list_operation>(session_, prefix);
    }

    void on_loss(std::function<void()> f) override
    {
        std::scoped_lock guard{session().mutex()};
        session().mutex().on_expiry(std::move(f));
    }

    /// Returns: whether the session, as far as it knows, has a node for the lease of `token`.
    [[nodiscard]] bool still_leased(owner_token const& token) const override
    {
        std::scoped_lock guard{session().mutex()};
        return session().held().find(token) != nullptr;
    }

private:
    /// A semaphore of a client. The client has a mark until its last one of that number ends.
    class use {
    public:
        use(std::shared_ptr<session_core> in, std::shared_ptr<permit_number> number)
            : session_{std::move(in)}, number_{std::move(number)}
        {
            std::scoped_lock guard{session_->mutex()};
            ++number_->uses;
        }
        use(use const&) = delete;
        use& operator=(use const&) = delete;
        ~use()
        {
            if (session_->in_child()) return;
            std::scoped_lock guard{session_->mutex()};
            if (--number_->uses == 0) remove_mark(*session_, *number_);
        }

    private:
        std::shared_ptr<session_core> const session_;
        std::shared_ptr<permit_number> const number_;
    };

    /// Returns: what the session knows of the number; the same for all semaphores of that name and number.
    [[nodiscard]] std::shared_ptr<permit_number> number_of(semaphore_slot const& of)
    {
        auto const path = lock_path(std::string{of.semaphore} + "#max", session().chroot());
        std::scoped_lock guard{session().mutex()};
        if (pace_.due(numbers_.size())) {
            std::erase_if(numbers_, [](auto const& one) { return one.second.expired(); });
            pace_.swept(numbers_.size());
        }
        auto& known = numbers_[{path, of.permits}];
        auto number = known.lock();
        if (!number) known = number = std::make_shared<permit_number>(path, of.permits);
        return number;
    }

    [[nodiscard]] static std::shared_ptr<node_key const> of(shared_key const& key)
    {
        return std::static_pointer_cast<node_key const>(key);
    }

    std::shared_ptr<session_core> session_;
    std::map<std::pair<std::string, std::size_t>, std::weak_ptr<permit_number>> numbers_;
    holdfast::detail::sweep_pace pace_;
};

}  // namespace holdfast::zookeeper
