// SPDX-License-Identifier: MIT
//
// Read by Doxygen only: what each namespace is for.

/// Locks, guards, options and errors that every store shares.
namespace holdfast {
/// Locks on one Redis server: `<holdfast/redis.hpp>`.
namespace redis {}
/// Locks on a majority of independent Redis masters: `<holdfast/redlock.hpp>`.
namespace redlock {}
/// Locks in a ZooKeeper ensemble: `<holdfast/zookeeper.hpp>`.
namespace zookeeper {}
/// Locks in the memory of this process: `<holdfast/memory.hpp>`.
namespace memory {}
/// TLS for `rediss://` URLs: `<holdfast/tls.hpp>`.
namespace tls {}
/// A user's own code in virtual time: `<holdfast/sim.hpp>`.
namespace sim {}
/// The functions of `<holdfast/asio.hpp>`, which are names of `holdfast`, too. Those of `<holdfast/boost_asio.hpp>` are
/// the same in `holdfast::boost_asio`.
namespace standalone_asio {}
}  // namespace holdfast
