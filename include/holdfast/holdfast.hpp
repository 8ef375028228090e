// SPDX-License-Identifier: MIT
#pragma once

// What all locks have in common: the concepts, guards, adapters, options and errors. The locks are in the headers of
// their stores: <holdfast/redis.hpp>, <holdfast/redlock.hpp>, <holdfast/zookeeper.hpp>, <holdfast/memory.hpp>.

#include <holdfast/core/language.hpp>

#include <holdfast/adapters/election.hpp>
#include <holdfast/adapters/multi_mutex.hpp>
#include <holdfast/adapters/recursive_mutex.hpp>
#include <holdfast/adapters/run_once.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/lock.hpp>
#include <holdfast/core/lock_store.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/token_gate.hpp>
#include <holdfast/core/version.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/lock/with_lock.hpp>
#include <holdfast/fair_mutex.hpp>
#include <holdfast/mutex.hpp>
#include <holdfast/semaphore.hpp>
#include <holdfast/shared_mutex.hpp>
