// SPDX-License-Identifier: MIT
#include "site.hpp"

#include "old_masters.hpp"
#include "verify.hpp"

#include <support/eventually.hpp>
#include <support/redis_server.hpp>
#ifdef HOLDFAST_TEST_ZOOKEEPER
#include <support/zookeeper_server.hpp>
#include <support/zookeeper_tree.hpp>

#include <holdfast/zookeeper/node_name.hpp>
#endif

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace holdfast::faults {
namespace {

using namespace std::chrono_literals;

template <class Servers>
class redis_site final : public site {
public:
    template <class... Folder>
    explicit redis_site(std::size_t size, Folder const&... clocks) : servers_{size, clocks...}
    {
        where_.servers = servers_.urls();
        if (size != 1) {
            where_.what = place::store::redlock;
            where_.ttl = 600ms;
            where_.operation_timeout = 150ms;
        }
        if (sizeof...(clocks) != 0) where_.restart_guard = 3s;
    }

    [[nodiscard]] std::vector<std::uint16_t> ports() const override { return servers_.ports(); }

    void kill() override
    {
        for (auto& one : servers_) one.kill();
    }

    void restart() override
    {
        for (auto& one : servers_) one.restart();
    }

    void pause(std::size_t which) override { servers_[which].pause(); }
    void resume(std::size_t which) override { servers_[which].resume(); }
    void restart(std::size_t which) override { servers_[which].restart(); }

    [[nodiscard]] std::chrono::milliseconds freed_within() const override { return where_.ttl + 100ms; }

    [[nodiscard]] copies copies_of(std::string const& name) override
    {
        copies found;
        std::map<std::string, std::size_t> of;
        for (auto& one : servers_) {
            auto const value = one.command({"GET", name}).text;
            if (value.empty()) continue;
            ++found.all;
            found.of_one_owner = std::max(found.of_one_owner, ++of[value]);
            auto const left = one.command({"PTTL", name}).integer;
            if (left == -1 || found.ms_left == -1)
                found.ms_left = -1;
            else
                found.ms_left = std::max<std::int64_t>(found.ms_left, left);
        }
        return found;
    }

    void remove(std::string const& name) override
    {
        for (auto& one : servers_) one.command({"DEL", name});
    }

    [[nodiscard]] remains left(std::chrono::milliseconds limit, waiters w) override
    {
        remains all;
        for (auto& one : servers_) {
            auto of_one = remains_on(one, limit, w);
            all.keys.insert(all.keys.end(), of_one.keys.begin(), of_one.keys.end());
            all.channels += of_one.channels;
        }
        return all;
    }

private:
    Servers servers_;
};

std::unique_ptr<site> open_redis(std::size_t size, std::filesystem::path const& clocks)
{
    if (clocks.empty()) return std::make_unique<redis_site<test::redis_fleet>>(size);
    return std::make_unique<redis_site<old_masters>>(size, clocks);
}

#ifdef HOLDFAST_TEST_ZOOKEEPER
class zookeeper_site final : public site {
public:
    zookeeper_site()
    {
        where_ = {.what = place::store::zookeeper,
                  .servers = {server_.address()},
                  .ttl = 1600ms,
                  .operation_timeout = 1000ms};
    }

    [[nodiscard]] std::vector<std::uint16_t> ports() const override { return {server_.port()}; }

    void kill() override
    {
        tree_.reset();
        server_.kill();
    }

    void restart() override { server_.restart(); }

    void pause(std::size_t) override
    {
        tree_.reset();
        server_.pause();
    }

    void resume(std::size_t) override { server_.resume(); }

    void restart(std::size_t) override
    {
        kill();
        server_.restart();
    }

    [[nodiscard]] std::chrono::milliseconds freed_within() const override { return where_.ttl + 2 * tick + 200ms; }

    [[nodiscard]] copies copies_of(std::string const& name) override
    {
        auto const number = zookeeper::contenders_among(tree().children('/' + name)).size();
        return {.of_one_owner = number, .all = number, .ms_left = number == 0 ? 0 : -1};
    }

    void remove(std::string const& name) override
    {
        for (auto const& one : tree().children('/' + name)) tree().remove('/' + name + '/' + one);
    }

    [[nodiscard]] remains left(std::chrono::milliseconds limit, waiters) override
    {
        remains all;
        static_cast<void>(test::eventually(
            [&] {
                all.keys.clear();
                look("/faults", all);
                return all.keys.empty();
            },
            limit));
        return all;
    }

private:
    static constexpr std::chrono::milliseconds tick{200};

    /// Its session is made when somebody looks: not before processes are forked that have no use for it.
    test::zookeeper_tree& tree()
    {
        if (!tree_) tree_.emplace(server_.address());
        return *tree_;
    }

    /// Parents that are no contenders stay for a while; the servers remove them in their own time.
    void look(std::string const& below, remains& into)
    {
        for (auto const& one : tree().children(below)) {
            auto const path = below + '/' + one;
            if (zookeeper::contenders_among({one}).empty())
                look(path, into);
            else
                into.keys.push_back(path);
        }
    }

    test::zookeeper_server server_{{.tick = tick}};
    std::optional<test::zookeeper_tree> tree_;
};
#endif

}  // namespace

std::unique_ptr<site> open_site(place::store what, std::filesystem::path const& clocks)
{
    switch (what) {
    case place::store::redis: return open_redis(1, clocks);
    case place::store::redlock: return open_redis(5, clocks);
    case place::store::zookeeper:
#ifdef HOLDFAST_TEST_ZOOKEEPER
        return std::make_unique<zookeeper_site>();
#endif
        break;
    }
    throw std::runtime_error{"this program was built without ZooKeeper"};
}

}  // namespace holdfast::faults
