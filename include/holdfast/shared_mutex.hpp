// SPDX-License-Identifier: MIT
//
// For files that only take read-write locks: store, shared_mutex, guards, options, errors. It names no server; the file
// that makes a client also includes the header of its store.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/adapters/leased_shared_lock.hpp>
#include <holdfast/adapters/shared_mutex.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
#include <holdfast/lock/leased_lock.hpp>
#include <holdfast/lock/with_lock.hpp>
