// SPDX-License-Identifier: MIT
//
// Programs that contend with the real kazoo and the real Curator.
#pragma once

#include "support/process.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
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

inline std::string beside_tests(std::string const& file) { return HOLDFAST_TEST_FOLDER "/" + file; }

inline child kazoo(std::vector<std::string> words, std::string const& output)
{
    words.insert(words.begin(), {"/usr/bin/python3", beside_tests("kazoo_rival.py")});
    return start(std::move(words), output);
}

inline child curator(std::vector<std::string> words, std::string const& output)
{
    std::string jars;
    for (auto const* const jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                                  "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop"})
        jars += "/usr/share/java/" + std::string{jar} + ".jar:";
    words.insert(words.begin(), {"java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                                 "-cp", jars, beside_tests("CuratorRival.java")});
    return start(std::move(words), output);
}

inline std::string content(std::string const& path)
{
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace holdfast::test
