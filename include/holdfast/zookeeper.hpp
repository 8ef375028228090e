// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/name.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/lock/basic_mutex.hpp>
#include <holdfast/lock/basic_mutex_members.hpp>
#include <holdfast/lock/domain.hpp>
#include <holdfast/lock/keeper.hpp>
#include <holdfast/zookeeper/backend.hpp>
#include <holdfast/zookeeper/contenders_operation.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/path.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// A session with a ZooKeeper ensemble. Thread-safe; shared by any number of locks, which may outlive it. Connects when it is first
/// needed, and makes a new session when the servers have ended the last one.
class session {
public:
    /// Effects: prepares a session with `servers`, "host:port,host:port/chroot"; no I/O.
    /// Throws: `error` (`misconfigured`) naming the part of `servers` or the option that is wrong.
    explicit session(std::string_view servers, session_options options = {})
    {
        check_session(options);
        thread_ = std::make_shared<session_thread>(std::make_shared<session_core>(parse_servers(servers), std::move(options)));
        auto const renewer = std::make_shared<holdfast::detail::keeper>();
        curator_ = domain_of({}, renewer);
        kazoo_ = domain_of({.naming = naming::kazoo}, renewer);
        plain_ = domain_of({.queueing = queueing::none}, renewer);
        curator_->backend().on_loss(renewer->alarm());
    }

    /// Returns: what it is in; `lost` in a forked child.
    [[nodiscard]] session_state state() const
    {
        if (thread_->in_child()) return session_state::lost;
        std::scoped_lock guard{thread_->core().mutex()};
        return thread_->core().state();
    }

    /// Effects: connects, and waits until that is done, for `d` at most, or it is known that no session will ever be had (`auth_scheme`).
    /// Returns: whether it is connected.
    /// Throws: `error`: `unavailable` where the system has no thread left, `misconfigured` in a forked child.
    bool connect_for(std::chrono::milliseconds d)
    {
        thread_->ensure_running();
        auto& core = thread_->core();
        std::unique_lock guard{core.mutex()};
        constexpr std::chrono::hours longest{24 * 365 * 100};  // from now it can be counted in nanoseconds
        core.changed().wait_for(guard, std::min<std::chrono::milliseconds>(d, longest), [&] { return core.connected() || core.refused(); });
        return core.connected();
    }

private:
    friend class mutex;

    using domain = std::shared_ptr<holdfast::detail::domain<backend>>;

    [[nodiscard]] domain domain_of(node_options nodes, std::shared_ptr<holdfast::detail::keeper> const& renewer) const
    {
        return std::make_shared<holdfast::detail::domain<backend>>(std::make_shared<backend>(thread_, nodes), renewer);
    }

    [[nodiscard]] domain const& find(node_options nodes) const noexcept
    {
        if (nodes.queueing == queueing::none) return plain_;
        return nodes.naming == naming::kazoo ? kazoo_ : curator_;
    }

    std::shared_ptr<session_thread> thread_;
    domain curator_;
    domain kazoo_;
    domain plain_;
};

/// A lock in a ZooKeeper ensemble: first come, first served over all processes. Its name is the path of a node, whose children stand for
/// those who have the lock or wait for it; a name that does not begin with a slash is a path below the root. Meets `Lock`; see
/// `basic_mutex` for its members.
///
/// A lease is the session's: `ttl` is `session_options::session_timeout`, of which half is confirmed at a time; the lock's own
/// `ttl`, and that of `extend`, have no effect but that they are checked. The fencing token is the `czxid` of the lock's node times 64, and
/// one more for each time that the lock was handed on within the process.
class mutex : public basic_mutex<backend> {
public:
    /// Throws: `error` (`misconfigured`) where the name or an option cannot be used; no I/O.
    mutex(session& in, std::string_view name, lock_options options = {}, node_options nodes = {})
        : basic_mutex{in.find(nodes), name, std::move(options)}, place_{in.thread_, nodes}
    {
    }

    /// Returns: who has the lock and who waits for it, in the order in which they get it; of the plain form, who has it.
    /// Throws: `error`: `unavailable` where no server answers within the operation timeout, `misconfigured`.
    [[nodiscard]] std::vector<participant> contenders()
    {
        place_.thread().ensure_running(name());  // before anything is locked, which in a child may be for ever
        contenders_operation asking{place_, lock_path(name(), place_.core().chroot())};
        auto got = asking.ask();
        if (!got)
            throw error{got.code(),
                        "lock " + holdfast::quoted(name()) + ": contenders" + (got.why().detail.empty() ? "" : "; " + got.why().detail)};
        return std::move(*got);
    }

private:
    lock_place place_;
};

static_assert(Lock<mutex>);

}  // namespace holdfast::zookeeper
