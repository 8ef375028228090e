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
                                          "25d542d4108e8cd4edc10121d6248027bd524c17"};

inline constexpr script acquire_exclusive_by_clock{joined<parts::acquire_exclusive_by_clock, parts::answer_fence>,
                                                   "87d5232d6dbd22b608f12ad7ceec8ff06ce18824"};

inline constexpr script acquire_exclusive_by_count{joined<parts::acquire_exclusive_by_count, parts::answer_fence>,
                                                   "8591751e585a2016d77260b73b47c3f9f03c46cf"};

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
                                       "6cadde2820c2c103933490e52b4a503a08b80b92"};

inline constexpr script acquire_shared_by_clock{joined<parts::acquire_shared_by_clock, parts::answer_fence>,
                                                "998cc87d40d720daf868e336ca7a0928d29798b8"};

inline constexpr script acquire_shared_by_count{joined<parts::acquire_shared_by_count, parts::answer_fence>,
                                                "9f74392d51c072c9b10b05fb20f4ba3cb4c71b31"};

// confirm, shared: KEYS lock fence readers phase; ARGV as confirm.
inline constexpr script confirm_shared{
    joined<parts::look_at_value, parts::shared_keys_after_fence, parts::look_at_phase, parts::look_at_reader,
           parts::only_ours, parts::raise_fence>,
    "01976cc63037f4717376a1df1a099d352bb29590"};

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
                                      "c257c7ebd66957a22a59856e5c881f041d504905"};

// reacquire, shared: the same. As extend, and goes in if no writer has the lock.
inline constexpr script reacquire_shared{joined<parts::prolong_or_join, parts::answer_yes>,
                                         "355fb59cf9fb11ba17de74992ba724edf90dd87c"};

// release, shared, and leave: KEYS lock readers phase [queue next]; ARGV token channel [waiter]. As release. When the
// last reader leaves, all are told, unless a writer of the queue is called.
inline constexpr script release_shared{parts::leave_as_reader, "90544f3633e41f2ef5cbc6f6e305c2aaf80d03f1"};

// extend and reacquire, exclusive: KEYS lock readers phase; ARGV token ttl. As those of a mutex; a lease that stands
// beside readers says until when.
inline constexpr script extend_exclusive{joined<parts::move_beside_until, extend_text>,
                                         "b21a532ff2ec7ba78695a6281dd5806d46b42f2b"};

inline constexpr script reacquire_exclusive{joined<parts::move_beside_until, reacquire_text>,
                                            "729274484f8070a735dddbad165ee8f9a1567eea"};

namespace parts {

inline constexpr auto leave_exclusive = joined<look_at_value, shared_keys, queue_after_phase, waiter, look_at_phase,
                                               enqueue, call_next, release_exclusive, leave_or_stay_exclusive>;

}  // namespace parts

// release, exclusive, and leave: the same, and ARGV [waiter score], as give_back. A roll-back has them always: the
// waiter is '' if there is none.
inline constexpr script release_exclusive{joined<parts::leave_exclusive, parts::tell_all>,
                                          "3c8338ae28901873ea6ceba2dac0d8728117a3b7"};

}  // namespace holdfast::redis::scripts
