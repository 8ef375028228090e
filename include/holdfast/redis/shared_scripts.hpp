// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_script_parts.hpp>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// acquire, exclusive: KEYS lock [fence] readers phase [queue next]; ARGV token ttl [batch fence-lifetime bound
// [proposal max-lead floor]] beside waits [waiter score]. As acquire. `beside`: '' or the token of a shared lease; then
// it is granted if that is the only one, and stands beside it. `waits`: how long readers are to be kept out, in ms, if
// it is refused and in the queue, or refused because of readers.
inline constexpr script acquire_exclusive{
    joined<parts::look, parts::shared_keys, parts::queue_after_phase, parts::beside, parts::look_at_phase,
           parts::enqueue, parts::call_next, parts::refuse_writer, parts::look_at_reservation, parts::stand_in_line,
           parts::mark_writer, parts::refuse, parts::take_exclusive, parts::answer_yes>,
    "4d402548cd2dd20d7455a1d81d5d8d9bdd247793"};

inline constexpr script acquire_exclusive_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_clock,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::look_at_reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_clock,
           parts::take_exclusive, parts::answer_fence>,
    "cc3970a96e82b52223c835778c046efdc1eb16eb"};

inline constexpr script acquire_exclusive_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_count,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::look_at_reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_count,
           parts::take_exclusive, parts::answer_fence>,
    "bd25ec59e6d5cdb019ab0464d63083ac53e4214e"};

// acquire, shared: the same, without the queue and a score. `beside`: '' or the token of an exclusive lease, beside
// which it is to stand. `waits`: how long it is remembered that a reader waits, if it is refused.
inline constexpr script acquire_shared{
    joined<parts::look, parts::shared_keys, parts::beside, parts::look_at_phase, parts::look_at_reader, parts::come,
           parts::refuse_reader, parts::refuse, parts::join, parts::take_shared, parts::answer_yes>,
    "f7ed14cd4053d8fbbdb0ad62962506cbe3fbf2b7"};

inline constexpr script acquire_shared_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_clock, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_clock, parts::join, parts::take_shared, parts::answer_fence>,
    "ce1017701f199964835696f7e7f1302a96773b6f"};

inline constexpr script acquire_shared_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_count, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_count, parts::join, parts::take_shared, parts::answer_fence>,
    "6d6980b4a13d449fa449d149156caa5ba51ae8f0"};

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "dd38a7e526ef742f3673c76bdd73ee0f64220797"};

// extend, shared: KEYS lock readers phase; ARGV token ttl. Only its own record, and only if it is there.
inline constexpr script extend_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader, parts::only_ours,
           parts::join, parts::extend_shared>,
    "84600cc5eade5d4b86a548a14fdc2dfbbc2afb5c"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader,
           parts::only_without_writer, parts::join, parts::extend_shared>,
    "cfd04b4359ab57ae5860d1b1f92de2a4a64d8efc"};

// release, shared, and leave: KEYS lock readers phase [queue next]; ARGV token channel [waiter]. As release. When the
// last reader leaves, all are told, unless a writer of the queue is called.
inline constexpr script release_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::waiter_after_channel,
           parts::look_at_phase, parts::look_at_reader, parts::called_before, parts::come, parts::leave_shared,
           parts::release_shared, parts::call_next, parts::call_writer, parts::tell_all>,
    "ad02d9a5645d44e2c1ef5c65e3f64451edaf1c7c"};

// release, exclusive, and leave: the same, and ARGV [waiter score], as give_back.
inline constexpr script release_exclusive{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::waiter_after_channel,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::release_exclusive,
           parts::leave_or_stay_exclusive, parts::tell_all>,
    "bc2c4e2964b337afc1205afbc29c667193b9dcc2"};

}  // namespace holdfast::redis::scripts
