// SPDX-License-Identifier: MIT
//
// For files that only take permits: store, semaphore, leased_permit, leased_permits, options, errors. It names no
// server; the file that makes a client also includes the header of its store.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/adapters/leased_permit.hpp>
#include <holdfast/adapters/leased_permits.hpp>
#include <holdfast/adapters/semaphore.hpp>
#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/lease.hpp>
#include <holdfast/core/options.hpp>
#include <holdfast/core/store.hpp>
