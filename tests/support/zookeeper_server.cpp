// SPDX-License-Identifier: MIT
#include "zookeeper_server.hpp"

#include "eventually.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
// Three Java machines that share a processor with busier processes need minutes to start.
constexpr auto java_start_limit = 5min;
constexpr std::chrono::milliseconds shortest_question{250};
constexpr std::chrono::milliseconds longest_question{16'000};

// Between fork and exec: calls nothing that could wait for a lock of another thread.
int become(char const* const* words, char const* log)
{
    int const out = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    ::dup2(out, STDOUT_FILENO);
    ::dup2(out, STDERR_FILENO);
    if (::syscall(SYS_close_range, 3U, ~0U, 0U) != 0)
        for (int fd = 3; fd < 4096; ++fd) ::close(fd);
    ::execvp(words[0], const_cast<char* const*>(words));
    ::_exit(127);
}

bool ready(int fd, short events, std::chrono::milliseconds limit)
{
    ::pollfd one{fd, events, 0};
    return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

/// A question to a server that starts may never be answered, one to a slow server needs time: of a question that took
/// all its time the next one has twice as much.
class patience {
public:
    explicit patience(std::chrono::milliseconds& limit) : limit_{limit} {}
    patience(patience const&) = delete;
    patience& operator=(patience const&) = delete;
    ~patience()
    {
        if (std::chrono::steady_clock::now() - asked_ >= limit_) limit_ = std::min(2 * limit_, longest_question);
    }

private:
    std::chrono::milliseconds& limit_;
    std::chrono::steady_clock::time_point asked_ = std::chrono::steady_clock::now();
};

}  // namespace

zookeeper_server::zookeeper_server(zookeeper_options options) : options_{std::move(options)}
{
    launch();
    await();
}

zookeeper_server::zookeeper_server(member_tag, zookeeper_options options, bound_socket at, int id)
    : options_{std::move(options)}, at_{std::move(at)}, id_{id}
{
    std::ofstream{folder() / "myid"} << id_ << '\n';
    launch();
}

std::string zookeeper_server::log() const
{
    std::ifstream file{folder() / "zookeeper.log"};
    return {std::istreambuf_iterator<char>{file}, {}};
}

void zookeeper_server::restart()
{
    kill();
    launch();
    if (id_ == 0) await();
}

namespace {

std::string const slash{"\0\0\0\1/", 5};

/// Returns: that of the first `size` bytes of `text`.
std::uint32_t adler_32(std::string const& text, std::size_t size)
{
    std::uint32_t a = 1;
    std::uint32_t b = 0;
    for (std::size_t i = 0; i < size; ++i) {
        a = (a + static_cast<unsigned char>(text[i])) % 65521;
        b = (b + a) % 65521;
    }
    return (b << 16U) | a;
}

}  // namespace

void zookeeper_server::restart_with_sequence(std::string const& path, std::int32_t value)
{
    restart();  // writes a snapshot of all there is
    kill();
    auto const data = folder() / "version-2";
    std::filesystem::path newest;
    for (auto const& file : std::filesystem::directory_iterator{data}) {
        auto const name = file.path().filename().string();
        if (name.starts_with("log.")) std::filesystem::remove(file.path());
        if (name.starts_with("snapshot.") && (newest.empty() || last_write_time(file) > last_write_time(newest)))
            newest = file.path();
    }
    std::string text;
    {
        std::ifstream file{newest, std::ios::binary};
        text.assign(std::istreambuf_iterator<char>{file}, {});
    }
    // A seal is the Adler-32 of all before it, and a path that is a slash: one at the end, in later versions more of
    // them.
    std::vector<std::size_t> seals;
    for (auto at = text.find(slash, 8); at != std::string::npos; at = text.find(slash, at + 1)) {
        std::uint64_t seal = 0;
        for (std::size_t i = at - 8; i < at; ++i) seal = (seal << 8U) | static_cast<unsigned char>(text[i]);
        if (seal == adler_32(text, at - 8)) seals.push_back(at - 8);
    }
    if (seals.empty()) throw std::runtime_error{"a snapshot of ZooKeeper's without a seal"};
    auto const number = [&](std::size_t at, std::uint64_t what, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            text.at(at + i) = static_cast<char>((what >> (8 * (size - 1 - i))) & 0xFFU);
    };
    auto const length = [&](std::size_t at) {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < 4; ++i) sum = (sum << 8U) | static_cast<unsigned char>(text.at(at + i));
        return sum;
    };
    // A node: path and data, each behind its length, its ACL, czxid, mzxid, ctime, mtime, version, cversion, ...
    std::string head(4, '\0');
    head[3] = static_cast<char>(path.size());
    auto const behind = text.find(head + path) + 4 + path.size();
    number(behind + 4 + (length(behind) == 0xFFFFFFFFU ? 0 : length(behind)) + 8 + 4 * 8 + 4,
           static_cast<std::uint32_t>(value), 4);
    for (auto const at : seals) number(at, adler_32(text, at), 8);
    std::ofstream{newest, std::ios::binary} << text;
    launch();
    await();
}

void zookeeper_server::launch()
{
    auto const config = (folder() / "zoo.cfg").string();
    {
        std::ofstream file{config};
        file << "tickTime=" << options_.tick.count() << "\ndataDir=" << folder().string() << "\nclientPort=" << port()
             << "\nclientPortAddress=127.0.0.1\nmaxClientCnxns=0\n4lw.commands.whitelist=*\nmaxSessionTimeout="
             << options_.longest_session.count() << '\n';
        for (auto const& line : options_.config) file << line << '\n';
    }
    // Small and quick to start; what it writes is not worth waiting for the disk.
    std::vector<std::string> words{"java",
                                   "-Xmx64m",
                                   "-XX:+UseSerialGC",
                                   "-XX:TieredStopAtLevel=1",
                                   "-Xshare:auto",
                                   "-XX:-UsePerfData",
                                   "-Dzookeeper.forceSync=no",
                                   "-Dzookeeper.admin.enableServer=false",
                                   "-Dzookeeper.extendedTypesEnabled=true",
                                   "-Dzookeeper.digest.enabled=false"};
#ifdef HOLDFAST_TEST_ZOOKEEPER_CLASSES
    if (std::filesystem::exists(HOLDFAST_TEST_ZOOKEEPER_CLASSES))
        words.emplace_back("-XX:SharedArchiveFile=" HOLDFAST_TEST_ZOOKEEPER_CLASSES);
#endif
    words.insert(words.end(), options_.java.begin(), options_.java.end());
    for (auto const* const word : {"-cp", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", config.c_str()})
        words.emplace_back(word);
    std::vector<char const*> pointers;
    for (auto const& word : words) pointers.push_back(word.c_str());
    pointers.push_back(nullptr);
    auto const log = (folder() / "zookeeper.log").string();
    process_ = child::fork([&] { return become(pointers.data(), log.c_str()); });
}

void zookeeper_server::await()
{
    auto limit = shortest_question;
    bool up = false;
    auto const look = [&] {
        patience const with{limit};
        up = running() && serves(limit);
        return up || !running();
    };
    static_cast<void>(eventually(look, java_start_limit));
    if (!up) throw std::runtime_error{"ZooKeeper does not serve: " + log()};
}

std::string zookeeper_server::ask(std::string_view word, std::chrono::milliseconds limit) const
{
    auto const fd = start_connecting(port());
    if (!fd || !ready(fd.get(), POLLOUT, limit)) return {};
    if (::send(fd.get(), word.data(), word.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(word.size())) return {};
    std::string answer;
    std::array<char, 4096> part{};
    for (;;) {
        if (!ready(fd.get(), POLLIN, limit)) return {};
        auto const got = ::recv(fd.get(), part.data(), part.size(), 0);
        if (got <= 0) return answer;
        answer.append(part.data(), static_cast<std::size_t>(got));
    }
}

long zookeeper_server::figure(std::string_view word, std::string_view name) const
{
    auto const answer = ask(word);
    auto const at = answer.find(name);
    return at == std::string::npos ? -1 : std::strtol(answer.c_str() + at + name.size(), nullptr, 10);
}

zookeeper_ensemble::zookeeper_ensemble(std::size_t size, zookeeper_options const& options)
{
    auto all = options;
    // Of two lines for one setting the last counts: those of `options`.
    all.config.insert(all.config.begin(), {"initLimit=200", "syncLimit=100"});
    for (std::size_t i = 1; i <= size; ++i) {
        quorum_at_.push_back(bind_free_port());
        election_at_.push_back(bind_free_port());
        all.config.push_back("server." + std::to_string(i) + "=127.0.0.1:" + std::to_string(quorum_at_.back().port) +
                             ':' + std::to_string(election_at_.back().port));
    }
    for (std::size_t i = 0; i < size; ++i)
        servers_.push_back(
            zookeeper_server{zookeeper_server::member_tag{}, all, bind_free_port(), static_cast<int>(i) + 1});
    for (auto& server : servers_) server.await();
}

std::string zookeeper_ensemble::addresses() const
{
    std::string all;
    for (auto const& server : servers_) all.append(all.empty() ? "" : ",").append(server.address());
    return all;
}

std::size_t zookeeper_ensemble::leader()
{
    std::size_t found = size();
    auto limit = shortest_question;
    auto const look = [&] {
        patience const with{limit};
        for (std::size_t i = 0; i < size(); ++i)
            if (servers_[i].running() && !servers_[i].paused() && servers_[i].leads(limit)) {
                found = i;
                return true;
            }
        return false;
    };
    if (!eventually(look, java_start_limit)) throw std::runtime_error{"the ensemble has no leader"};
    return found;
}

}  // namespace holdfast::test
