// SPDX-License-Identifier: MIT
//
// For files that elect a leader with a lock of any store. As light as <holdfast/mutex.hpp>; it names no server.
#pragma once

#include <holdfast/core/language.hpp>

#include <holdfast/adapters/election.hpp>
#include <holdfast/mutex.hpp>
