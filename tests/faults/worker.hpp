// SPDX-License-Identifier: MIT
#pragma once

#include "check/leftovers.hpp"
#include "place.hpp"

#include <support/fenced_register.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::faults {

/// What a lock guards. The counter is atomic to be shared; but a section reads it, thinks, and writes it back.
struct resource {
    std::atomic<std::uint64_t> counter{0};
    test::fenced_register<std::size_t{1} << 19U> fenced;
};

/// How the one who does the faults and one thread of a worker talk.
struct slot {
    std::atomic<bool> stay{false};     ///< asked of the worker: remain in your section
    std::atomic<bool> staying{false};  ///< it has seen that, and is in a section that lasts until `stay` is taken back
    std::atomic<bool> asking{false};   ///< it is in an attempt whose outcome it does not know
    std::atomic<std::uint32_t> sections{0};  ///< that it has done
    std::atomic<std::uint32_t> losses{0};    ///< that were announced
    std::atomic<std::uint32_t> requests{0};  ///< that it release the lock, as it was told
    std::atomic<std::uint32_t> failures{0};  ///< attempts that threw
    std::atomic<std::uint32_t> client{0};    ///< who is here now

    /// Effects: asks for that. What was said to have been seen before, says nothing of this.
    void ask_to_stay() noexcept
    {
        staying = false;
        stay = true;
    }
};

/// Memory that all processes of a run share.
struct stage {
    static constexpr std::size_t most_locks = 4;
    static constexpr std::size_t most_slots = 384;

    std::array<resource, most_locks> resources;
    std::array<slot, most_slots> slots;
    std::array<footprint, most_slots> warm;  ///< the most that a process used before the faults
    std::array<footprint, most_slots> late;  ///< and when it is to end
    std::atomic<bool> warmed{false};         ///< no more looks at what they use: the faults begin
    std::atomic<bool> stop{false};
};

/// How a worker comes to a section.
enum class primitive : std::uint8_t {
    mutex,
    semaphore,  ///< each slot is a lock of the journals
    election,   ///< a section is a term; it resigns after it
    several,    ///< two or three of the locks at once, named in any order
    readers,    ///< a read-write lock; a shared hold reads the register, and does not write the counter
    job,        ///< a section is a job that runs once in a period
};

/// Whether who has a read-write lock goes over to its other side, as soon as its section is done.
enum class crossing : std::uint8_t {
    none,
    without_gap,
    with_gap,  ///< it lets go, and asks for the other side
};

/// What a worker, which is a process, is to do: a thread for each lock, or all for one.
struct duty {
    place where;
    std::filesystem::path folder;        ///< of the journals
    std::vector<std::uint32_t> clients;  ///< the numbers of its threads
    std::size_t first_slot = 0;
    std::uint32_t first_lock = 0;
    bool one_lock = false;  ///< for all its threads
    primitive kind = primitive::mutex;
    bool shared = false;  ///< of a read-write lock: together with others that are, too
    crossing crosses = crossing::none;
    std::uint32_t permits = 1;                 ///< of a semaphore
    std::chrono::milliseconds period{};        ///< of a job
    std::chrono::milliseconds period_asked{};  ///< what it says when it asks for it
    std::uint32_t members = 1;                 ///< how many locks there are, of which it takes several
    std::optional<place> last_on{};            ///< where the last of these is, if not where the others are
    std::chrono::milliseconds patience{500};   ///< how long it waits for a lock at a time
    bool guarded = true;                       ///< false: each worker has locks of its own, which guard nothing
    bool tokens_checked = true;                ///< by the register
    bool asynchronous = false;            ///< asks for a mutex, and gives it back, by the calls that tell a function
    std::chrono::microseconds rest{500};  ///< between sections, on average

    /// Returns: which lock is that of thread `i`.
    [[nodiscard]] std::uint32_t lock_number(std::size_t i) const noexcept
    {
        return first_lock + (one_lock ? 0 : static_cast<std::uint32_t>(i));
    }
    [[nodiscard]] std::string lock_name(std::size_t i) const;
    /// Returns: the name of one of several that the only thread takes.
    [[nodiscard]] std::string member_name(std::uint32_t member) const;
};

/// Effects: one section after the other, until the stage says stop; everything goes into the journals.
/// Returns: the exit status of the process.
int work(duty const& what, stage& on);

}  // namespace holdfast::faults
