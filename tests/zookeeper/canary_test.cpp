// SPDX-License-Identifier: MIT
//
// Whatever goes wrong, what is said of it, and what the C client logs where it is told to log everything, has no credential in it. Every
// message that is made is heard (overheard.hpp); here each kind of failure is brought about.
#include "patient.hpp"
#include "support/catch.hpp"
#include "support/code_of.hpp"
#include "support/eventually.hpp"
#include "support/overheard.hpp"
#include "support/zookeeper_proxy.hpp"
#include "support/zookeeper_server.hpp"
#include "support/zookeeper_tree.hpp"

#include <holdfast/zookeeper.hpp>
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
using holdfast::test::zookeeper_proxy;
using holdfast::test::zookeeper_server;
using holdfast::test::zookeeper_tree;
using holdfast::zookeeper::mutex;
using holdfast::zookeeper::session;
using holdfast::zookeeper::session_options;

namespace {

std::atomic<int> lines{0};

/// Returns: `options` for somebody who shows `credential`, which is a secret, and whose log is heard as `of`.
session_options showing(std::string const& credential, overheard::kind of, session_options options = {})
{
    everything_heard().keep(credential);
    everything_heard().keep(std::string_view{credential}.substr(credential.find(':') + 1));
    options.auth_scheme = "digest";
    options.auth_credential = credential;
    options.log = [of](std::string_view text) {
        ++lines;
        everything_heard().hear(text, of);
    };
    return options;
}

/// Effects: all that can go wrong.
void use(overheard::kind of)
{
    zookeeper_server server;
    zookeeper_proxy proxy{server.port()};
    int told = 0;
    holdfast::lock_options const hooked{.unavailable_after = 300ms, .on_error = [&](holdfast::error const&) { ++told; }};
    auto alice = holdfast::test::connected(proxy.address(), showing("alice:canary-of-alice", of, {.operation_timeout = 300ms}));
    auto bob = holdfast::test::connected(server.address(), showing("bob:canary-of-bob", of));
    mutex m{alice, "/locks/orders", hooked};
    mutex not_hers{bob, "/locks/orders", hooked};
    auto const take = [&] { return !code_of([&] { if (!m.try_lock_for(1min)) throw std::system_error{make_error_code(errc::contended)}; }); };
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

    proxy.silence();
    m.unlock(ec);
    CHECK(ec);
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    proxy.cut();
    CHECK(code_of([&] { m.lock(); }) == errc::unavailable);
    proxy.pass();

    session_options refused{.operation_timeout = 1min};
    refused = showing("canary-of-nonsense:canary-of-nobody", of, refused);
    refused.auth_scheme = "nonsense";
    session nobody{server.address(), refused};
    mutex never{nobody, "/locks/orders", hooked};
    CHECK(code_of([&] { never.lock(); }) == errc::misconfigured);
}

}  // namespace

TEST_CASE("nothing that is said or logged has a credential or a node's name in it")
{
    ::zoo_set_debug_level(ZOO_LOG_LEVEL_INFO);
    use(overheard::kind::message);
    CHECK(lines > 3);
    CHECK(everything_heard().count() > 5);
    CHECK(everything_heard().leaks().empty());
}

TEST_CASE("a client that logs everything logs no credential")
{
    ::zoo_set_debug_level(ZOO_LOG_LEVEL_DEBUG);
    use(overheard::kind::log);
    CHECK(lines > 30);
    // It names the nodes that it asks for, which whoever can read the tree can do, too; nothing else of what is secret.
    CHECK(everything_heard().leaks().empty());
}

TEST_CASE("options that cannot be used are refused without the credential")
{
    everything_heard().keep("canary-without-a-colon");
    auto const before = everything_heard().count();
    CHECK(code_of([&] { session const zk{"a:1", {.auth_scheme = "digest", .auth_credential = "canary-without-a-colon"}}; }) == errc::misconfigured);
    CHECK(code_of([&] { session const zk{"a:1", {.auth_credential = "canary-without-a-colon"}}; }) == errc::misconfigured);
    CHECK(everything_heard().count() == before + 2);
    CHECK(everything_heard().leaks().empty());
}
