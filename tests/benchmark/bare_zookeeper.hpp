// SPDX-License-Identifier: MIT
#pragma once

#include <zookeeper/zookeeper.h>

#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::benchmark {

/// The least that a lock on ZooKeeper must do, by the bare C client, one call after the other: create a node, look who
/// is first, delete it.
class bare_zookeeper_lock {
public:
    bare_zookeeper_lock(std::string const& servers, std::string path) : path_{std::move(path)}
    {
        zh_ = ::zookeeper_init2(
            servers.c_str(),
            [](zhandle_t*, int, int state, char const*, void* self) {
                static_cast<bare_zookeeper_lock*>(self)->connected_ = state == ZOO_CONNECTED_STATE;
            },
            10'000, nullptr, this, 0, [](char const*) {});
        while (zh_ && !connected_) std::this_thread::sleep_for(std::chrono::milliseconds{1});
        ::zoo_set_servers_resolution_delay(zh_, -1);  // as this library does: names are looked up when connecting
        require(::zoo_create(zh_, path_.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0));
    }
    bare_zookeeper_lock(bare_zookeeper_lock const&) = delete;
    bare_zookeeper_lock& operator=(bare_zookeeper_lock const&) = delete;
    ~bare_zookeeper_lock() { ::zookeeper_close(zh_); }

    void lock()
    {
        auto const prefix = path_ + "/_c_01234567-89ab-cdef-0123-456789abcdef-lock-";
        require(::zoo_create(zh_, prefix.c_str(), "host", 4, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL,
                             node_.data(), static_cast<int>(node_.size())));
        String_vector children{};
        require(::zoo_get_children(zh_, path_.c_str(), 0, &children));
        if (children.count != 1) throw std::runtime_error{"somebody else has the lock"};
        ::deallocate_String_vector(&children);
    }

    void unlock() { require(::zoo_delete(zh_, node_.data(), -1)); }

private:
    static void require(int rc)
    {
        if (rc != ZOK) throw std::runtime_error{::zerror(rc)};
    }

    std::string path_;
    zhandle_t* zh_ = nullptr;
    std::atomic<bool> connected_{false};
    std::array<char, 256> node_{};
};

}  // namespace holdfast::benchmark
