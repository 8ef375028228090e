// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {

/// Returns: the words that run the Java program `source` with Curator, as Debian has it; `machine`: arguments of the
/// Java machine.
inline std::vector<std::string> java_with_curator(std::string source, std::vector<std::string> machine)
{
    std::string jars;
    for (auto const* const jar : {"curator-recipes", "curator-framework", "curator-client", "zookeeper",
                                  "zookeeper-jute", "guava", "slf4j-api", "slf4j-nop"})
        jars += "/usr/share/java/" + std::string{jar} + ".jar:";
    std::vector<std::string> words{"java", "-XX:+UseSerialGC", "-XX:-UsePerfData"};
    words.insert(words.end(), machine.begin(), machine.end());
    words.insert(words.end(), {"-cp", std::move(jars), std::move(source)});
    return words;
}

}  // namespace holdfast::test
