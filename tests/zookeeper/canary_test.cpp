// SPDX-License-Identifier: MIT
//
// Whatever goes wrong, what is said of it, and what is kept of the C client's log where it is told to log everything,
// has no credential in it. Every message that is made is heard (overheard.hpp); here each kind of failure is brought
// about.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/overheard.hpp"
#include "support/proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>
#include <holdfast/zookeeper/client_log.hpp>
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

using namespace std::chrono_literals;
using holdfast::errc;
using holdfast::test::code_of;
using holdfast::test::eventually;
using holdfast::test::everything_heard;
using holdfast::test::overheard;
using holdfast::test::proxy;
using holdfast::test::zookeeper_packets;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::session;
using holdfast::zookeeper::session_options;

namespace {

/// Returns: `options` for somebody who shows `credential`, which is a secret.
session_options showing(std::string const& credential, session_options options = {})
{
    everything_heard().keep(credential);
    everything_heard().keep(std::string_view{credential}.substr(credential.find(':') + 1));
    options.auth_scheme = "digest";
    options.auth_credential = credential;
    return options;
}

/// Effects: all that can go wrong.
void use()
{
    zookeeper_server server;
    proxy way{server.port(), zookeeper_packets};
    std::atomic<int> told{0};  // here by `unlock`, and in the background
    holdfast::lock_options const hooked{.unavailable_after = 300ms,
                                        .on_error = [&](holdfast::error const&) { ++told; }};
    auto alice =
        holdfast::test::connected(way.address(), showing("alice:canary-of-alice", {.operation_timeout = 300ms}));
    auto bob = holdfast::test::connected(server.address(), showing("bob:canary-of-bob"));
    mutex m{alice, "/locks/orders", hooked};
    mutex not_hers{bob, "/locks/orders", hooked};
    auto const take = [&] {
        return !code_of([&] {
            if (!m.try_lock_for(1min)) throw std::system_error{make_error_code(errc::contended)};
        });
    };
    REQUIRE(eventually(take));
    CHECK(eventually([&] {  // who is given little time may get no answer
        std::size_t number = 0;
        return !code_of([&] { number = m.contenders().size(); }) && number == 1;
    }));
    CHECK(code_of([&] { static_cast<void>(not_hers.try_lock()); }) == errc::misconfigured);

    // Its node is taken away, with its session.
    zookeeper_tree tree{server.address(), "alice:canary-of-alice"};
    auto const line = tree.children("/locks/orders");
    REQUIRE(line.size() == 1);
    REQUIRE(holdfast::test::shows_token(line.front()));
    tree.end_session(tree.get("/locks/orders/" + line.front()).owner);
    std::error_code ec;
    CHECK(eventually([&] { return !m.lease().still_held(); }));
    m.unlock();
    CHECK(told > 0);
    REQUIRE(eventually(take));

    way.freeze();
    m.unlock(ec);
    CHECK(ec);
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    way.refuse();
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    way.pass();

    session_options refused{.operation_timeout = 1min};
    refused = showing("canary-of-nonsense:canary-of-nobody", refused);
    refused.auth_scheme = "nonsense";
    session nobody{server.address(), refused};
    mutex never{nobody, "/locks/orders", hooked};
    CHECK(code_of([&] { never.lock(); }) == errc::misconfigured);
}

}  // namespace

TEST_CASE("nothing that is said or logged has a credential or a node's name in it")
{
    ::zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
    use();
    CHECK(everything_heard().count() > 5);
    CHECK(everything_heard().leaks().empty());
}

TEST_CASE("what is kept of the log of a client that logs everything has no credential in it")
{
    ::zoo_set_debug_level(ZOO_LOG_LEVEL_DEBUG);
    use();
    auto const kept = holdfast::zookeeper::client_log::last_error();
    CHECK_FALSE(kept.empty());
    everything_heard().hear(kept, overheard::kind::log);
    // It names the nodes that it asks for, which whoever can read the tree can do, too; nothing else of what is secret.
    CHECK(everything_heard().leaks().empty());
}

TEST_CASE("options that cannot be used are refused without the credential")
{
    everything_heard().keep("canary-without-a-colon");
    auto const before = everything_heard().count();
    CHECK(code_of([&] {
              session const zk{"a:1", {.auth_scheme = "digest", .auth_credential = "canary-without-a-colon"}};
          }) == errc::misconfigured);
    CHECK(code_of([&] {
              session const zk{"a:1", {.auth_credential = "canary-without-a-colon"}};
          }) == errc::misconfigured);
    CHECK(everything_heard().count() == before + 2);
    CHECK(everything_heard().leaks().empty());
}
