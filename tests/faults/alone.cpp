// SPDX-License-Identifier: MIT
#include "alone.hpp"

#include <support/shared.hpp>

#include <unistd.h>

#include <thread>

namespace holdfast::faults {

test::child start_alone(duty const& what, std::chrono::milliseconds length, std::vector<std::string> const& environment)
{
    std::vector<std::string> const words{"holdfast_faults",     "--alone",
                                         what.where.servers[0], what.folder.string(),
                                         std::to_string(what.clients[0]), std::to_string(length.count())};
    auto const pointers = [](std::vector<std::string> const& texts) {
        std::vector<char const*> all;
        for (auto const& one : texts) all.push_back(one.c_str());
        return all;
    };
    auto arguments = pointers(words);
    arguments.push_back(nullptr);
    std::vector<char const*> variables;
    for (auto const* const* one = ::environ; *one != nullptr; ++one) variables.push_back(*one);
    for (auto const* const one : pointers(environment)) variables.push_back(one);
    variables.push_back(nullptr);
    return test::child::fork([&] {
        ::execve("/proc/self/exe", const_cast<char* const*>(arguments.data()), const_cast<char* const*>(variables.data()));
        return 127;
    });
}

int work_alone(std::string const& server, std::string const& folder, std::uint32_t client, std::chrono::milliseconds length)
{
    test::shared<stage> on;
    std::jthread const end{[&] {
        std::this_thread::sleep_for(length);
        on->stop = true;
    }};
    return work({.where = {.servers = {server}}, .folder = folder, .clients = {client}}, *on);
}

}  // namespace holdfast::faults
