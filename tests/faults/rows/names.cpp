// SPDX-License-Identifier: MIT
//
// Names that are no names, that mean something to a store, a shell or a terminal, or that are like another: refused
// before anything is asked of a server, or each the name of a lock of its own.
#include "rows.hpp"

#include "../site.hpp"

#include <support/eventually.hpp>
#include <support/proxy.hpp>
#ifdef HOLDFAST_TEST_ZOOKEEPER
#endif

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::faults::names {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

/// Who takes a name for that of a lock.
enum class taken_by { nobody, redis, all };

struct trial {
    std::string name;
    taken_by whom;
};

/// No two of them are the same to any store: on ZooKeeper, a slash in front of a name says nothing.
std::vector<trial> trials()
{
    return {
        {"", taken_by::nobody},
        {std::string(std::size_t{1} << 20U, 'x'), taken_by::nobody},
        {std::string(max_name_size + 1, 'x'), taken_by::nobody},
        {std::string(max_name_size, 'x'), taken_by::redis},
        {std::string(1'024, 'x'), taken_by::redis},
        {std::string(1'023, 'x'), taken_by::all},
        {"orders", taken_by::all},
        {"Orders", taken_by::all},
        {"orders ", taken_by::all},
        {" orders", taken_by::all},
        {"orders:fence", taken_by::all},
        {"{orders}", taken_by::all},
        {"{}", taken_by::all},
        {"{}orders", taken_by::all},
        {"}{", taken_by::all},
        {"*", taken_by::all},
        {"?", taken_by::all},
        {"[a-z]", taken_by::all},
        {"orders%2f1", taken_by::all},
        {"orders/1", taken_by::all},
        {"orders/1/2", taken_by::all},
        {R"("orders'; DEL orders; --)", taken_by::all},
        {"$(reboot)", taken_by::all},
        {"b\xC3\xBC"
         "cher",
         taken_by::all},  // in UTF-8
        {"bu\xCC\x88"
         "cher",
         taken_by::all},                        // the same to the eye
        {"\xC2\xA0", taken_by::all},            // the first and the last that ZooKeeper takes: U+00A0
        {"\xED\x9F\xBF", taken_by::all},        // U+D7FF
        {"\xEF\xA4\x80", taken_by::all},        // U+F900
        {"\xEF\xBF\xAF", taken_by::all},        // U+FFEF
        {"\xC2\x9F", taken_by::redis},          // U+009F
        {"\xEF\xA3\xBF", taken_by::redis},      // U+F8FF
        {"\xEF\xBF\xB0", taken_by::redis},      // U+FFF0
        {"\xF0\x9F\x94\x92", taken_by::redis},  // U+1F512
        {"orders\0"s, taken_by::redis},
        {"orders\0a"s, taken_by::redis},
        {"\0"s, taken_by::redis},
        {"/", taken_by::redis},
        {"//", taken_by::redis},
        {"orders/", taken_by::redis},
        {"orders//1", taken_by::redis},
        {".", taken_by::redis},
        {"..", taken_by::redis},
        {"../", taken_by::redis},
        {"../orders", taken_by::redis},
        {"orders/../bills", taken_by::redis},
        {"/zookeeper", taken_by::redis},
        {"zookeeper/quota", taken_by::redis},
        {"orders\r\nDEL orders\r\n", taken_by::redis},
        {"\x1B[2Jorders", taken_by::redis},
        {"orders\x7F", taken_by::redis},
        {"\xFF\xFE", taken_by::redis},
        {"\xC0\xAF", taken_by::redis},        // a slash, longer than it may be
        {"\xED\xA0\x80", taken_by::redis},    // half of a surrogate pair
        {"orders\xE2\x82", taken_by::redis},  // cut off within a character
    };
}

/// A way to servers on which it is counted what they are asked.
class counted_way {
public:
    virtual ~counted_way() = default;
    [[nodiscard]] virtual std::vector<std::string> servers() const = 0;
    [[nodiscard]] virtual int asked() const = 0;
};

class way_to_redis final : public counted_way {
public:
    explicit way_to_redis(std::vector<std::uint16_t> const& ports)
    {
        for (auto const port : ports) ways_.emplace_back(port);
    }

    [[nodiscard]] std::vector<std::string> servers() const override { return test::urls(ways_); }

    [[nodiscard]] int asked() const override
    {
        int sum = 0;
        for (auto const& one : ways_) sum += one.requests();
        return sum;
    }

private:
    std::vector<test::proxy> ways_;
};

#ifdef HOLDFAST_TEST_ZOOKEEPER
class way_to_zookeeper final : public counted_way {
public:
    explicit way_to_zookeeper(std::uint16_t port) : way_{port, test::zookeeper_packets} {}

    [[nodiscard]] std::vector<std::string> servers() const override { return {way_.address()}; }
    /// What keeps the session alive is not counted.
    [[nodiscard]] int asked() const override { return asked_(); }

private:
    using request = test::zookeeper_request;

    test::proxy way_;
    std::function<int()> asked_ = way_.count(test::of(
        {request::create, request::create_container, request::erase, request::get_data, request::get_children}));
};
#endif

std::unique_ptr<counted_way> way_to(site const& servers)
{
#ifdef HOLDFAST_TEST_ZOOKEEPER
    if (servers.where().what == place::store::zookeeper)
        return std::make_unique<way_to_zookeeper>(servers.ports().at(0));
#endif
    return std::make_unique<way_to_redis>(servers.ports());
}

/// Returns: why `client` refuses the name; nothing where it does not.
std::string refusal(store const& client, std::string const& name, breaches& found)
try {
    mutex const unused{client, name};
    return {};
} catch (error const& e) {
    if (e.code() != errc::misconfigured)
        found.push_back(holdfast::quoted(name) + " is refused with " + e.code().message());
    return e.what();
}

/// Returns: whether it can be written to a log or a terminal.
bool harmless(std::string_view message)
{
    return message.size() < 1024 &&
           std::all_of(message.begin(), message.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7F; });
}

}  // namespace

void go(run_options const& run, findings& to)
{
    auto const servers = open_site(run.on);
    auto const way = way_to(*servers);
    auto there_by_the_way = servers->where();
    there_by_the_way.servers = way->servers();
    // Nothing here depends on a time.
    there_by_the_way.operation_timeout = 10s;
    if (run.on == place::store::zookeeper) there_by_the_way.ttl = 30s;
    auto const one = connect(there_by_the_way);
    auto const other = connect(there_by_the_way);
    lock_options const options{.ttl = 10min};
    breaches found;

    // The control: names that end at their first zero byte, as those of C do.
    auto const as_told = [&](std::string const& name) { return run.control ? name.substr(0, name.find('\0')) : name; };
    auto const limit = 30s;

    std::vector<std::string> taken;
    std::size_t refused = 0;
    for (auto const& [name, whom] : trials()) {
        auto const given = as_told(name);
        bool const allowed = whom == taken_by::all || (whom == taken_by::redis && run.on != place::store::zookeeper);
        auto const asked = way->asked();
        auto const why = refusal(one, given, found);
        if (way->asked() != asked)
            found.push_back(holdfast::quoted(name) + ": a server was asked before it was judged");
        if (allowed != why.empty())
            found.push_back(holdfast::quoted(name) + (allowed ? " is refused: " + why : " is not refused"));
        if (!harmless(why)) found.push_back(holdfast::quoted(name) + ": what is said of it may harm who reads it");
        if (!why.empty())
            ++refused;
        else if (allowed)
            taken.push_back(name);
    }

    std::vector<std::unique_ptr<mutex>> held;
    std::set<std::string> told;
    for (auto const& name : taken) {
        held.push_back(std::make_unique<mutex>(one, as_told(name), options));
        // What was told before is held, however long one waits.
        bool const first = told.insert(as_told(name)).second;
        if (!held.back()->try_lock_for(first ? limit : 100ms))
            found.push_back(holdfast::quoted(name) + " is the name of another lock, too");
    }
    for (auto const& name : taken) {
        if (servers->copies_of(name).of_one_owner < servers->quorum())
            found.push_back(holdfast::quoted(name) + " is not there by its name");
        if (mutex{other, name, options}.try_lock()) found.push_back(holdfast::quoted(name) + " is two locks");
    }
    std::error_code ec;
    for (std::size_t i = 0; i < taken.size(); ++i) {
        held[i]->unlock(ec);
        if (ec) found.push_back(holdfast::quoted(taken[i]) + " is not released: " + ec.message());
        mutex again{other, taken[i], options};
        if (!again.try_lock_for(limit)) found.push_back(holdfast::quoted(taken[i]) + " was not free after its release");
        again.unlock(ec);
        // Of five masters the last are told when a majority has answered.
        if (!test::eventually([&] { return servers->copies_of(taken[i]).all == 0; }, limit))
            found.push_back(holdfast::quoted(taken[i]) + " is left behind");
    }
    to.figure("names taken, refused", std::to_string(taken.size()) + ", " + std::to_string(refused));
    to.check("refused before a server is asked, or a lock of its own", found);
    to.check("K7", check_remains(servers->left(10s, waiters::ended)));
}

}  // namespace holdfast::faults::names
