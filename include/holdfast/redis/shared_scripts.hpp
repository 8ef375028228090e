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
    "5ce616bc225665f247c102a6bc025e744f03fc91"};

inline constexpr script acquire_exclusive_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_clock,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::look_at_reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_clock,
           parts::take_exclusive, parts::answer_fence>,
    "c345c2c119db936ad26fccee20918f9f79e8e0f9"};

inline constexpr script acquire_exclusive_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_count,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::look_at_reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_count,
           parts::take_exclusive, parts::answer_fence>,
    "9ff05ebb341936728ab02ff3c5cd4e552cf15c40"};

// acquire, shared: the same, without the queue and a score. `beside`: '' or the token of an exclusive lease, beside
// which it is to stand. `waits`: how long it is remembered that a reader waits, if it is refused.
inline constexpr script acquire_shared{
    joined<parts::look, parts::shared_keys, parts::beside, parts::look_at_phase, parts::look_at_reader, parts::come,
           parts::refuse_reader, parts::refuse, parts::join, parts::take_shared, parts::answer_yes>,
    "9ef8a88a1e43c6893c091d1ac133b8b418ff6d6a"};

inline constexpr script acquire_shared_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_clock, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_clock, parts::join, parts::take_shared, parts::answer_fence>,
    "6055026308621a3607b54c4c3fec64fe86e756e6"};

inline constexpr script acquire_shared_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_count, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_count, parts::join, parts::take_shared, parts::answer_fence>,
    "08118b06c840b267dd48dfc315868ca5f8d686cd"};

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "0761c6e221cf2d615dcb372c0ebab3ddb1b18f9b"};

// extend, shared: KEYS lock readers phase; ARGV token ttl. Only its own record, and only if it is there.
inline constexpr script extend_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader, parts::only_ours,
           parts::join, parts::extend_shared>,
    "66d8a548d48be86aa34195cf5b669037aaa59e95"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader,
           parts::only_without_writer, parts::join, parts::extend_shared>,
    "d238f79226e5d49fc8c5686a3bf175ed6eaf75e3"};

// release, shared, and leave: KEYS lock readers phase [queue next]; ARGV token channel [waiter]. As release. When the
// last reader leaves, all are told, unless a writer of the queue is called.
inline constexpr script release_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::waiter, parts::look_at_phase,
           parts::look_at_reader, parts::called_before, parts::come, parts::leave_shared, parts::release_shared,
           parts::call_next, parts::call_writer, parts::tell_all>,
    "7243fbb14105b8ca9ba16b48bc816f0f9a3a7bbd"};

// release, exclusive, and leave: the same, and ARGV [waiter score], as give_back.
inline constexpr script release_exclusive{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::waiter, parts::look_at_phase,
           parts::enqueue, parts::call_next, parts::release_exclusive, parts::leave_or_stay_exclusive, parts::tell_all>,
    "264ef2a73de6e765008264e7e647b66cd801dd68"};

}  // namespace holdfast::redis::scripts
