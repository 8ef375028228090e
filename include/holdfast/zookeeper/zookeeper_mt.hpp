// SPDX-License-Identifier: MIT
//
// The only header that includes ZooKeeper's C client.
#pragma once

#ifndef THREADED
#define THREADED
#endif

#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <zookeeper/zookeeper.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

namespace holdfast::zookeeper {

/// What the C client tells, from its own threads, one call at a time.
class handle_events {
public:
    enum class state : std::uint8_t { connected, suspended, expired, refused };

    /// A request under way. Whoever sends it keeps it until it is answered, or its handle is closed.
    struct call {
        handle_events* to = nullptr;
        request::kind what{};
    };

    /// `session` and `timeout` are those that the server agreed to.
    virtual void on_state(state s, std::int64_t session, std::chrono::milliseconds timeout) noexcept = 0;
    virtual void on_notice(std::uint64_t watch) noexcept = 0;
    virtual void on_reply(call& of, reply&& r) noexcept = 0;

protected:
    ~handle_events() = default;
};

/// A handle of the C client: one session with the servers, over whichever of them it reaches.
class zookeeper_mt {
public:
    using log_function = void (*)(char const*);

    /// How many threads the C client has for a handle. It starts them with an assertion: without them the program ends.
    static constexpr unsigned threads = 2;

    /// Effects: looks the names of the servers up, and starts the client's two threads, which connect. Requires: they can be had.
    /// Returns: whether that could be done.
    bool open(std::string const& hosts, std::chrono::milliseconds timeout, handle_events& to, log_function log)
    {
        to_ = &to;
        zh_ = ::zookeeper_init2(hosts.c_str(), &zookeeper_mt::on_event, static_cast<int>(timeout.count()), nullptr, this, 0, log);
        return zh_ != nullptr;
    }

    zookeeper_mt() = default;
    zookeeper_mt(zookeeper_mt const&) = delete;
    zookeeper_mt& operator=(zookeeper_mt const&) = delete;

    /// Effects: ends the session, where a server can be told, for whose answer it waits 1.5 s at most, and the client's threads. Nothing is
    /// told any more when it returns; calls may have been left without an answer. Not to be called from those threads.
    ~zookeeper_mt()
    {
        if (auto* const zh = zh_.load()) ::zookeeper_close(zh);
    }

    /// Effects: has the session identify itself with every server.
    void authenticate(std::string const& scheme, std::string const& credential) const
    {
        ::zoo_add_auth(
            zh_, scheme.c_str(), credential.data(), static_cast<int>(credential.size()), [](int, void const*) {}, nullptr);
    }

    /// Effects: sends `r`. `as` is answered with `to.on_reply`; a watch's notice has `watch`.
    /// Returns: whether it was sent; otherwise no answer comes.
    bool send(request const& r, handle_events::call& as, std::uint64_t watch, bool creator_only)
    {
        as.to = to_;
        as.what = r.what;
        auto const* const path = r.path.c_str();
        auto const size = static_cast<int>(r.content.size());
        auto const* const acl = creator_only ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
        std::uintptr_t const number = watch;
        switch (r.what) {
        case request::kind::create_sequential: return create(path, r.content.data(), size, acl, ZOO_EPHEMERAL_SEQUENTIAL, as);
        case request::kind::create_plain: return create(path, r.content.data(), size, acl, ZOO_EPHEMERAL, as);
        case request::kind::create_container: return create(path, "", 0, acl, ZOO_CONTAINER, as);
        case request::kind::children: return ::zoo_aget_children(zh_, path, 0, &on_children, &as) == ZOK;
        case request::kind::data: return ::zoo_awget(zh_, path, nullptr, nullptr, &on_data, &as) == ZOK;
        case request::kind::watch:
            // NOLINTNEXTLINE(performance-no-int-to-ptr): a number is never dangling
            return ::zoo_awget(zh_, path, &on_event, reinterpret_cast<void*>(number), &on_data, &as) == ZOK;
        case request::kind::erase: return ::zoo_adelete(zh_, path, -1, &on_done, &as) == ZOK;
        case request::kind::touch: return ::zoo_awexists(zh_, "/", nullptr, nullptr, &on_stat, &as) == ZOK;
        // The C client cannot check a version by itself: a delete that is bound to fail is agreed on by a quorum like any other.
        case request::kind::confirm: return ::zoo_adelete(zh_, "/zookeeper/holdfast", impossible_version, &on_done, &as) == ZOK;
        // Of one watcher alone the server would not be told. (The type of the function is a slip of the C client's header: it takes it as it is.)
        case request::kind::unwatch:
            return ::zoo_aremove_all_watches(zh_, path, ZWATCHTYPE_DATA, 0, reinterpret_cast<void_completion_t*>(&on_done), &as) == ZOK;
        }
        return false;
    }

private:
    static constexpr int impossible_version = 0x7FFFFFFE;

    bool create(char const* path, char const* data, int size, ACL_vector const* acl, int mode, handle_events::call& as)
    {
        return ::zoo_acreate2(zh_, path, data, size, acl, mode, &on_created, &as) == ZOK;
    }

    /// Of the handle, whose context is `this`, for its states; and of watches, whose context is their number.
    static void on_event(zhandle_t* zh, int type, int state, char const*, void* context)
    {
        auto* const self = static_cast<zookeeper_mt*>(const_cast<void*>(::zoo_get_context(zh)));
        self->zh_ = zh;  // `open` may not have it yet
        if (type != ZOO_SESSION_EVENT) return self->to_->on_notice(reinterpret_cast<std::uintptr_t>(context));
        // As long as it is connected. It would look all names up whenever it looks at its socket, several times for each request; and a
        // process that forks while it does so has a child that can never look a name up: the C library's lock is held in it for ever.
        if (state == ZOO_CONNECTED_STATE) ::zoo_set_servers_resolution_delay(zh, -1);
        if (context == self)
            self->to_->on_state(state_of(state), ::zoo_client_id(zh)->client_id, std::chrono::milliseconds{::zoo_recv_timeout(zh)});
    }

    static handle_events::state state_of(int state) noexcept
    {
        if (state == ZOO_CONNECTED_STATE) return handle_events::state::connected;
        if (state == ZOO_EXPIRED_SESSION_STATE) return handle_events::state::expired;
        if (state == ZOO_AUTH_FAILED_STATE) return handle_events::state::refused;
        return handle_events::state::suspended;
    }

    static reply classified(int rc, void const* data)
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

    /// Returns: which right is missing where `what` is not permitted.
    static errc right_for(request::kind what) noexcept
    {
        switch (what) {
        case request::kind::create_sequential:
        case request::kind::create_plain:
        case request::kind::create_container: return errc::may_not_create;
        case request::kind::erase: return errc::may_not_delete;
        default: return errc::may_not_read;
        }
    }

    static handle_events::call& call_of(void const* data) noexcept { return *static_cast<handle_events::call*>(const_cast<void*>(data)); }

    static void give(void const* data, reply&& r) noexcept
    {
        auto& of = call_of(data);
        of.to->on_reply(of, std::move(r));
    }

    /// Effects: gives the answer that `make` makes; where memory is short, that it was lost.
    static void give_made(void const* data, auto&& make) noexcept
    {
        reply r;
        try {
            r = make();
        } catch (...) {
            r = {};
        }
        give(data, std::move(r));
    }

    static node_stat stat_of(Stat const* stat) noexcept { return stat ? node_stat{stat->czxid, stat->ephemeralOwner} : node_stat{}; }

    static void on_created(int rc, char const* path, Stat const* stat, void const* data)
    {
        give_made(data, [&] {
            auto r = classified(rc, data);
            if (path) r.text = path;
            r.stat = stat_of(stat);
            return r;
        });
    }

    static void on_children(int rc, String_vector const* names, void const* data)
    {
        give_made(data, [&] {
            auto r = classified(rc, data);
            if (names) r.children.assign(names->data, names->data + names->count);
            return r;
        });
    }

    static void on_data(int rc, char const* value, int size, Stat const* stat, void const* data)
    {
        give_made(data, [&] {
            auto r = classified(rc, data);
            if (value && size > 0) r.text.assign(value, static_cast<std::size_t>(size));
            r.stat = stat_of(stat);
            return r;
        });
    }

    static void on_stat(int rc, Stat const*, void const* data)
    {
        give_made(data, [&] { return classified(rc, data); });
    }
    static void on_done(int rc, void const* data)
    {
        give_made(data, [&] { return classified(rc, data); });
    }

    std::atomic<zhandle_t*> zh_{nullptr};
    handle_events* to_ = nullptr;
};

}  // namespace holdfast::zookeeper
