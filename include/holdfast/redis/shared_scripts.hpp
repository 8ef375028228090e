// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_script_parts.hpp>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

// acquire, exclusive: KEYS lock [fence] readers phase; ARGV token ttl [batch fence-lifetime bound [proposal max-lead
// floor]] beside waits. As acquire, without the queue. `beside`: '' or the token of a shared lease; then it is granted
// if that is the only one, and stands beside it. `waits`: how long readers are to be kept out, in ms, if it is refused
// because of them.
inline constexpr script acquire_exclusive{
    joined<parts::look, parts::shared_keys, parts::queue_after_phase, parts::beside, parts::look_at_phase,
           parts::enqueue, parts::call_next, parts::refuse_writer, parts::reservation, parts::stand_in_line,
           parts::mark_writer, parts::refuse, parts::take_exclusive, parts::answer_yes>,
    "9265847a8fac9caf2a35f2d8d310df582b6b940c"};

inline constexpr script acquire_exclusive_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_clock,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_clock,
           parts::take_exclusive, parts::answer_fence>,
    "557c066dcd10d979be371e605c0b1dc482ec5091"};

inline constexpr script acquire_exclusive_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::queue_after_fence_and_phase, parts::beside_by_count,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::refuse_writer, parts::reservation,
           parts::stand_in_line, parts::mark_writer, parts::refuse, parts::look_at_fence, parts::fence_by_count,
           parts::take_exclusive, parts::answer_fence>,
    "b9d7ebd744a28358c4c3984d25a7e5392d362835"};

// acquire, shared: the same. `beside`: '' or the token of an exclusive lease, beside which it is to stand. `waits`: how
// long it is remembered that a reader waits, if it is refused.
inline constexpr script acquire_shared{
    joined<parts::look, parts::shared_keys, parts::beside, parts::look_at_phase, parts::look_at_reader, parts::come,
           parts::refuse_reader, parts::refuse, parts::join, parts::take_shared, parts::answer_yes>,
    "28cbdf65d83aeac05ad4cbb8803bce72e9196eb2"};

inline constexpr script acquire_shared_by_clock{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_clock, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_clock, parts::join, parts::take_shared, parts::answer_fence>,
    "732ba134d91c072de0ab9dd4a7bf5018e999d6f9"};

inline constexpr script acquire_shared_by_count{
    joined<parts::look, parts::shared_keys_after_fence, parts::beside_by_count, parts::look_at_phase,
           parts::look_at_reader, parts::come, parts::refuse_reader, parts::refuse, parts::look_at_fence,
           parts::fence_by_count, parts::join, parts::take_shared, parts::answer_fence>,
    "2e4e67860b19e723c2cb3138c43ee393db503650"};

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "7c560f12f00964610a1064e866753271a41d4b62"};

// extend, shared: KEYS lock readers phase; ARGV token ttl. Only its own record, and only if it is there.
inline constexpr script extend_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader, parts::only_ours,
           parts::join, parts::extend_shared>,
    "77b1f9504bc1d42c452b9c0795fa3cf076053813"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::look_at_phase, parts::look_at_reader,
           parts::only_without_writer, parts::join, parts::extend_shared>,
    "3d9d497299e179439e4b7602dc701c3ab80fc036"};

// release, shared: KEYS lock readers phase [queue next]; ARGV token channel. As release. All are told when the last
// reader leaves.
inline constexpr script release_shared{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::look_at_phase,
           parts::look_at_reader, parts::release_shared, parts::call_next, parts::call_writer, parts::tell_all>,
    "924334cb86552b7aac4b5a9b051b0b12d9f530d0"};

// release, exclusive: the same.
inline constexpr script release_exclusive{
    joined<parts::look_at_value, parts::shared_keys, parts::queue_after_phase, parts::waiter_after_channel,
           parts::look_at_phase, parts::enqueue, parts::call_next, parts::release_exclusive,
           parts::leave_or_stay_exclusive, parts::tell_all>,
    "c673e9894fbc85735d850bbc0e7759dac831c3b8"};

}  // namespace holdfast::redis::scripts
