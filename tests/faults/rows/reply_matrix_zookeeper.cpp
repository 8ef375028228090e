// SPDX-License-Identifier: MIT
//
// Every error that a ZooKeeper server has for a create: by a real server where it can be brought to say it, otherwise
// in its words.
#include "answers.hpp"
#include "rows.hpp"

#ifdef HOLDFAST_TEST_ZOOKEEPER
#include <support/eventually.hpp>
#include <support/locks.hpp>
#include <support/proxy.hpp>
#include <support/zookeeper_server.hpp>
#include <support/zookeeper_tree.hpp>

#include <holdfast/zookeeper/error.hpp>

#include <zookeeper/zookeeper.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::faults::reply_matrix_zookeeper {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::of;
using test::zookeeper_error;
using request = test::zookeeper_request;
using condition = zookeeper::errc;

constexpr std::chrono::milliseconds operation_timeout{20'000};  // of what is answered
constexpr std::chrono::milliseconds too_long{
    5500};  // of what is refused again and again; ends between two sessions, a second apart
constexpr std::chrono::milliseconds unavailable_after{600};

/// What is the case of one error.
struct refusal {
    std::string name;
    std::int32_t code;
    condition expected;   ///< where it is said again and again
    bool passes = false;  ///< said once, the lock is granted all the same: it was not done, or is looked for
};

std::vector<refusal> const& refusals()
{
    static std::vector<refusal> const all{
        {"NOAUTH", ZNOAUTH, condition::may_not_create},
        {"AUTHFAILED", ZAUTHFAILED, condition::authentication_failed},
        {"SESSIONCLOSEDREQUIRESASLAUTH", -124, condition::authentication_failed},
        {"INVALIDACL", ZINVALIDACL, condition::bad_acl},
        {"NOCHILDRENFOREPHEMERALS", ZNOCHILDRENFOREPHEMERALS, condition::parent_is_ephemeral},
        {"UNIMPLEMENTED", ZUNIMPLEMENTED, condition::bad_request},
        {"BADARGUMENTS", ZBADARGUMENTS, condition::bad_request},
        {"EPHEMERALONLOCALSESSION", ZEPHEMERALONLOCALSESSION, condition::bad_request},
        {"BADVERSION", ZBADVERSION, condition::server_error},
        {"NOTEMPTY", ZNOTEMPTY, condition::server_error},
        {"QUOTAEXCEEDED", -125, condition::server_error},
        {"an unknown error", -199, condition::server_error},
        {"SESSIONMOVED", ZSESSIONMOVED, condition::throttled, true},
        {"THROTTLEDOP", -127, condition::throttled, true},
        {"NOTREADONLY", ZNOTREADONLY, condition::throttled, true},
        {"SYSTEMERROR", ZSYSTEMERROR, condition::connection_lost, true},
        {"DATAINCONSISTENCY", ZDATAINCONSISTENCY, condition::connection_lost, true},
        {"MARSHALLINGERROR", ZMARSHALLINGERROR, condition::connection_lost, true},
        {"OPERATIONTIMEOUT", ZOPERATIONTIMEOUT, condition::connection_lost, true},
        {"CONNECTIONLOSS", ZCONNECTIONLOSS, condition::connection_lost, true},
        {"SESSIONEXPIRED", ZSESSIONEXPIRED, condition::not_connected, true},
        {"NONODE", ZNONODE, condition::no_answer, true},
    };
    return all;
}

class matrix {
public:
    /// Of a lock of its own, in a server that others use, too.
    matrix(test::zookeeper_server& server, std::string name, bool control)
        : control_{control}, name_{std::move(name)}, server_{server}
    {
    }

    void said_once(refusal const& r)
    {
        zookeeper::session zk{way_.address(), {.session_timeout = 30s, .operation_timeout = operation_timeout}};
        zookeeper::mutex m{zk, name_};
        warm(m);
        way_.answer_next_request(zookeeper_error(r.code), {.matches = of(request::create)});
        auto const got = code_of([&] {
            if (m.try_lock()) m.unlock();
        });
        way_.heal();
        if (got != expected(r, true)) wrong(r.name + ", once", "reported as " + said(got));
        works_again(r.name + ", once", m);
    }

    void said_always(refusal const& r)
    {
        auto const limit = r.passes ? too_long : operation_timeout;
        zookeeper::session zk{way_.address(), {.session_timeout = 30s, .operation_timeout = limit}};
        zookeeper::mutex m{zk, name_, {.unavailable_after = unavailable_after}};
        warm(m);
        auto const before = way_.struck();
        way_.answer_next_request(zookeeper_error(r.code), {.matches = of(request::create), .times = 1'000'000});
        auto const got = code_of([&] { static_cast<void>(m.try_lock()); });
        if (got != expected(r, false)) wrong(r.name, "reported as " + said(got));
        auto const asked = way_.struck() - before;
        if (r.passes ? asked > 10 : asked != 1) wrong(r.name, "one attempt asked " + std::to_string(asked) + " times");
        way_.heal();
        works_again(r.name, m);
    }

    /// A real server that was brought to say it.
    void by_real_server(std::string const& what, condition code, std::string const& path,
                        zookeeper::session_options options = {})
    {
        options.operation_timeout = operation_timeout;
        options.session_timeout = 30s;
        zookeeper::session zk{server_.address(), options};
        zookeeper::mutex m{zk, path};
        auto const got = code_of([&] { static_cast<void>(m.try_lock()); });
        if (got != (control_ ? condition::no_answer : code))
            wrong(what + ", a real server", "reported as " + said(got));
        ++real_;
    }

    void real_servers()
    {
        tree_.create("/faults/of another");
        tree_.permit("/faults/of another", ZOO_PERM_READ);
        by_real_server("NOAUTH", condition::may_not_create, "/faults/of another");
        tree_.create("/faults/ephemeral", {}, true);
        by_real_server("NOCHILDRENFOREPHEMERALS", condition::parent_is_ephemeral, "/faults/ephemeral");
        by_real_server("AUTHFAILED", condition::authentication_failed, name_,
                       {.auth_scheme = "unheard-of", .auth_credential = "x"});
    }

    [[nodiscard]] breaches const& found() const noexcept { return found_; }
    [[nodiscard]] std::size_t real() const noexcept { return real_; }

private:
    void wrong(std::string const& of, std::string const& what) { found_.push_back(of + ": " + what); }

    [[nodiscard]] std::error_code expected(refusal const& r, bool once) const
    {
        if (control_) return condition::session_expired;
        return once && r.passes ? std::error_code{} : make_error_code(r.expected);
    }

    /// Effects: has a session and the nodes above made.
    static void warm(zookeeper::mutex& m)
    {
        if (!m.try_lock_for(1min)) throw std::runtime_error{"no lock without a fault"};
        m.unlock();
    }

    void works_again(std::string const& of, zookeeper::mutex& m)
    {
        if (code_of([&] {
                if (!m.try_lock_for(1min)) throw std::system_error{make_error_code(errc::contended)};
            }))
            return wrong(of, "the lock does not work afterwards");
        if (auto const there = tree_.children("/" + name_).size(); there != 1)
            wrong(of, "it has " + std::to_string(there) + " nodes");
        std::error_code ec;
        m.unlock(ec);
        if (ec || !eventually([&] { return tree_.children("/" + name_).empty(); }))
            wrong(of, "the lock is left behind");
    }

    bool control_;
    std::string name_;
    test::zookeeper_server& server_;
    test::proxy way_{server_.port(), test::zookeeper_packets};
    test::zookeeper_tree tree_{server_.address()};
    breaches found_;
    std::size_t real_ = 0;
};

}  // namespace

void go(run_options const& run, findings& to)
{
    test::zookeeper_server server{{.tick = 200ms}};
    test::zookeeper_tree{server.address()}.create("/faults");
    // Most of it is waiting: some are at it together, each with a lock and a way to the server of its own.
    std::list<matrix> all;
    for (std::size_t i = 0; i < 4; ++i) all.emplace_back(server, "faults/orders" + std::to_string(i), run.control);
    std::vector<std::future<void>> at_it;
    for (std::size_t first = 0; auto& one : all)
        at_it.push_back(std::async(std::launch::async, [&one, &all, n = first++] {
            for (auto i = n; i < refusals().size(); i += all.size()) {
                one.said_once(refusals()[i]);
                one.said_always(refusals()[i]);
            }
        }));
    for (auto& one : at_it) one.get();
    auto& last = all.back();
    last.real_servers();
    to.figure("answers, of which by a real server",
              std::to_string(refusals().size() + last.real()) + ", " + std::to_string(last.real()));
    for (auto const& one : all)
        to.check("a condition each; tried again where safe; nothing doubled or left behind", one.found());
}

}  // namespace holdfast::faults::reply_matrix_zookeeper
#endif
