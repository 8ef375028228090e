// SPDX-License-Identifier: MIT
//
// Every lock there is, precompiled once for all tests that use one; and TLS, which any of them may be asked for.
#pragma once

#include <holdfast/memory.hpp>
#include <holdfast/redis.hpp>
#include <holdfast/redlock.hpp>
#ifdef HOLDFAST_TEST_TLS
#include <holdfast/tls.hpp>
#endif
#ifdef HOLDFAST_TEST_ZOOKEEPER
#include <holdfast/zookeeper.hpp>
#endif
