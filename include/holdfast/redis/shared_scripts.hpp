// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/scripts.hpp>
#include <holdfast/redis/shared_script_parts.hpp>
#include <holdfast/redis/writer_script_parts.hpp>

namespace holdfast::inline HOLDFAST_ABI::redis::scripts {

namespace parts {

inline constexpr auto acquire_exclusive =
    joined<look, shared_keys, queue_after_phase, beside, look_at_phase, enqueue, call_next, refuse_writer,
           look_at_reservation, stand_in_line, mark_writer, refuse, take_exclusive>;

inline constexpr auto acquire_exclusive_by_clock =
    joined<look, shared_keys_after_fence, queue_after_fence_and_phase, beside_by_clock, look_at_phase, enqueue,
           call_next, refuse_writer, look_at_reservation, stand_in_line, mark_writer, refuse, look_at_fence,
           fence_by_clock, take_exclusive>;

inline constexpr auto acquire_exclusive_by_count =
    joined<look, shared_keys_after_fence, queue_after_fence_and_phase, beside_by_count, look_at_phase, enqueue,
           call_next, refuse_writer, look_at_reservation, stand_in_line, mark_writer, refuse, look_at_fence,
           fence_by_count, take_exclusive>;

}  // namespace parts

// acquire, exclusive: KEYS lock [fence] readers phase [queue next]; ARGV token ttl [batch fence-lifetime bound
// [proposal max-lead floor]] beside waits [waiter score]. As acquire. `beside`: '' or the token of a shared lease; then
// it is granted if that is the only one, and stands beside it. `waits`: how long readers are to be kept out, in ms, if
// it is refused and in the queue, or refused because of readers.
inline constexpr script acquire_exclusive{joined<parts::acquire_exclusive, parts::answer_yes>,
                                          "edbbed235107e7b49e8534faf8fc189b5908151a"};

inline constexpr script acquire_exclusive_by_clock{joined<parts::acquire_exclusive_by_clock, parts::answer_fence>,
                                                   "c5ba22339499691f0b669136b209470b9616fc14"};

inline constexpr script acquire_exclusive_by_count{joined<parts::acquire_exclusive_by_count, parts::answer_fence>,
                                                   "fe335c4ae5cd26776b49da9b55593432d015d537"};

namespace parts {

inline constexpr auto acquire_shared =
    joined<look, shared_keys, beside, look_at_phase, look_at_reader, come, refuse_reader, refuse, join, take_shared>;

inline constexpr auto acquire_shared_by_clock =
    joined<look, shared_keys_after_fence, beside_by_clock, look_at_phase, look_at_reader, come, refuse_reader, refuse,
           look_at_fence, fence_by_clock, join, take_shared>;

inline constexpr auto acquire_shared_by_count =
    joined<look, shared_keys_after_fence, beside_by_count, look_at_phase, look_at_reader, come, refuse_reader, refuse,
           look_at_fence, fence_by_count, join, take_shared>;

}  // namespace parts

// acquire, shared: the same, without the queue and a score. `beside`: '' or the token of an exclusive lease, beside
// which it is to stand. `waits`: how long it is remembered that a reader waits, if it is refused.
inline constexpr script acquire_shared{joined<parts::acquire_shared, parts::answer_yes>,
                                       "afea1a6f94d9491f2240f2b01eecf9134cc21c99"};

inline constexpr script acquire_shared_by_clock{joined<parts::acquire_shared_by_clock, parts::answer_fence>,
                                                "b2f150ff721c7e64a166722b1b3df318768b0322"};

inline constexpr script acquire_shared_by_count{joined<parts::acquire_shared_by_count, parts::answer_fence>,
                                                "ec52d89ed7afdd76de6810b2bd28440c5c00c976"};

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "0761c6e221cf2d615dcb372c0ebab3ddb1b18f9b"};

namespace parts {

inline constexpr auto prolong_shared =
    joined<look_at_value, shared_keys, look_at_phase, look_at_reader, only_ours, join, extend_shared>;

inline constexpr auto prolong_or_join =
    joined<look_at_value, shared_keys, look_at_phase, look_at_reader, only_without_writer, join, extend_shared>;

inline constexpr auto leave_as_reader =
    joined<look_at_value, shared_keys, queue_after_phase, waiter, look_at_phase, look_at_reader, called_before, come,
           leave_shared, release_shared, call_next, call_writer, tell_all>;

}  // namespace parts

// extend, shared: KEYS lock readers phase; ARGV token ttl. Only its own record, and only if it is there.
inline constexpr script extend_shared{joined<parts::prolong_shared, parts::answer_yes>,
                                      "66d8a548d48be86aa34195cf5b669037aaa59e95"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{joined<parts::prolong_or_join, parts::answer_yes>,
                                         "d238f79226e5d49fc8c5686a3bf175ed6eaf75e3"};

// release, shared, and leave: KEYS lock readers phase [queue next]; ARGV token channel [waiter]. As release. When the
// last reader leaves, all are told, unless a writer of the queue is called.
inline constexpr script release_shared{parts::leave_as_reader, "7243fbb14105b8ca9ba16b48bc816f0f9a3a7bbd"};

namespace parts {

inline constexpr auto leave_exclusive = joined<look_at_value, shared_keys, queue_after_phase, waiter, look_at_phase,
                                               enqueue, call_next, release_exclusive, leave_or_stay_exclusive>;

}  // namespace parts

// release, exclusive, and leave: the same, and ARGV [waiter score], as give_back. A roll-back has them always: the
// waiter is '' if there is none.
inline constexpr script release_exclusive{joined<parts::leave_exclusive, parts::tell_all>,
                                          "a5866b848c840931df895e24f3a1f781683b0aea"};

}  // namespace holdfast::redis::scripts
