// SPDX-License-Identifier: MIT
//
// A crowd of another library: processes that say "ready", are told to go, and say what they had.
#pragma once

#include "crowd_of.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::benchmark {

/// A program, with pipes to it.
class foreign_process {
public:
    explicit foreign_process(std::vector<std::string> const& words)
    {
        if (::pipe2(to_.data(), O_CLOEXEC) != 0 || ::pipe2(from_.data(), O_CLOEXEC) != 0)
            throw std::runtime_error{"pipe2"};
        process_ = test::child::fork([&]() -> int {
            std::vector<char*> arguments;
            for (auto const& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
            arguments.push_back(nullptr);
            ::dup2(to_[0], 0);
            ::dup2(from_[1], 1);
            ::execvp(arguments[0], arguments.data());
            return 127;
        });
        ::close(to_[0]);
        ::close(from_[1]);
        output_.reset(::fdopen(from_[0], "r"));
    }

    foreign_process(foreign_process&&) = delete;
    foreign_process& operator=(foreign_process&&) = delete;
    ~foreign_process() { ::close(to_[1]); }

    void go()
    {
        if (::write(to_[1], "go\n", 3) != 3) throw std::runtime_error{"a process of the crowd is gone"};
    }

    /// Returns: the next line that it says; empty if it has ended.
    [[nodiscard]] std::string line()
    {
        std::array<char, 256> text{};
        return std::fgets(text.data(), text.size(), output_.get()) ? std::string{text.data()} : std::string{};
    }

private:
    struct closer {
        void operator()(std::FILE* f) const noexcept { std::fclose(f); }
    };

    std::array<int, 2> to_{};
    std::array<int, 2> from_{};
    test::child process_;
    std::unique_ptr<std::FILE, closer> output_;
};

/// Effects: runs `command`, with the seconds, the length of a section in µs and the ports behind it, in each process.
inline crowd_result run_foreign_crowd(crowd_options const& o, std::vector<std::string> command)
{
    std::chrono::duration<double> const seconds = o.time;
    command.push_back(std::to_string(seconds.count()));
    command.push_back(std::to_string(o.section.count()));
    for (auto const port : o.servers) command.push_back(std::to_string(port));
    std::vector<std::unique_ptr<foreign_process>> processes;
    for (unsigned i = 0; i < o.processes; ++i) processes.push_back(std::make_unique<foreign_process>(command));
    for (auto const& one : processes)
        if (one->line() != "ready\n") throw std::runtime_error{command[0] + " cannot be run"};
    for (auto const& one : processes) one->go();
    std::vector<double> sections;
    double longest = 0;
    for (auto const& one : processes) {
        double count = 0;
        double waited = 0;
        if (std::sscanf(one->line().c_str(), "%lf %lf", &count, &waited) != 2)
            throw std::runtime_error{command[0] + " ended early"};
        sections.push_back(count);
        longest = std::max(longest, waited);
    }
    return sum_up(sections, longest, seconds.count());
}

}  // namespace holdfast::benchmark
