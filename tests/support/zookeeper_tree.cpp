// SPDX-License-Identifier: MIT
#include "zookeeper_tree.hpp"

#include "eventually.hpp"
#include "loopback.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <stdexcept>

namespace holdfast::test {
namespace {

void silent(char const*) {}

/// Returns: `value` in the byte order of the network.
template <class Int>
std::string bytes(Int value)
{
    std::string text;
    for (std::size_t i = sizeof value; i-- > 0;)
        text += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xFFU);
    return text;
}

std::string framed(std::string const& packet) { return bytes(static_cast<std::int32_t>(packet.size())) + packet; }

/// Returns: what ZooKeeper's SessionTrackerImpl has for the password of a session: 16 bytes of java.util.Random.
std::string password_of(std::int64_t id)
{
    constexpr std::uint64_t multiplier = 0x5DEECE66DU;
    constexpr std::uint64_t mask = (std::uint64_t{1} << 48U) - 1;
    auto seed = (static_cast<std::uint64_t>(id) ^ 0xB3415C00U ^ multiplier) & mask;
    std::string password;
    for (int i = 0; i < 4; ++i) {
        seed = (seed * multiplier + 0xB) & mask;
        auto const word = static_cast<std::uint32_t>(seed >> 16U);
        for (unsigned k = 0; k < 4; ++k) password += static_cast<char>((word >> (8 * k)) & 0xFFU);
    }
    return password;
}

/// Returns: what a server at `port` answers to `text` until it closes the connection, and 20 bytes at least.
std::string exchange(std::uint16_t port, std::string const& text)
{
    auto const fd = start_connecting(port);
    ::pollfd one{fd.get(), POLLOUT, 0};
    ::poll(&one, 1, 5000);
    if (::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
        return std::string(20, '?');
    one.events = POLLIN;
    std::string answer;
    std::array<char, 256> part{};
    for (;;) {
        auto const got = ::poll(&one, 1, 5000) > 0 ? ::recv(fd.get(), part.data(), part.size(), 0) : 0;
        if (got <= 0) break;
        answer.append(part.data(), static_cast<std::size_t>(got));
    }
    if (answer.size() < 20) answer.resize(20, '?');
    return answer;
}

class handle {
public:
    explicit handle(std::string const& servers)
        : zh_{::zookeeper_init2(servers.c_str(), &watch, 60'000, nullptr, this, 0, &silent)}
    {
        if (!zh_ || !eventually([this] { return state_ != 0; }) || state_ != ZOO_CONNECTED_STATE) {
            if (zh_) ::zookeeper_close(zh_);
            throw std::runtime_error{"no session with ZooKeeper at " + servers};
        }
        ::zoo_set_servers_resolution_delay(
            zh_, -1);  // a name that is looked up while a test forks is never found in the child
    }
    handle(handle const&) = delete;
    handle& operator=(handle const&) = delete;
    ~handle() { ::zookeeper_close(zh_); }

    [[nodiscard]] zhandle_t* get() const { return zh_; }

private:
    static void watch(zhandle_t*, int type, int state, char const*, void* self)
    {
        if (type == ZOO_SESSION_EVENT && state != ZOO_CONNECTING_STATE) static_cast<handle*>(self)->state_ = state;
    }

    std::atomic<int> state_{0};
    zhandle_t* zh_;
};

void require(int rc, std::string const& what)
{
    if (rc != ZOK) throw std::runtime_error{what + ": " + ::zerror(rc)};
}

}  // namespace

class zookeeper_tree::impl {
public:
    explicit impl(std::string const& addresses) : servers{addresses}, zk{addresses} {}
    std::string servers;
    handle zk;
};

zookeeper_tree::zookeeper_tree(std::string const& servers, std::string const& digest)
    : impl_{std::make_unique<impl>(servers)}
{
    if (!digest.empty())
        require(::zoo_add_auth(
                    impl_->zk.get(), "digest", digest.c_str(), static_cast<int>(digest.size()), [](int, void const*) {},
                    nullptr),
                "auth");
}

zookeeper_tree::~zookeeper_tree() = default;

std::vector<std::string> zookeeper_tree::children(std::string const& path)
{
    String_vector all{};
    int const rc = ::zoo_get_children(impl_->zk.get(), path.c_str(), 0, &all);
    if (rc == ZNONODE) return {};
    require(rc, "children of " + path);
    std::vector<std::string> names(all.data, all.data + all.count);
    ::deallocate_String_vector(&all);
    std::sort(names.begin(), names.end());
    return names;
}

bool zookeeper_tree::exists(std::string const& path)
{
    int const rc = ::zoo_exists(impl_->zk.get(), path.c_str(), 0, nullptr);
    if (rc != ZNONODE) require(rc, "exists " + path);
    return rc == ZOK;
}

zookeeper_tree::node zookeeper_tree::get(std::string const& path)
{
    std::string data(64 * 1024, '\0');
    int size = static_cast<int>(data.size());
    Stat stat{};
    require(::zoo_get(impl_->zk.get(), path.c_str(), 0, data.data(), &size, &stat), "get " + path);
    data.resize(static_cast<std::size_t>(std::max(size, 0)));
    return {data, stat.czxid, stat.ephemeralOwner, stat.version};
}

std::optional<std::int64_t> zookeeper_tree::owner_of(std::string const& path)
{
    Stat stat{};
    int const rc = ::zoo_exists(impl_->zk.get(), path.c_str(), 0, &stat);
    if (rc == ZNONODE) return std::nullopt;
    require(rc, "owner of " + path);
    return stat.ephemeralOwner;
}

std::vector<std::string> zookeeper_tree::acl(std::string const& path)
{
    ACL_vector list{};
    Stat stat{};
    require(::zoo_get_acl(impl_->zk.get(), path.c_str(), &list, &stat), "acl of " + path);
    std::vector<std::string> all;
    for (int i = 0; i < list.count; ++i)
        all.push_back(std::to_string(list.data[i].perms) + ' ' + list.data[i].id.scheme + ':' + list.data[i].id.id);
    ::deallocate_ACL_vector(&list);
    return all;
}

void zookeeper_tree::permit(std::string const& path, int permissions)
{
    ACL one{permissions, ZOO_ANYONE_ID_UNSAFE};
    ACL_vector const list{1, &one};
    require(::zoo_set_acl(impl_->zk.get(), path.c_str(), -1, &list), "set acl of " + path);
}

std::string zookeeper_tree::create(std::string const& path, std::string const& data, bool ephemeral, bool sequential)
{
    for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
        int const rc = ::zoo_create(impl_->zk.get(), path.substr(0, slash).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE,
                                    ZOO_PERSISTENT, nullptr, 0);
        if (rc != ZNODEEXISTS) require(rc, "create parent of " + path);
    }
    std::string made(path.size() + 16, '\0');
    int const mode = ephemeral ? (sequential ? ZOO_EPHEMERAL_SEQUENTIAL : ZOO_EPHEMERAL)
                               : (sequential ? ZOO_PERSISTENT_SEQUENTIAL : ZOO_PERSISTENT);
    require(::zoo_create(impl_->zk.get(), path.c_str(), data.data(), static_cast<int>(data.size()),
                         &ZOO_OPEN_ACL_UNSAFE, mode, made.data(), static_cast<int>(made.size())),
            "create " + path);
    made.resize(made.find('\0'));
    return made;
}

void zookeeper_tree::remove(std::string const& path)
{
    for (auto const& name : children(path)) remove(path + '/' + name);
    int const rc = ::zoo_delete(impl_->zk.get(), path.c_str(), -1);
    if (rc != ZNONODE) require(rc, "delete " + path);
}

void zookeeper_tree::end_session(std::int64_t id)
{
    // By hand: the C client would connect, be told that its rival has connected again, connect again, ...
    auto const password = password_of(id);
    auto const connect = bytes(std::int32_t{0}) + bytes(std::int64_t{0}) + bytes(std::int32_t{10'000}) + bytes(id) +
                         bytes(static_cast<std::int32_t>(password.size())) + password + '\0';
    auto const close = bytes(std::int32_t{1}) + bytes(std::int32_t{-11});
    auto const text = framed(connect) + framed(close);

    auto const first = impl_->servers.substr(0, impl_->servers.find_first_of(",/"));
    auto const port = static_cast<std::uint16_t>(std::stoi(first.substr(first.rfind(':') + 1)));
    // The owner connects again at once, and whoever connects last has the session: one of our closes gets through in
    // the end.
    if (!eventually([&] { return exchange(port, text).substr(12, 8) == bytes(std::int64_t{0}); }))
        throw std::runtime_error{"the session does not end"};
}

std::int64_t zookeeper_tree::session_id() const { return ::zoo_client_id(impl_->zk.get())->client_id; }

}  // namespace holdfast::test
