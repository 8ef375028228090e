// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/holdfast.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/opened.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#ifdef HOLDFAST_COMPILED
#include <holdfast/impl/declarations.hpp>
#else
#include <holdfast/impl/zookeeper.hpp>
#endif

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A session with a ZooKeeper ensemble: a store of locks. A handle that is cheap to copy; copies are one session.
/// Thread-safe; its locks may outlive it. Connects when it is first needed, and makes a new session after the servers
/// have ended the last one.
class session : public store {
public:
    /// Effects: prepares a session with `servers`, "host:port,host:port/chroot"; no I/O.
    /// Throws: `error` (`misconfigured`) naming the part of `servers` or the option that is wrong.
    explicit session(std::string_view servers, session_options options = {})
        : session{open_session(servers, std::move(options))}
    {
    }

    /// Returns: its state; `lost` in a forked child.
    [[nodiscard]] session_state state() const { return session_->state(); }

    /// Effects: connects, and waits for `d` at most until that is done, or until it is known that no session is
    /// possible (`auth_scheme`).
    /// Returns: whether it is connected.
    /// Throws: `error`: `unavailable` if the system has no thread left, `misconfigured` in a forked child.
    template <class Rep, class Period>
    bool connect_for(std::chrono::duration<Rep, Period> const& d)
    {
        auto const limit = saturating_add(boot_clock::time_point{}, d).time_since_epoch();  // hours::max() is too long
        return session_->connect_for(std::chrono::ceil<std::chrono::milliseconds>(limit));
    }

private:
    friend class mutex;
    friend class semaphore;
    friend class shared_mutex;

    explicit session(opened with) noexcept : store{std::move(with.locks)}, session_{std::move(with.session)} {}

    std::shared_ptr<session_access> session_;
};

/// A lock in a ZooKeeper ensemble: first come, first served over all processes. Its name is the path of a node, whose
/// children stand for the holder and the waiters; a name that does not begin with a slash is a path below the root.
/// Meets `Lock`; see `holdfast::mutex` for its members.
///
/// A lease is the session's: `ttl` is `session_options::session_timeout`, of which half is confirmed at a time; the
/// lock's own `ttl`, and that of `extend`, are checked, but have no effect. The fencing token is the `czxid` of the
/// lock's node times 64, and one more for each time that the lock was handed on within the process.
class mutex : public holdfast::mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    mutex(session const& in, std::string_view name, lock_options options = {}, node_options nodes = {})
        : holdfast::mutex{in.session_->make_mutex(name, std::move(options), nodes)},
          session_{in.session_},
          nodes_{nodes}
    {
    }

    /// Returns: the holder of the lock and those that wait for it, in the order in which they get it; in the plain
    /// form, only the holder.
    /// Throws: `error`: `unavailable` if no server answers within the operation timeout, `misconfigured`.
    [[nodiscard]] participants contenders() const { return session_->contenders(name(), nodes_); }

private:
    std::shared_ptr<session_access> session_;
    node_options nodes_;
};

/// A lock on ZooKeeper that is granted in the order of arrival; there this is the order of the nodes. See
/// `holdfast::fair_mutex`.
class fair_mutex : public holdfast::fair_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used; no I/O.
    fair_mutex(session const& on, std::string_view name, lock_options options = {})
        : holdfast::fair_mutex{on, name, std::move(options)}
    {
    }
};

/// A semaphore in a ZooKeeper ensemble. Its slots are locks of the paths `name#0`, `name#1`, and so on. A permit lives
/// as long as its session: see `mutex`. With `{.permits = permits::curator}` it is shared with Curator's
/// InterProcessSemaphoreV2, with `permits::kazoo` with kazoo's Semaphore; then a slot has a number in this object only,
/// and the fencing tokens of no two permits can be compared.
class semaphore : public holdfast::semaphore {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `max` is not 1 to 1,000; no I/O.
    semaphore(session const& in, std::string_view name, std::ptrdiff_t max, lock_options const& options = {},
              node_options nodes = {})
        : holdfast::semaphore{in.session_->make_semaphore(name, max, options, nodes), options}
    {
    }
};

/// A read-write lock in a ZooKeeper ensemble: first come, first served. Readers in a row go in together; a reader that
/// comes after a waiting writer waits for it. Its name is a path, and its leases and fencing tokens are as those of
/// `mutex`. It excludes, and is excluded by, a `mutex` of the same path.
class shared_mutex : public holdfast::shared_mutex {
public:
    /// Throws: `error` (`misconfigured`) if the name or an option cannot be used, or `nodes` has no queue; no I/O.
    shared_mutex(session const& in, std::string_view name, lock_options const& options = {}, node_options nodes = {})
        : holdfast::shared_mutex{in.session_->make_shared_mutex(name, options, nodes), options},
          session_{in.session_},
          nodes_{nodes}
    {
    }

    /// Returns: as `mutex::contenders`: all that have the lock or wait for it, in the order of their places.
    /// Throws: `error`: `unavailable` if no server answers within the operation timeout, `misconfigured`.
    [[nodiscard]] participants contenders() const { return session_->contenders(name(), nodes_); }

private:
    std::shared_ptr<session_access> session_;
    node_options nodes_;
};

}  // namespace holdfast::zookeeper
