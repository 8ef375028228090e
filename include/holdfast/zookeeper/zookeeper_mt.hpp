// SPDX-License-Identifier: MIT
//
// The only header that includes ZooKeeper's C client.
#pragma once

#ifndef THREADED
#define THREADED
#endif

#include <holdfast/core/abi.hpp>
#include <holdfast/core/signals_blocked.hpp>
#include <holdfast/zookeeper/client_log.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <sys/syscall.h>
#include <unistd.h>

// Conan's package has no folder for it. GCC 12 does not miss the same file a second time: hence the other name.
#if __has_include(<zookeeper/zookeeper.h>)
#include <zookeeper/zookeeper.h>
#elif __has_include(<zookeeper.h>)
#include <zookeeper.h>
#else
#include "zookeeper/zookeeper.h, of ZooKeeper's C client (Debian: libzookeeper-mt-dev)"
#endif

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// A handle of the C client: one session with the servers, over any of them that it reaches.
class zookeeper_mt final : public transport {
public:
    /// Effects: looks up the names of the servers and starts the client's two threads, which connect. It does so in a
    /// thread of its own: names may take many seconds, and the session has times to keep. Throws: `std::system_error`
    /// if that thread cannot be started. Sets `missing` if the client's threads cannot be.
    zookeeper_mt(std::string const& hosts, std::chrono::milliseconds timeout, transport_events& to,
                 std::atomic<bool>& missing)
        : to_{&to}
    {
        holdfast::detail::signals_blocked const while_starting;
        opener_ = std::thread{[this, &hosts, timeout, &missing] {
            missing = !spare_threads();
            if (!missing)
                zh_ = ::zookeeper_init2(hosts.c_str(), &on_event, static_cast<int>(timeout.count()), nullptr, this, 0,
                                        &client_log::write);
            if (!zh_.load()) to_->on_state(transport_events::state::unopened, 0, {});
        }};
    }

    /// Waits 1.5 s at most for a server's answer, and for names that are being looked up. Must not be called from a
    /// thread of the C client.
    ~zookeeper_mt() override
    {
        opener_.join();
        if (auto* const zh = zh_.load()) ::zookeeper_close(zh);
    }

    bool authenticate(std::string const& scheme, std::string const& credential) override
    {
        auto const size = static_cast<int>(credential.size());
        return ::zoo_add_auth(
                   zh_, scheme.c_str(), credential.data(), size, [](int, void const*) {}, nullptr) == ZOK;
    }

    bool send(request const& r, transport_events::call& as, bool creator_only) override
    {
        as.to = to_;
        auto const* const path = r.path.c_str();
        auto const size = static_cast<int>(r.content.size());
        auto const* const acl = creator_only ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
        switch (r.what) {
        case request::kind::create_sequential:
            return create(path, r.content.data(), size, acl, ZOO_EPHEMERAL_SEQUENTIAL, as);
        case request::kind::create_plain: return create(path, r.content.data(), size, acl, ZOO_EPHEMERAL, as);
        case request::kind::create_container: return create(path, "", 0, acl, ZOO_CONTAINER, as);
        case request::kind::create_persistent: return create(path, r.content.data(), size, acl, ZOO_PERSISTENT, as);
        case request::kind::children: return ::zoo_aget_children(zh_, path, 0, &on_children, &as) == ZOK;
        case request::kind::data: return ::zoo_awget(zh_, path, nullptr, nullptr, &on_data, &as) == ZOK;
        case request::kind::watch: return ::zoo_awget(zh_, path, &on_event, nullptr, &on_data, &as) == ZOK;
        case request::kind::watch_children:
            return ::zoo_awget_children(zh_, path, &on_event, nullptr, &on_children, &as) == ZOK;
        case request::kind::erase: return ::zoo_adelete(zh_, path, -1, &on_done, &as) == ZOK;
        case request::kind::write: return ::zoo_aset(zh_, path, r.content.data(), size, -1, &on_stat, &as) == ZOK;
        case request::kind::touch: return ::zoo_awexists(zh_, "/", nullptr, nullptr, &on_stat, &as) == ZOK;
        // The C client cannot check a version by itself. A quorum agrees on a delete that is bound to fail, as on any
        // other. Below a node that does not exist, it needs no right, the lack of which a server may tell by itself.
        case request::kind::confirm:
            return ::zoo_adelete(zh_, "/zookeeper/holdfast/confirm", impossible_version, &on_done, &as) == ZOK;
        // The server would not be told of the removal of one watcher alone. (The function's type is wrong in the C
        // client's header; it is used as it is.)
        case request::kind::unwatch:
            return ::zoo_aremove_all_watches(zh_, path, ZWATCHTYPE_ANY, 0,
                                             reinterpret_cast<void_completion_t*>(&on_done), &as) == ZOK;
        }
        return false;
    }

private:
    /// Returns: whether the system has the client's two threads for this process: it starts that many at a time, and
    /// ends them. The C client starts its threads with an assertion that ends the program if one cannot be started.
    [[nodiscard]] static bool spare_threads() noexcept
    {
        std::array<long, 2> ids{};
        std::mutex started;
        std::array<std::jthread, ids.size()> threads;
        bool all = true;
        {
            std::scoped_lock const guard{started};  // unlocked before they are joined
            for (std::size_t i = 0; all && i < ids.size(); ++i) try {
                    threads[i] = std::jthread{[&started, &id = ids[i]] {
                        id = ::syscall(SYS_gettid);
                        std::scoped_lock const wait{started};
                    }};
                } catch (std::exception const&) {
                    all = false;
                }
        }
        threads = {};
        // A joined thread counts for a moment more, until the system has forgotten it.
        for (auto const id : ids)
            for (int tries = 0; id != 0 && tries < 1'000 && ::syscall(SYS_tgkill, ::getpid(), id, 0) == 0; ++tries)
                std::this_thread::sleep_for(std::chrono::microseconds{100});
        return all;
    }

    static constexpr int impossible_version = 0x7FFFFFFE;

    bool create(char const* path, char const* data, int size, ACL_vector const* acl, int mode,
                transport_events::call& as)
    {
        return ::zoo_acreate2(zh_, path, data, size, acl, mode, &on_created, &as) == ZOK;
    }

    /// Called for the states of the handle, with `this` as context, and for watches, without one.
    static void on_event(zhandle_t* zh, int type, int state, char const* path, void* context)
    {
        auto* const self = static_cast<zookeeper_mt*>(const_cast<void*>(::zoo_get_context(zh)));
        self->zh_ = zh;  // the opener may not have it yet
        if (type != ZOO_SESSION_EVENT) return self->to_->on_notice(path);
        // As long as it is connected. Otherwise it would look up all names whenever it looks at its socket, several
        // times for each request. A process that forks meanwhile has a child that can never look up a name: the C
        // library's lock is held in it for ever.
        if (state == ZOO_CONNECTED_STATE) ::zoo_set_servers_resolution_delay(zh, -1);
        if (context == self)
            self->to_->on_state(state_of(state), ::zoo_client_id(zh)->client_id,
                                std::chrono::milliseconds{::zoo_recv_timeout(zh)});
    }

    static transport_events::state state_of(int state) noexcept
    {
        if (state == ZOO_CONNECTED_STATE) return transport_events::state::connected;
        if (state == ZOO_EXPIRED_SESSION_STATE) return transport_events::state::expired;
        if (state == ZOO_AUTH_FAILED_STATE) return transport_events::state::refused;
        return transport_events::state::suspended;
    }

    static reply classified(int rc, void const* data) noexcept
    {
        switch (rc) {
        case ZOK: return {answer::ok};
        case ZNONODE: return {answer::no_node};
        case ZNODEEXISTS: return {answer::node_exists};
        case ZNOAUTH: return {answer::refused, right_for(call_of(data).what)};
        case ZAUTHFAILED:
        case ZSESSIONCLOSEDREQUIRESASLAUTH: return {answer::refused, errc::authentication_failed};
        case ZINVALIDACL: return {answer::refused, errc::bad_acl};
        case ZNOCHILDRENFOREPHEMERALS: return {answer::refused, errc::parent_is_ephemeral};
        case ZUNIMPLEMENTED:
        case ZEPHEMERALONLOCALSESSION:  // servers that never make a local session a global one
        case ZBADARGUMENTS: return {answer::refused, errc::bad_request};
        case ZNOTEMPTY:
        case ZBADVERSION: return {answer::refused, errc::server_error};
        case ZSESSIONMOVED:
        case ZTHROTTLEDOP:
        case ZNOTREADONLY: return {answer::postponed, errc::throttled};
        case ZSESSIONEXPIRED: return {answer::lost, errc::session_expired};
        case ZCLOSING: return {answer::lost, errc::connection_lost};
        default:
            if (rc < ZAPIERROR) return {answer::refused, errc::server_error};
            return {answer::lost, errc::connection_lost};
        }
    }

    /// Returns: which right is missing if `what` is not permitted.
    static errc right_for(request::kind what) noexcept
    {
        switch (what) {
        case request::kind::create_sequential:
        case request::kind::create_plain:
        case request::kind::create_container:
        case request::kind::create_persistent: return errc::may_not_create;
        case request::kind::erase: return errc::may_not_delete;
        case request::kind::write: return errc::may_not_write;
        default: return errc::may_not_read;
        }
    }

    static transport_events::call& call_of(void const* data) noexcept
    {
        return *static_cast<transport_events::call*>(const_cast<void*>(data));
    }

    /// Effects: gives the answer, with what `fill` adds to it; if memory runs out, as lost.
    static void give(int rc, Stat const* stat, void const* data, auto const& fill) noexcept
    {
        auto& of = call_of(data);
        auto r = classified(rc, data);
        if (stat) r.stat = {stat->czxid, stat->ephemeralOwner, stat->ctime};
        try {
            fill(r);
        } catch (...) {
            r = {};
        }
        of.to->on_reply(of, std::move(r));
    }

    static void on_created(int rc, char const* path, Stat const* stat, void const* data)
    {
        give(rc, stat, data, [&](reply& r) {
            if (path) r.text = path;
        });
    }

    static void on_children(int rc, String_vector const* names, void const* data)
    {
        give(rc, nullptr, data, [&](reply& r) {
            if (names) r.children.assign(names->data, names->data + names->count);
        });
    }

    static void on_data(int rc, char const* value, int size, Stat const* stat, void const* data)
    {
        give(rc, stat, data, [&](reply& r) {
            if (value && size > 0) r.text.assign(value, static_cast<std::size_t>(size));
        });
    }

    static void on_stat(int rc, Stat const*, void const* data) { on_done(rc, data); }
    static void on_done(int rc, void const* data)
    {
        give(rc, nullptr, data, [](reply&) {});
    }

    std::atomic<zhandle_t*> zh_{nullptr};
    transport_events* to_;
    std::thread opener_;
};

}  // namespace holdfast::zookeeper
