// SPDX-License-Identifier: MIT
//
// Programs that contend with the real kazoo and the real Curator.
#pragma once

#include "support/process.hpp"
#include "support/rival.hpp"

#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

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

}  // namespace holdfast::test
