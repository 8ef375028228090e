// SPDX-License-Identifier: MIT
//
//   zookeeper_classes FILE
//
// Has a ZooKeeper server write the classes that it loaded to FILE, as the Java machine wants to have them in its
// memory: one that starts with them takes two thirds of the processor time, and the tests start some hundreds. A Java
// machine that cannot do that is no error: there is no FILE then, and the servers start as they always did.
#include "eventually.hpp"
#include "zookeeper_server.hpp"

#include <csignal>
#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

using namespace holdfast::test;

int main(int argc, char** argv)
try {
    if (argc != 2) {
        std::fputs("zookeeper_classes: into which file?\n", stderr);
        return 2;
    }
    std::filesystem::path const file = argv[1];
    std::filesystem::remove(file);
    zookeeper_options options;
    options.java = {"-XX:ArchiveClassesAtExit=" + file.string()};
    zookeeper_server server{options};
    ::kill(server.pid(), SIGTERM);
    if (!eventually([&] { return !server.running(); }, std::chrono::minutes{5}) || !exists(file)) {
        std::fputs("zookeeper_classes: this Java machine writes none\n", stderr);
        std::filesystem::remove(file);
    }
    return 0;
} catch (std::exception const& e) {
    std::fprintf(stderr, "zookeeper_classes: none are written: %s\n", e.what());
    return 0;
}
