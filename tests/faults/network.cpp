// SPDX-License-Identifier: MIT
#include "network.hpp"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace holdfast::faults {
namespace {

/// Effects: runs `nft` with a command. Returns: whether it succeeded.
bool nft(std::string const& command)
{
    char const* const words[] = {"nft", command.c_str(), nullptr};
    auto const pid = ::fork();
    if (pid == 0) {
        int const nowhere = ::open("/dev/null", O_RDWR);
        ::dup2(nowhere, STDOUT_FILENO);
        ::dup2(nowhere, STDERR_FILENO);
        ::execvp(words[0], const_cast<char* const*>(words));
        ::execv("/usr/sbin/nft", const_cast<char* const*>(words));
        ::_exit(127);
    }
    int status = -1;
    while (pid > 0 && ::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool write_to(char const* file, std::string const& text)
{
    return static_cast<bool>(std::ofstream{file} << text << std::flush);
}

bool leave_network()
{
    if (::unshare(CLONE_NEWNET) == 0) return true;
    auto const user = ::getuid();
    auto const group = ::getgid();
    return ::unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_to("/proc/self/setgroups", "deny") &&
           write_to("/proc/self/uid_map", "0 " + std::to_string(user) + " 1") &&
           write_to("/proc/self/gid_map", "0 " + std::to_string(group) + " 1");
}

bool raise_loopback()
{
    int const fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ::ifreq request{};
    std::string_view const name = "lo";
    std::copy(name.begin(), name.end(), request.ifr_name);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    bool const up = fd >= 0 && ::ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (fd >= 0) ::close(fd);
    return up;
}

}  // namespace

bool enter_own_network()
{
    if (!leave_network()) return false;
    if (!raise_loopback()) throw std::runtime_error{"the loopback device of a network of our own cannot be used"};
    return nft("add table inet holdfast; add set inet holdfast cut { type inet_service; }; "
               "add chain inet holdfast in { type filter hook input priority 0; }; "
               "add rule inet holdfast in tcp dport @cut drop; add rule inet holdfast in tcp sport @cut drop");
}

ways::ways(std::vector<std::uint16_t> ports, bool own_network) : ports_{std::move(ports)}
{
    if (!own_network)
        for (auto const port : ports_) proxies_.emplace_back(port);
}

std::string ways::url(std::size_t i) const
{
    return proxies_.empty() ? "redis://127.0.0.1:" + std::to_string(ports_.at(i)) : proxies_.at(i).url();
}

std::vector<std::string> ways::urls() const
{
    std::vector<std::string> all;
    for (std::size_t i = 0; i < ports_.size(); ++i) all.push_back(url(i));
    return all;
}

void ways::cut(std::size_t i)
{
    if (!proxies_.empty())
        proxies_[i].blackhole();
    else if (!nft("add element inet holdfast cut { " + std::to_string(ports_.at(i)) + " }"))
        throw std::runtime_error{"nft failed"};
}

void ways::mend(std::size_t i)
{
    if (!proxies_.empty())
        proxies_[i].pass();
    else if (!nft("delete element inet holdfast cut { " + std::to_string(ports_.at(i)) + " }"))
        throw std::runtime_error{"nft failed"};
}

}  // namespace holdfast::faults
