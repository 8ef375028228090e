// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_operation.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <list>
#include <string>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A request without an answer.
struct sent_call : transport_events::call {
    session_operation* from = nullptr;  ///< null: no operation wants the answer
    unsigned tag = 0;
    std::string path{};  ///< of the node
    boot_clock::time_point sent{};
    reply unsent{answer::lost, errc::connection_lost};  ///< its answer, if it cannot be sent
    std::list<sent_call>::iterator place{};
};

}  // namespace holdfast::zookeeper
