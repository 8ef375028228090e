// SPDX-License-Identifier: MIT
#pragma once

#include <unistd.h>

#include <cstdio>
#include <string>

namespace quickstart {

/// Lines that stay, and below them, on a terminal, one that changes.
class progress {
public:
    progress() = default;
    progress(progress const&) = delete;
    progress& operator=(progress const&) = delete;
    ~progress() { live(""); }

    void say(std::string const& line)
    {
        live("");
        std::puts(line.c_str());
        std::fflush(stdout);
    }

    void live(std::string const& line)
    {
        if (!terminal_ || (line.empty() && !shown_)) return;
        std::printf("\r\033[K%s", line.c_str());
        std::fflush(stdout);
        shown_ = !line.empty();
    }

private:
    bool const terminal_ = ::isatty(STDOUT_FILENO) == 1;
    bool shown_ = false;
};

}  // namespace quickstart
