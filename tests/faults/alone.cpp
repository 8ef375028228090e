// SPDX-License-Identifier: MIT
#include "alone.hpp"

#include <support/shared.hpp>

#include <holdfast/core/clock.hpp>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <thread>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;

std::filesystem::path file_of_clocks(std::filesystem::path const& folder) { return folder / "clocks_seen"; }

}  // namespace

test::child start_alone(duty const& what, std::chrono::milliseconds length, std::vector<std::string> const& environment)
{
    std::vector<std::string> const words{"holdfast_faults",
                                         "--alone",
                                         what.where.servers[0],
                                         what.folder.string(),
                                         std::to_string(what.clients[0]),
                                         std::to_string(length.count()),
                                         std::to_string(what.where.ttl.count()),
                                         std::to_string(what.where.operation_timeout.count())};
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
        ::execve("/proc/self/exe", const_cast<char* const*>(arguments.data()),
                 const_cast<char* const*>(variables.data()));
        return 127;
    });
}

std::vector<std::int64_t> wall_clocks_seen(std::filesystem::path const& folder)
{
    std::ifstream file{file_of_clocks(folder)};
    return {std::istream_iterator<std::int64_t>{file}, {}};
}

std::int64_t wall_clock_ahead()
{
    auto const in_ms = [](auto d) { return std::chrono::duration_cast<std::chrono::milliseconds>(d).count(); };
    return in_ms(std::chrono::system_clock::now().time_since_epoch()) - in_ms(boot_clock::now().time_since_epoch());
}

int work_alone(place const& where, std::string const& folder, std::uint32_t client, std::chrono::milliseconds length)
{
    test::shared<stage> on;
    std::jthread const end{[&] {
        std::ofstream seen{file_of_clocks(folder)};
        std::optional<std::int64_t> last;
        for (auto const until = boot_clock::now() + length; boot_clock::now() < until;
             std::this_thread::sleep_for(5ms)) {
            auto const ahead = wall_clock_ahead();
            if (last && std::abs(ahead - *last) < 1000) continue;
            seen << ahead << '\n';
            last = ahead;
        }
        seen.close();
        on->stop = true;
    }};
    return work({.where = where, .folder = folder, .clients = {client}}, *on);
}

}  // namespace holdfast::faults
