// SPDX-License-Identifier: MIT
#pragma once

#include "journal.hpp"
#include "worker.hpp"

#include <support/process.hpp>
#include <support/shared.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace holdfast::faults {

struct crew_options {
    place where{};
    std::vector<place> ways_there{};  ///< one for each process in turn, where they are not all the same
    std::size_t processes = 8;
    std::uint32_t locks = 1;            ///< for each process, which has a thread for each
    bool one_lock = false;              ///< all threads of a process have the same lock
    std::uint32_t threads_of_last = 0;  ///< if not 0: the last process has so many, all for one lock
    primitive kind = primitive::mutex;
    std::size_t writers = 0;  ///< of a read-write lock: the first so many processes; the others share it
    crossing crosses = crossing::none;
    std::uint32_t permits = 1;                                ///< of a semaphore
    std::chrono::milliseconds period{};                       ///< of a job
    std::optional<std::chrono::milliseconds> period_asked{};  ///< if it asks for another one
    std::uint32_t members = 1;                                ///< of several locks; see `duty`
    std::optional<place> last_on{};
    std::size_t lanes = 1;  ///< groups of processes; each has locks of its own
    std::chrono::milliseconds patience{500};
    std::optional<std::chrono::milliseconds> patience_of_writers{};  ///< if not that of the others
    bool guarded = true;
    bool tokens_checked = true;
    std::size_t asynchronous_in = 0;  ///< if not 0: one of so many processes asks asynchronously
    std::chrono::microseconds rest{500};
};

/// Workers, each a process, and what is done to them; it is all in the journals.
class crew {
public:
    /// `folder` is where the journals go.
    crew(crew_options options, std::filesystem::path folder);
    ~crew();

    /// Effects: SIGSTOP, SIGCONT, kill -9, and a new process in the place of one that is gone.
    void pause(std::size_t i);
    void resume(std::size_t i);
    void kill(std::size_t i);
    void replace(std::size_t i);

    /// Effects: writes that something else is done, for the picture: `value` says to what.
    void note(event what, std::uint64_t value = 0);

    /// Effects: ends all workers. Throws: `std::runtime_error` where one has ended before or does not end.
    void end();

    [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
    /// Returns: how many threads a process has.
    [[nodiscard]] std::uint32_t threads(std::size_t i) const noexcept
    {
        return options_.threads_of_last != 0 && i + 1 == size() ? options_.threads_of_last : options_.locks;
    }
    [[nodiscard]] test::child& process(std::size_t i) { return members_.at(i).process; }
    [[nodiscard]] slot& of(std::size_t i, std::uint32_t lock = 0)
    {
        return stage_->slots.at(i * options_.locks + lock);
    }
    [[nodiscard]] stage& shared() { return *stage_; }
    [[nodiscard]] std::uint64_t sections() const;
    /// Returns: how many attempts threw.
    [[nodiscard]] std::uint64_t failures() const;
    /// Returns: how many were killed.
    [[nodiscard]] std::size_t killed() const noexcept { return killed_; }
    /// Returns: whether this process has been there from the beginning to the end.
    [[nodiscard]] bool lasted(std::size_t i) const { return members_.at(i).generation == 0; }

    [[nodiscard]] std::vector<record> records() const { return read_journals(folder_); }

private:
    struct member {
        test::child process;
        std::size_t generation = 0;
    };

    void start(std::size_t i);
    /// Returns: how many locks one thread may have, which is not known here; 0: it has its own.
    [[nodiscard]] std::uint32_t any_of() const noexcept
    {
        if (options_.kind == primitive::semaphore) return options_.permits;
        return options_.kind == primitive::several ? options_.members : 0;
    }
    [[nodiscard]] bool one_lock(std::size_t i) const noexcept
    {
        return options_.one_lock || (options_.threads_of_last != 0 && i + 1 == size());
    }
    void note_about(event what, std::size_t i, std::uint64_t value = 0);

    crew_options options_;
    std::filesystem::path folder_;
    test::shared<stage> stage_;
    journal journal_;
    std::atomic<std::uint32_t> next_client_{1};
    std::atomic<std::size_t> killed_{0};
    std::vector<member> members_;
};

}  // namespace holdfast::faults
