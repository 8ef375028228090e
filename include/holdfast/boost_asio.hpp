// SPDX-License-Identifier: MIT
//
// Locks for Boost.Asio (Boost 1.81 and later), with any completion token and any store. The file that makes a client
// includes the header of the store.
//
//     co_await holdfast::async_lock(orders, boost::asio::use_awaitable);
//
// For the other Asio there is <holdfast/asio.hpp>. One program may use both. In a file that includes both, a token that
// suits both, such as a lambda, needs the function of one of them: `holdfast::boost_asio::async_lock`.
//
// - A handler is called by its executor, never by the function that begins the call, and with no lock of the library
//   held.
// - A pending call counts as work of the executor.
// - If the executor's context is destroyed, pending calls are cancelled, and what was granted but not yet delivered is
//   given back.
// - Handlers use their associated executor, allocator and cancellation slot. An executor that throws ends the program.
//   A handler without one, as of a deferred operation in a parallel group, belongs to the system's context: give it
//   yours by `bind_executor`. So does a type-erased handler need that. A context has to allow posts of other threads.
// - In a child of `fork` no pending call ends, and none is cancelled: destroy the context there.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/asio/async_guard.hpp>
#include <holdfast/asio/pending_calls.hpp>
#include <holdfast/core/fork_guard.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/mutex.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#define HOLDFAST_ASIO ::boost::asio
#define HOLDFAST_ASIO_SCOPE boost_asio
#include <holdfast/asio/handlers.hpp>
// after it
#include <holdfast/asio/operations.hpp>
// after both
#include <holdfast/asio/functions.hpp>
#undef HOLDFAST_ASIO_SCOPE
#undef HOLDFAST_ASIO
