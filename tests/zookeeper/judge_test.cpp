// SPDX-License-Identifier: MIT
//
// Who has a lock and who waits for whom, by the pure judgement: every sequence of up to six requests of either kind,
// coming and going in every order.
#include "support/catch.hpp"

#include <holdfast/core/access.hpp>
#include <holdfast/zookeeper/judge.hpp>
#include <holdfast/zookeeper/node_name.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

using holdfast::access;
using holdfast::owner_token;
using holdfast::zookeeper::contender;
using holdfast::zookeeper::contenders_among;
using holdfast::zookeeper::converted_node;
using holdfast::zookeeper::exhausted_sequence;
using holdfast::zookeeper::judge;
using holdfast::zookeeper::naming;
using holdfast::zookeeper::node_prefix;
using holdfast::zookeeper::verdict;

namespace {

using kind = verdict::kind;
using judgement = std::function<verdict(std::vector<contender> const&, std::string_view)>;

/// Returns: the name of the `i`th node, of one of the clients that know such requests.
std::string name_of(std::size_t i, access mode, bool exhausted)
{
    auto const digits = std::string{exhausted ? "2147483647" : "000000000" + std::to_string(i + 1)};
    static std::array<std::string, 3> const writers{"-lock-", "__lock__", "-__WRIT__"};
    static std::array<std::string, 2> const readers{"__rlock__", "-__READ__"};
    // The GUIDs are in the opposite order of the sequences.
    auto const guid = "_c_" + std::to_string(9 - i);
    return guid + (mode == access::exclusive ? writers.at(i % 3) : readers.at(i % 2)) + digits;
}

/// Requests for one lock that come in their order and leave at any time, as the judgement lets them.
class requests {
public:
    requests(judgement j, std::vector<access> modes, bool exhausted)
        : judge_{std::move(j)}, modes_{std::move(modes)}, exhausted_{exhausted}
    {
    }

    /// Returns: what is wrong in some order; nothing if all is well in every one.
    std::optional<std::string> explore() { return explore({std::vector<int>(modes_.size(), absent), 0}); }

    [[nodiscard]] std::size_t states() const noexcept { return seen_.size(); }

private:
    static constexpr int absent = -2;
    static constexpr int holds = -1;
    static constexpr int lost = 99;  // otherwise the number of the one that it waits for
    struct state {
        std::vector<int> of;
        std::size_t next;
        friend bool operator<(state const& a, state const& b)
        {
            return std::pair{a.of, a.next} < std::pair{b.of, b.next};
        }
    };

    [[nodiscard]] std::string name(std::size_t i) const { return name_of(i, modes_[i], exhausted_); }

    /// Effects: `i` looks at the list.
    void look(state& s, std::size_t i) const
    {
        s.of[i] = lost;
        std::vector<std::string> children{"a note", "lock-", "__READ__1"};
        for (std::size_t k = 0; k < s.of.size(); ++k)
            if (s.of[k] != absent) children.push_back(name(k));
        auto line = contenders_among(children);
        for (auto& one : line)
            for (std::size_t k = 0; k < s.of.size(); ++k)
                if (one.name == name(k)) one.czxid = static_cast<std::int64_t>(k) + 1;
        auto const said = judge_(line, name(i));
        if (said.what == kind::granted) s.of[i] = holds;
        for (std::size_t k = 0; k < s.of.size(); ++k)
            if (said.what == kind::waits && said.watch == name(k)) s.of[i] = static_cast<int>(k);
    }

    [[nodiscard]] std::optional<std::string> fault_of(state const& s) const
    {
        bool first = true;
        bool writer_before = false;
        for (std::size_t i = 0; i < s.of.size(); ++i) {
            if (s.of[i] == absent) continue;
            bool const writes = modes_[i] == access::exclusive;
            if (s.of[i] == holds) {
                for (std::size_t k = 0; k < i; ++k)
                    if (s.of[k] == holds && (writes || modes_[k] == access::exclusive)) return "two hold together";
            } else {
                if (s.of[i] == lost) return "one waits for no node";
                if (s.of[i] >= static_cast<int>(i)) return "one waits for a later one";
                if (s.of[static_cast<std::size_t>(s.of[i])] == absent) return "one waits for a node that is not there";
                if (first) return "the first in line waits";
                if (!writes && !writer_before) return "a reader waits without a writer before it";
            }
            first = false;
            writer_before = writer_before || writes;
        }
        return {};
    }

    std::optional<std::string> explore(state const& s)
    {
        if (!seen_.insert(s).second) return {};
        if (auto const fault = fault_of(s)) return fault;
        if (s.next < s.of.size()) {
            auto then = s;
            ++then.next;
            look(then, s.next);
            if (auto const fault = explore(then)) return fault;
            then = s;
            ++then.next;  // it gives up before it has a node
            if (auto const fault = explore(then)) return fault;
        }
        for (std::size_t i = 0; i < s.of.size(); ++i) {
            if (s.of[i] == absent) continue;
            auto then = s;
            then.of[i] = absent;
            for (std::size_t k = 0; k < s.of.size(); ++k)
                if (then.of[k] == static_cast<int>(i)) look(then, k);
            if (auto const fault = explore(then)) return fault;
        }
        return {};
    }

    judgement judge_;
    std::vector<access> modes_;
    bool exhausted_;
    std::set<state> seen_;
};

/// Returns: what is wrong in some order of up to `most` requests.
std::optional<std::string> fault_among(std::size_t most, judgement const& j, bool exhausted)
{
    for (std::size_t size = 1; size <= most; ++size)
        for (unsigned bits = 0; bits < 1U << size; ++bits) {
            std::vector<access> modes;
            for (std::size_t i = 0; i < size; ++i)
                modes.push_back(((bits >> i) & 1U) != 0 ? access::shared : access::exclusive);
            requests all{j, modes, exhausted};
            if (auto const fault = all.explore()) return fault;
            REQUIRE(all.states() > size);
        }
    return {};
}

}  // namespace

TEST_CASE("six requests of either kind, in every order: none hold together that conflict, and one always goes on",
          "[lesson-16]")
{
    auto const exhausted = GENERATE(false, true);
    auto const fault = fault_among(
        6, [](auto const& line, auto mine) { return judge(line, mine); }, exhausted);
    CHECK(fault.value_or("") == "");
}

TEST_CASE("that check refuses judgements that are wrong", "[lesson-16]")
{
    auto const without = [](auto const& leave_out) -> judgement {
        return [leave_out](std::vector<contender> line, std::string_view mine) {
            auto const self =
                *std::find_if(line.begin(), line.end(), [&](auto const& one) { return one.name == mine; });
            auto const first = line.front().name;
            std::erase_if(line, [&](contender const& one) { return one.name != mine && leave_out(one, self, first); });
            return judge(line, mine);
        };
    };
    auto const shared = [](contender const& one) { return one.mode == access::shared; };
    SECTION("a reader passes a waiting writer")
    {
        auto const j = without([&](auto const& one, auto const& self, auto const& first) {
            return shared(self) && !shared(one) && one.name != first;
        });
        CHECK(fault_among(3, j, false) == "two hold together");
    }
    SECTION("a writer looks at writers only")
    {
        auto const j =
            without([&](auto const& one, auto const& self, auto const&) { return !shared(self) && shared(one); });
        CHECK(fault_among(2, j, false) == "two hold together");
    }
    SECTION("a reader looks at all, as a writer does")
    {
        judgement const j = [](std::vector<contender> line, std::string_view mine) {
            for (auto& one : line) one.mode = access::exclusive;
            return judge(line, mine);
        };
        CHECK(fault_among(2, j, false) == "a reader waits without a writer before it");
    }
    SECTION("the order is that of the names")
    {
        judgement const j = [](std::vector<contender> line, std::string_view mine) {
            std::sort(line.begin(), line.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
            for (std::uint32_t i = 0; i < line.size(); ++i) line[i].sequence = i;
            return judge(line, mine);
        };
        CHECK(fault_among(2, j, false) == "two hold together");
    }
    SECTION("a client waits for the last one")
    {
        judgement const j = [](std::vector<contender> const& line, std::string_view mine) {
            auto said = judge(line, mine);
            if (said.what == kind::waits) said.watch = line.back().name;
            return said;
        };
        CHECK(fault_among(3, j, false).has_value());
    }
}

TEST_CASE("those of an exhausted sequence are asked what made them, if they conflict")
{
    auto line = contenders_among({"_c_a-__READ__2147483647", "_c_b-__WRIT__2147483647", "_c_c-__READ__-2147483648",
                                  "_c_d-lock-0000000003", "_c_e-__READ__0000000004"});
    REQUIRE(line.size() == 5);
    auto const at = [&](std::string const& name) {
        return static_cast<std::size_t>(
            std::find_if(line.begin(), line.end(), [&](auto const& one) { return one.name.starts_with(name); }) -
            line.begin());
    };
    auto const say = [&](std::string const& name) { return judge(line, line.at(at(name)).name); };
    line[at("_c_a")].czxid = 50;
    auto said = say("_c_a");
    CHECK(said.what == kind::tied);
    CHECK(said.tied == std::vector<std::size_t>{at("_c_b")});
    SECTION("a writer that was made before is waited for")
    {
        line[at("_c_b")].czxid = 40;
        CHECK(say("_c_a").watch == line[at("_c_b")].name);
        // The writer itself waits for the node before it, of either kind.
        said = say("_c_b");
        CHECK(said.tied == std::vector<std::size_t>{at("_c_c")});
        line[at("_c_c")].czxid = 30;
        CHECK(say("_c_b").watch == line[at("_c_c")].name);
        line[at("_c_c")].czxid = 60;
        CHECK(say("_c_b").watch == line[at("_c_e")].name);
    }
    SECTION("a writer that was made later is not")
    {
        line[at("_c_b")].czxid = 60;
        CHECK(say("_c_a").watch == line[at("_c_d")].name);
        line.erase(line.begin() + static_cast<std::ptrdiff_t>(at("_c_d")));
        CHECK(say("_c_a").what == kind::granted);
    }
}

TEST_CASE("a client without a node is told so")
{
    CHECK(judge({}, "_c_a-lock-0000000001").what == kind::gone);
    CHECK(judge(contenders_among({"_c_a-lock-0000000001"}), "_c_a-lock-0000000002").what == kind::gone);
}

TEST_CASE("nodes have the names of Curator's and kazoo's, and each says what it asks for")
{
    auto const token = owner_token::from_bits(0, 1);
    auto const curator = std::string{"_c_00000000-0000-0000-0000-000000000001-"};
    auto const kazoo = std::string{"00000000000000000000000000000001"};
    CHECK(node_prefix(naming::curator, token) == curator + "lock-");
    CHECK(node_prefix(naming::curator, token, access::exclusive) == curator + "__WRIT__");
    CHECK(node_prefix(naming::curator, token, access::shared) == curator + "__READ__");
    CHECK(node_prefix(naming::kazoo, token) == kazoo + "__lock__");
    CHECK(node_prefix(naming::kazoo, token, access::exclusive) == kazoo + "__lock__");
    CHECK(node_prefix(naming::kazoo, token, access::shared) == kazoo + "__rlock__");
    for (auto const as : {naming::curator, naming::kazoo})
        for (auto const mode : {access::sole, access::exclusive, access::shared}) {
            auto const line = contenders_among({node_prefix(as, token, mode) + "0000000042"});
            REQUIRE(line.size() == 1);
            CHECK(line.front().sequence == 42);
            CHECK((line.front().mode == access::shared) == (mode == access::shared));
        }
    CHECK(converted_node(naming::curator, token, access::shared, 7) == curator + "converted-__READ__0000000007");
    CHECK(converted_node(naming::curator, token, access::exclusive, 7) == curator + "converted-__WRIT__0000000007");
    CHECK(converted_node(naming::kazoo, token, access::shared, 7) == kazoo + "converted__rlock__0000000007");
    CHECK(converted_node(naming::kazoo, token, access::exclusive, 7) == kazoo + "converted__lock__0000000007");
    for (auto const as : {naming::curator, naming::kazoo})
        for (auto const mode : {access::exclusive, access::shared}) {
            CHECK(contenders_among({converted_node(as, token, mode, 42)}).at(0).converted);
            CHECK(contenders_among({converted_node(as, token, mode, 42)}).at(0).sequence == 42);
            CHECK_FALSE(contenders_among({node_prefix(as, token, mode) + "0000000042"}).at(0).converted);
        }
    for (auto const* const stranger :
         {"__READ__", "__READ__000000001", "__READ__00000000001", "__read__0000000001", "_c_a-__READ__000000000x",
          "__WRIT__-0000000001x", "__WRIT__2147483648", "READ__0000000001", "__rlock__ 000000001", "0000000001", ""})
        CHECK(contenders_among({stranger}).empty());
}
