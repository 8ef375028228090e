// SPDX-License-Identifier: MIT
#pragma once

#include "loopback.hpp"
#include "process.hpp"
#include "temporary_folder.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

struct zookeeper_options {
    /// The unit of its time: sessions of 2 of them at least are granted, and end within one after their time.
    std::chrono::milliseconds tick{100};
    /// What is granted at most.
    std::chrono::milliseconds longest_session = std::chrono::hours{1};
    /// More lines of zoo.cfg, for example "maxClientCnxns=4".
    std::vector<std::string> config = {};
    /// More arguments of the Java machine, for example "-Dznode.container.checkIntervalMs=100".
    std::vector<std::string> java = {};
};

/// A real ZooKeeper server on a free port of 127.0.0.1, with its data in a temporary folder. It serves clients when the
/// constructor returns and never outlives this process.
class zookeeper_server {
public:
    /// Throws: std::runtime_error with the server's log when it does not serve within 5 minutes.
    explicit zookeeper_server(zookeeper_options options = {});

    [[nodiscard]] std::uint16_t port() const noexcept { return at_.port; }
    /// Returns: "127.0.0.1:port", a connection string.
    [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
    [[nodiscard]] ::pid_t pid() const noexcept { return process_.pid(); }
    [[nodiscard]] bool running() { return process_.running(); }
    [[nodiscard]] bool paused() const noexcept { return process_.paused(); }
    [[nodiscard]] std::string log() const;
    [[nodiscard]] std::filesystem::path const& folder() const noexcept { return folder_->path(); }

    /// SIGSTOP and SIGCONT. While paused the kernel still accepts connections and data for it.
    void pause() { process_.pause(); }
    void resume() { process_.resume(); }
    /// SIGKILL, and gone when this returns.
    void kill() { process_.kill(); }
    /// Effects: killed if it still runs; comes back on the same port with its data.
    void restart();

    /// Effects: restarts it, with the counter at `value` from which the children of the node at `path` have their
    /// sequence.
    void restart_with_sequence(std::string const& path, std::int32_t value);

    /// Effects: sends a word of four letters ("srvr", "mntr", "cons", "wchs") over a connection of its own.
    /// Returns: the answer; empty where there is none in time.
    [[nodiscard]] std::string ask(std::string_view word,
                                  std::chrono::milliseconds limit = std::chrono::seconds{30}) const;

    /// Returns: how many watches it has.
    [[nodiscard]] long watches() const { return figure("wchs", "Total watches:"); }
    /// Returns: how many packets it was ever sent; each question is one, too.
    [[nodiscard]] long packets() const { return figure("mntr", "zk_packets_received\t"); }

    /// Returns: whether it serves clients: alone, or as a member of a quorum.
    [[nodiscard]] bool serves(std::chrono::milliseconds limit = std::chrono::seconds{2}) const
    {
        return ask("srvr", limit).find("Mode: ") != std::string::npos;
    }
    [[nodiscard]] bool leads(std::chrono::milliseconds limit = std::chrono::seconds{2}) const
    {
        return ask("srvr", limit).find("Mode: leader") != std::string::npos;
    }

private:
    friend class zookeeper_ensemble;
    struct member_tag {};

    zookeeper_server(member_tag, zookeeper_options options, bound_socket at, int id);
    void launch();
    void await();
    /// Returns: the number behind `name` in the answer to `word`; -1 where there is none.
    [[nodiscard]] long figure(std::string_view word, std::string_view name) const;

    zookeeper_options options_;
    std::unique_ptr<temporary_folder> folder_ = std::make_unique<temporary_folder>();
    bound_socket at_ = bind_free_port();  // nobody else is given the port while the server starts, or is down
    int id_ = 0;
    child process_;  // last: it ends before its folder goes
};

/// Servers that form a quorum, on free ports of 127.0.0.1.
class zookeeper_ensemble {
public:
    /// Throws: std::runtime_error when they do not serve within 5 minutes.
    explicit zookeeper_ensemble(std::size_t size = 3, zookeeper_options const& options = {});

    [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
    [[nodiscard]] zookeeper_server& operator[](std::size_t i) { return servers_.at(i); }
    [[nodiscard]] auto begin() noexcept { return servers_.begin(); }
    [[nodiscard]] auto end() noexcept { return servers_.end(); }

    /// Returns: all addresses, as a connection string.
    [[nodiscard]] std::string addresses() const;

    /// Returns: the port on which the others follow server `i` while it leads.
    [[nodiscard]] std::uint16_t quorum_port(std::size_t i) const { return quorum_at_.at(i).port; }

    /// Effects: waits for a leader. Returns: its number. Throws: std::runtime_error when there is none within 5
    /// minutes.
    [[nodiscard]] std::size_t leader();

private:
    std::vector<bound_socket> quorum_at_;
    std::vector<bound_socket> election_at_;
    std::vector<zookeeper_server> servers_;
};

}  // namespace holdfast::test
