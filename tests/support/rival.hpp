// SPDX-License-Identifier: MIT
//
// Programs with other libraries, which contend for the same lock.
#pragma once

#include "process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace holdfast::test {

/// Effects: starts a program with its output in the file `output`.
inline child start(std::vector<std::string> words, std::string const& output)
{
    std::vector<char*> pointers;
    for (auto& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return child::fork([&] {
        ::dup2(::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
        ::dup2(::open("/dev/zero", O_RDONLY), STDIN_FILENO);  // an input that does not end
        ::execvp(pointers[0], pointers.data());
        return 127;
    });
}

/// Returns: the path of a file in the folder of the tests that include this.
inline std::string beside_tests(std::string const& file) { return HOLDFAST_TEST_FOLDER "/" + file; }

/// Returns: what is in the file; empty if there is none.
inline std::string content(std::string const& path)
{
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace holdfast::test
