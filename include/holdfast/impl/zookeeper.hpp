// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/access.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/impl/urls.hpp>
#include <holdfast/lock/client_context.hpp>
#include <holdfast/lock/inspection.hpp>
#include <holdfast/lock/slot_semaphore.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_engine.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/session_store.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// The implementation of a `session`.
class opened_session final : public session_access, public std::enable_shared_from_this<opened_session> {
public:
    using client_context = holdfast::detail::client_context;

    opened_session(std::shared_ptr<session_store> locks, std::shared_ptr<client_context> context)
        : locks_{std::move(locks)}, context_{std::move(context)}
    {
    }

    [[nodiscard]] session_state state() const override
    {
        if (locks_->session().in_child()) return session_state::lost;
        std::scoped_lock guard{locks_->session().mutex()};
        return locks_->session().state();
    }

    bool connect_for(std::chrono::milliseconds d) override
    {
        locks_->session().ensure_running({});
        auto& core = locks_->session();
        std::unique_lock guard{core.mutex()};
        auto const until = holdfast::saturating_add(boot_clock::now(), d);
        while (!core.connected() && !core.refused() && boot_clock::now() < until)
            core.changed().wait_for(guard, std::min<boot_clock::duration>(until - boot_clock::now(),
                                                                          holdfast::detail::parker::longest_nap));
        return core.connected();
    }

    [[nodiscard]] std::shared_ptr<holdfast::detail::lock_object> make_mutex(std::string_view name, lock_options options,
                                                                            node_options nodes) override
    {
        check_name(name);
        return context_->make_mutex(locks_->make_key(name, nodes), std::move(options));
    }

    [[nodiscard]] holdfast::detail::shared_sides make_shared_mutex(std::string_view name, lock_options const& options,
                                                                   node_options nodes) override
    {
        return client_context::make_sides(
            [self = shared_from_this(), name = std::string{name}, options, nodes](access mode) {
                check_name(name);
                return self->context_->make_shared_mutex(self->locks_->make_shared_key(name, mode, nodes), options);
            });
    }

    [[nodiscard]] std::shared_ptr<holdfast::detail::semaphore_object>
    make_semaphore(std::string_view name, std::ptrdiff_t max, lock_options const& options, node_options nodes) override
    {
        return std::make_shared<holdfast::detail::slot_semaphore>(
            name, max, [self = shared_from_this(), options, nodes](semaphore_slot const& of) {
                return self->make_slots(of, options, nodes);
            });
    }

    [[nodiscard]] participants contenders(std::string const& name, node_options nodes) override
    {
        auto const key = locks_->make_key(name, nodes);
        return holdfast::detail::inspection{*locks_}.answer_to(*locks_->contenders(key), key, "contenders");
    }

private:
    [[nodiscard]] std::unique_ptr<holdfast::detail::slot_source> make_slots(semaphore_slot const& of,
                                                                            lock_options options, node_options nodes)
    {
        bool const slots = nodes.permits == permits::slots;
        if (!slots && (nodes.queueing == queueing::none || nodes.naming != naming::curator)) {
            std::string const as = nodes.permits == permits::kazoo ? "kazoo" : "curator";
            throw holdfast::detail::error_of(
                of.semaphore,
                {make_error_code(holdfast::errc::misconfigured),
                 "permits::" + as + " has a queue with names of its own; leave queueing and naming as they are"});
        }
        return context_->make_slots(
            of, locks_->make_key(client_context::turn_of(of), nodes),
            [&](semaphore_slot const& one) {
                return slots ? locks_->make_slot_key(one, nodes) : locks_->make_permit_key(one, nodes.permits);
            },
            std::move(options));
    }

    std::shared_ptr<session_store> locks_;
    std::shared_ptr<client_context> context_;
};

/// Returns: the implementation of a `session`. Throws: `error` (`misconfigured`).
[[nodiscard]] HOLDFAST_INLINE opened open_session(std::string_view servers, session_options options)
{
    check_session(options);
    auto locks = std::make_shared<session_store>(open_session_thread(parse_servers(servers), std::move(options)));
    auto context = std::make_shared<holdfast::detail::client_context>(locks);
    auto session = std::make_shared<opened_session>(std::move(locks), context);
    return {std::move(context), std::move(session)};
}

}  // namespace holdfast::zookeeper

namespace holdfast::inline HOLDFAST_ABI::detail {

/// Returns: the store of a URL, `zookeeper://host:port,host:port/chroot`.
// NOLINTNEXTLINE(misc-definitions-in-headers): weak
[[gnu::weak]] store open_zookeeper_url(std::string_view url)
{
    url.remove_prefix(std::string_view{"zookeeper://"}.size());
    return store{zookeeper::open_session(url, {}).locks};
}

}  // namespace holdfast::detail
