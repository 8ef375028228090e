// SPDX-License-Identifier: MIT
#include "machine.hpp"

#include "support/redis_server.hpp"

#include <holdfast/core/version.hpp>

#include <hiredis/hiredis.h>
#include <sys/utsname.h>

#include <fstream>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::benchmark {
namespace {

/// Returns: what stands behind the first `field` of `text`, up to the end of the line.
std::string value_of(std::string const& text, std::string_view field)
{
    auto const at = text.find(field);
    if (at == std::string::npos) return "unknown";
    auto const begin = at + field.size();
    return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

std::string version(int major, int minor, int patch)
{
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

void describe_machine(report& to, std::string const& commit)
{
    std::ifstream cpuinfo{"/proc/cpuinfo"};
    std::string const cpus{std::istreambuf_iterator<char>{cpuinfo}, {}};
    utsname system{};
    ::uname(&system);
    test::redis_server server;

    to.machine("processors", std::to_string(std::thread::hardware_concurrency()));
    to.machine("processor", value_of(cpus, "model name\t: "));
    to.machine("kernel", std::string{system.sysname} + " " + system.release);
    to.machine("redis", value_of(server.command({"INFO", "server"}).text, "redis_version:"));
    to.machine("hiredis", version(HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH));
    to.machine("compiler", HOLDFAST_COMPILER_NAME);
    to.machine("holdfast", version(HOLDFAST_VERSION_MAJOR, HOLDFAST_VERSION_MINOR, HOLDFAST_VERSION_PATCH));
    to.machine("commit", commit);
}

}  // namespace holdfast::benchmark
