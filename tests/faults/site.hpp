// SPDX-License-Identifier: MIT
#pragma once

#include "check/leftovers.hpp"
#include "check/linearizable.hpp"
#include "place.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::faults {

/// What servers have of one lock.
struct copies {
    std::size_t of_one_owner =
        0;  ///< on how many of them the same one has it, where it is on most; of ZooKeeper, how many contend for it
    std::size_t all = 0;
    std::int64_t ms_left = 0;  ///< until the last of them expires; -1 where one does not, and of ZooKeeper
};

/// Real servers of one store, for rows that say the same of every store: one Redis, five masters, one ZooKeeper server.
class site {
public:
    virtual ~site() = default;

    [[nodiscard]] place const& where() const noexcept { return where_; }
    /// Returns: the ports of the servers, in the order of `where().servers`.
    [[nodiscard]] virtual std::vector<std::uint16_t> ports() const = 0;
    /// Effects: kills every server; has them come back, one Redis and masters without what they knew.
    virtual void kill() = 0;
    virtual void restart() = 0;
    /// Effects: stops one server, and has it go on.
    virtual void pause(std::size_t which) = 0;
    virtual void resume(std::size_t which) = 0;
    /// Effects: kills one server, and has it come back, a Redis without what it knew.
    virtual void restart(std::size_t which) = 0;
    /// Returns: how soon the lock of a dead holder is to be free.
    [[nodiscard]] virtual std::chrono::milliseconds freed_within() const = 0;
    /// Returns: on how many servers a lock is that is held.
    [[nodiscard]] std::size_t quorum() const noexcept { return where_.servers.size() / 2 + 1; }
    [[nodiscard]] refused_by whom() const noexcept
    {
        return where_.what == place::store::redis ? refused_by::holder : refused_by::holder_or_contender;
    }

    [[nodiscard]] virtual copies copies_of(std::string const& name) = 0;
    /// Effects: removes the lock, whoever has it.
    virtual void remove(std::string const& name) = 0;
    /// Returns: what is left of locks, after `limit` at most for it to go.
    [[nodiscard]] virtual remains left(std::chrono::milliseconds limit, waiters w) = 0;

protected:
    place where_;
};

/// `clocks`: a folder; if there is one, servers of Redis have a restart guard, which was over when they were asked first:
/// each of them may forget what it knew. Throws: `std::runtime_error` where the program was built without that store.
[[nodiscard]] std::unique_ptr<site> open_site(place::store what, std::filesystem::path const& clocks = {});

}  // namespace holdfast::faults
