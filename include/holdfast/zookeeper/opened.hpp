// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/semaphore_object.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/zookeeper/node_options.hpp>
#include <holdfast/zookeeper/session_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A session that has a lock, or waits for it; for all of its threads.
struct participant {
    std::string node;  ///< the name of its node
    /// What the node says about it: `host=… pid=… label=…`, with `id=…` in the plain form; or what another library
    /// writes.
    std::string content = {};
    /// That of its first holder, by its node. If that was converted from one mode to the other, it may be greater than
    /// the holder's.
    std::uint64_t fencing_token = 0;
    std::chrono::system_clock::time_point since{};  ///< when it got in line; by the servers' clock
};

/// The sessions that have a lock or wait for it, in the order in which they get it; of the plain form, the one that has
/// it.
using participants = std::vector<participant>;

/// What a `session` has in addition to what every store has.
class session_access {
public:
    session_access() = default;
    session_access(session_access const&) = delete;
    session_access& operator=(session_access const&) = delete;
    virtual ~session_access() = default;

    [[nodiscard]] virtual session_state state() const = 0;
    virtual bool connect_for(std::chrono::milliseconds d) = 0;
    [[nodiscard]] virtual std::shared_ptr<holdfast::detail::lock_object>
    make_mutex(std::string_view name, lock_options options, node_options nodes) = 0;
    [[nodiscard]] virtual holdfast::detail::shared_sides
    make_shared_mutex(std::string_view name, lock_options const& options, node_options nodes) = 0;
    [[nodiscard]] virtual std::shared_ptr<holdfast::detail::semaphore_object>
    make_semaphore(std::string_view name, std::ptrdiff_t max, lock_options const& options, node_options nodes) = 0;
    [[nodiscard]] virtual participants contenders(std::string const& name, node_options nodes) = 0;
};

/// A session, and the factory for locks in it.
struct opened {
    std::shared_ptr<holdfast::detail::lock_factory> locks;
    std::shared_ptr<session_access> session;
};

}  // namespace holdfast::zookeeper
