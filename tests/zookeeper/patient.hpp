// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast::test {

/// Returns: `options` with times that a machine can keep to on which everything takes a hundred times as long. What a
/// test says itself stays.
inline zookeeper::session_options patient(zookeeper::session_options options = {})
{
    zookeeper::session_options const defaults;
    if (options.session_timeout == defaults.session_timeout) options.session_timeout = std::chrono::seconds{30};
    if (options.operation_timeout == defaults.operation_timeout) options.operation_timeout = std::chrono::minutes{1};
    return options;
}

/// Returns: a session that is connected: how long that takes is not what a test of a lock looks at.
inline zookeeper::session connected(std::string const& servers, zookeeper::session_options options = {})
{
    zookeeper::session made{servers, patient(std::move(options))};
    if (!made.connect_for(std::chrono::minutes{2})) throw std::runtime_error{"no session with ZooKeeper at " + servers};
    return made;
}

}  // namespace holdfast::test
