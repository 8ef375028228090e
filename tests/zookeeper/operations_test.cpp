// SPDX-License-Identifier: MIT
//
// A session's store and its operations without the lock layer: they go on by themselves and end by a completion.
#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/process.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/core/parker.hpp>
#include <holdfast/zookeeper/session_store.hpp>
#include <holdfast/zookeeper/session_thread.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using holdfast::boot_clock;
using holdfast::grant;
using holdfast::owner_token;
using holdfast::shared_key;
using holdfast::test::child;
using holdfast::test::eventually;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::node_options;
using holdfast::zookeeper::queueing;
using holdfast::zookeeper::session_options;
using holdfast::zookeeper::session_store;

namespace {

/// Wakes a thread when an operation has ended.
class told final : public holdfast::completion {
public:
    void complete() noexcept override { bed_.unpark(); }

    /// Returns: whether it came within `limit`.
    [[nodiscard]] bool within(std::chrono::milliseconds limit)
    {
        auto const until = boot_clock::now() + limit;
        while (!came_ && boot_clock::now() < until) came_ = bed_.park_until(until) != 0;
        return came_;
    }

private:
    holdfast::detail::parker bed_;
    bool came_ = false;
};

std::shared_ptr<session_store> make_store(std::string const& servers,
                                          session_options options = {.session_timeout = 30s, .operation_timeout = 20s})
{
    return std::make_shared<session_store>(
        holdfast::zookeeper::open_session_thread(holdfast::zookeeper::parse_servers(servers), std::move(options)));
}

/// An operation that was started, and its completion.
template <class Operation>
struct started {
    explicit started(std::unique_ptr<Operation> made) : what{std::move(made)} { what->start(end); }

    [[nodiscard]] auto outcome(std::chrono::milliseconds limit = 1min)
    {
        if (!end.within(limit)) throw std::runtime_error{"the operation has not ended"};
        return what->outcome();
    }

    told end;
    std::unique_ptr<Operation> what;
};

struct lock {
    lock(std::shared_ptr<session_store> in, std::string const& name, node_options nodes = {})
        : store{std::move(in)}, key{store->make_key(name, nodes)}
    {
    }

    [[nodiscard]] auto acquire(holdfast::acquire_request const& request) const
    {
        return std::make_unique<started<holdfast::pending_acquire>>(store->acquire(key, request));
    }
    [[nodiscard]] auto try_once() const { return acquire({.once = true})->outcome(); }
    [[nodiscard]] grant take() const
    {
        auto got = acquire({.unavailable_at = boot_clock::now() + 2min})->outcome(3min);
        if (!got) throw std::system_error{got.code()};
        return *got;
    }
    [[nodiscard]] auto extend(owner_token const& token) const
    {
        return started<holdfast::pending_extend>{store->extend(key, token, 10s)}.outcome();
    }
    [[nodiscard]] std::error_code release(owner_token const& token) const
    {
        auto giving_back = store->release(key);
        giving_back->bind(token);
        return started<holdfast::pending_release>{std::move(giving_back)}.outcome().code;
    }

    std::shared_ptr<session_store> store;
    shared_key key;
};

std::size_t threads()
{
    std::filesystem::directory_iterator const tasks{"/proc/self/task"};
    return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

/// Returns: how often each other thread has slept.
std::map<std::string, long> sleeps()
{
    std::map<std::string, long> all;
    for (auto const& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
        std::ifstream status{task.path() / "status"};
        constexpr std::string_view mark = "voluntary_ctxt_switches:";
        for (std::string line; std::getline(status, line);)
            if (line.starts_with(mark)) all[task.path().filename().string()] = std::stol(line.substr(mark.size()));
    }
    return all;
}

}  // namespace

TEST_CASE("a lock on ZooKeeper is taken, extended and given back by operations that end by themselves")
{
    auto const nodes = GENERATE(node_options{}, node_options{.naming = holdfast::zookeeper::naming::kazoo},
                                node_options{.queueing = queueing::none});
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    lock const orders{make_store(server.address()), "/locks/orders", nodes};
    auto const got = orders.take();
    CHECK(got.valid_until > boot_clock::now());
    CHECK(got.fence != 0);
    CHECK(got.ttl == 15s);
    CHECK(orders.store->still_leased(got.token));
    auto const until = orders.extend(got.token);
    REQUIRE(until);
    CHECK(*until >= got.valid_until);
    auto const refused = orders.try_once();
    CHECK(refused.code() == holdfast::errc::timed_out);
    CHECK(server.watches() == 0);
    CHECK_FALSE(orders.release(got.token));
    CHECK_FALSE(orders.store->still_leased(got.token));
    CHECK(orders.release(got.token) == holdfast::errc::not_owner);
    CHECK(orders.extend(got.token).code() == holdfast::errc::lease_lost);
    CHECK(tree.children("/locks/orders").empty());
    CHECK(orders.take().fence > got.fence);
}

TEST_CASE("no node shows the owner token of its lease")
{
    using holdfast::zookeeper::naming;
    auto const nodes =
        GENERATE(node_options{}, node_options{.queueing = queueing::none}, node_options{.naming = naming::kazoo});
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    tree.create("/locks");
    lock const orders{make_store(server.address()), "/locks/orders", nodes};
    auto const got = orders.take();
    auto shown =
        nodes.queueing == queueing::none ? tree.get("/locks/orders").data : tree.children("/locks/orders").at(0);
    std::erase(shown, '-');
    CHECK(shown.size() > 32);
    CHECK(shown.find(got.token.view()) == std::string::npos);
}

TEST_CASE("the kinds of locks of one session have keys that differ")
{
    auto const store = make_store("127.0.0.1:1");
    CHECK(store->make_key("orders")->kind().empty());
    CHECK(store->make_key("orders")->name() == "orders");
    auto const kazoo = store->make_key("orders", {.naming = holdfast::zookeeper::naming::kazoo})->kind();
    auto const plain = store->make_key("orders", {.queueing = queueing::none})->kind();
    CHECK_FALSE(kazoo.empty());
    CHECK_FALSE(plain.empty());
    CHECK(kazoo != plain);
}

TEST_CASE("a stop_margin is at most a third of the lease of a session, whatever the ttl")
{
    auto const store = make_store("127.0.0.1:1");
    auto const most = std::chrono::milliseconds{store->session().options().session_timeout} / 6;
    CHECK(store->refused_margin(*store->make_key("orders"), 1ms, 0ms).empty());
    CHECK(store->refused_margin(*store->make_key("orders"), 1ms, most).empty());
    auto const why = store->refused_margin(*store->make_key("orders"), 24h, most + 1ms);
    CHECK(why.find("a sixth of session_timeout") != std::string::npos);
    CHECK(why.find(std::to_string(most.count()) + " ms") != std::string::npos);
}

TEST_CASE("waits on ZooKeeper take no thread, and each is told when its turn comes")
{
    zookeeper_server server;
    auto const here = make_store(server.address());
    lock const first{here, "/orders"};
    auto const got = first.take();
    constexpr std::size_t many = 50;
    lock const there{make_store(server.address()), "/orders"};
    std::vector<std::unique_ptr<started<holdfast::pending_acquire>>> waits;
    for (std::size_t i = 0; i < many; ++i) waits.push_back(there.acquire({}));
    CHECK(eventually([&] { return server.watches() == many; }));
    CHECK(threads() <= 1 + 2 * 3 + 1);  // the Catch thread, two sessions, a thread of a handle that is being opened
    CHECK_FALSE(waits.front()->end.within(10ms));
    CHECK_FALSE(first.release(got.token));
    auto fence = got.fence;
    for (auto& one : waits) {
        auto const next = one->outcome();
        REQUIRE(next);
        CHECK(next->fence > fence);
        fence = next->fence;
        CHECK_FALSE(there.release(next->token));
    }
}

TEST_CASE("a wait on ZooKeeper that is canceled is told so and leaves nothing")
{
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    auto const here = make_store(server.address());
    lock const first{here, "/orders"};
    auto const got = first.take();
    auto wait = first.acquire({});
    CHECK(eventually([&] { return server.watches() == 1; }));
    wait->what->cancel();
    CHECK(wait->outcome().code() == std::errc::operation_canceled);
    wait->what->cancel();  // no effect any more
    CHECK(tree.children("/orders").size() == 1);
    CHECK(eventually([&] { return server.watches() == 0; }));
    CHECK_FALSE(first.release(got.token));
}

TEST_CASE("a wait on ZooKeeper ends at its deadline although no thread waits with it")
{
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    lock const orders{make_store(server.address()), "/orders"};
    auto const got = orders.take();
    auto const deadline = boot_clock::now() + 300ms;
    CHECK(orders.acquire({.deadline = deadline})->outcome().code() == holdfast::errc::timed_out);
    CHECK(boot_clock::now() >= deadline);
    CHECK(boot_clock::now() < deadline + 20s);
    CHECK(tree.children("/orders").size() == 1);
    CHECK_FALSE(orders.release(got.token));
}

TEST_CASE("an operation on ZooKeeper that can ask nobody ends in time")
{
    std::string const unreachable = GENERATE("127.0.0.1:1", "holdfast.invalid:2181");
    lock const orders{make_store(unreachable, {.operation_timeout = 300ms}), "/orders"};
    auto const begun = boot_clock::now();
    CHECK(orders.try_once().code() == holdfast::errc::unavailable);
    auto waiting = orders.acquire({.unavailable_at = boot_clock::now() + 200ms});
    CHECK(waiting->outcome().code() == holdfast::errc::unavailable);
    CHECK(started<holdfast::operation<holdfast::result<holdfast::zookeeper::participants>>>{
              orders.store->contenders(orders.key)}
              .outcome()
              .code() == holdfast::errc::unavailable);
    CHECK(boot_clock::now() - begun < 20s);
}

TEST_CASE("a lease whose session was ended is lost, and that is announced at once")
{
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    lock const orders{make_store(server.address()), "/orders"};
    std::atomic<int> announced{0};
    orders.store->on_loss([&] { ++announced; });
    auto const got = orders.take();
    tree.end_session(tree.owner_of("/orders/" + tree.children("/orders").front()).value());
    CHECK(eventually([&] { return announced == 1; }));
    CHECK_FALSE(orders.store->still_leased(got.token));
    CHECK(orders.extend(got.token).code() == holdfast::errc::lease_lost);
    CHECK(orders.release(got.token) == holdfast::errc::not_owner);
    CHECK(orders.take().fence > got.fence);
}

TEST_CASE("in a child of fork operations on ZooKeeper fail at once")
{
    zookeeper_server server;
    lock const orders{make_store(server.address()), "/orders"};
    auto const got = orders.take();
    auto giving_back = orders.store->release(orders.key);
    giving_back->bind(got.token);
    auto born = child::fork([&] {
        told end;
        try {
            orders.store->acquire(orders.key, {})->start(end);
            return 1;
        } catch (holdfast::error const& e) {
            if (e.code() != holdfast::errc::misconfigured) return 2;
        }
        try {
            orders.store->extend(orders.key, got.token, 10s)->start(end);
            return 3;
        } catch (holdfast::error const& e) {
            if (e.code() != holdfast::errc::misconfigured) return 4;
        }
        giving_back->start(end);
        if (!end.within(10s)) return 5;
        return giving_back->outcome().code ? 0 : 6;
    });
    CHECK(born.wait_for(1min) == 0);
    CHECK(orders.extend(got.token));
    CHECK_FALSE(started<holdfast::pending_release>{std::move(giving_back)}.outcome().code);
}

TEST_CASE("a completion may destroy the operation, and with it the last of the session")
{
    struct last final : holdfast::completion {
        void complete() noexcept override
        {
            code = operation->outcome().code();
            operation.reset();
            store.reset();
            gone = true;
        }
        std::shared_ptr<session_store> store;
        std::unique_ptr<holdfast::pending_acquire> operation;
        std::error_code code;
        std::atomic<bool> gone{false};
    };
    zookeeper_server server;
    zookeeper_tree tree{server.address()};
    last one;
    one.store = make_store(server.address());
    one.operation = one.store->acquire(one.store->make_key("/orders"), {});
    one.operation->start(one);
    CHECK(eventually([&] { return one.gone.load(); }));
    CHECK_FALSE(one.code);
    CHECK(eventually([&] { return tree.children("/orders").empty(); }));  // the session ends by itself
    CHECK(eventually([&] { return threads() <= 1 + 3; }));                // those of `tree`
}

TEST_CASE("who takes a lock on ZooKeeper and gives it back does not wake the session's thread")
{
    zookeeper_server server;
    lock const orders{make_store(server.address(), {.session_timeout = 10min, .operation_timeout = 1min}), "/orders"};
    CHECK_FALSE(orders.release(orders.take().token));
    auto const before = sleeps();
    constexpr int times = 200;
    for (int i = 0; i < times; ++i) CHECK_FALSE(orders.release(orders.take().token));
    auto const after = sleeps();
    REQUIRE(after.size() == before.size());
    auto least = static_cast<long>(times);
    for (auto const& [thread, count] : after) least = std::min(least, count - before.at(thread));
    CHECK(least < times / 10);
}
