// SPDX-License-Identifier: MIT
#include "support/catch.hpp"
#include "support/refusal.hpp"

#include <holdfast/redis.hpp>
#include <holdfast/redis/keys.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

using holdfast::redis::lock_keys;
using holdfast::test::contains;
using holdfast::test::refusal;

namespace {

/// Source: the Redis cluster specification, "Key distribution model" and "Hash tags".
unsigned slot(std::string_view key)
{
    auto const open = key.find('{');
    if (open != std::string_view::npos) {
        auto const close = key.find('}', open + 1);
        if (close != std::string_view::npos && close != open + 1) key = key.substr(open + 1, close - open - 1);
    }
    std::uint32_t crc = 0;
    for (char const c : key) {
        crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8U;
        for (int bit = 0; bit < 8; ++bit) crc = ((crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U) & 0xffffU;
    }
    return crc % 16384;
}

}  // namespace

TEST_CASE("the slots that the tests compute are those of the specification")
{
    CHECK(slot("123456789") == 0x31c3 % 16384);
    CHECK(slot("{user1000}.following") == slot("user1000"));
    CHECK(slot("foo{}{bar}") != slot("bar"));
    CHECK(slot("foo{{bar}}zap") == slot("{bar"));
    CHECK(slot("foo{bar}{zap}") == slot("bar"));
}

TEST_CASE("the key of a lock is its name")
{
    for (auto const* name : {"orders/42", "{a}b", "", "\n"}) CHECK(lock_keys{name}.lock == name);
}

TEST_CASE("the companions of a lock lie in its hash slot")
{
    for (auto const* name : {"orders/42", "{user}:orders", "a{b}c", "a{b}{c}", "a{{b}}", "{open", "a{b", "x y\n"}) {
        lock_keys const keys{name};
        CAPTURE(name);
        CHECK(slot(keys.fence().text()) == slot(name));
        CHECK(slot(keys.channel().text()) == slot(name));
        CHECK(slot(keys.holder().text()) == slot(name));
    }
}

TEST_CASE("what belongs to a lock has names of its own, with the reserved prefix")
{
    std::set<std::string> seen;
    for (auto const* name : {"a", "b", "a{b}", "{b}a", "fence:a", "free:a"}) {
        lock_keys const keys{name};
        CHECK(keys.fence().text().starts_with(lock_keys::reserved_prefix));
        CHECK(keys.channel().text().starts_with(lock_keys::reserved_prefix));
        CHECK(seen.insert(keys.lock).second);
        CHECK(seen.insert(keys.fence().text()).second);
        CHECK(seen.insert(keys.channel().text()).second);
        CHECK(keys.holder().text().starts_with(lock_keys::reserved_prefix));
        CHECK(seen.insert(keys.holder().text()).second);
    }
}

TEST_CASE("a name and the same name in braces are two locks, with queues, readers and holders of their own")
{
    lock_keys const one{"a"};
    lock_keys const other{"{a}"};
    for (auto const companion :
         {&lock_keys::queue, &lock_keys::next, &lock_keys::readers, &lock_keys::phase, &lock_keys::holder}) {
        CHECK((one.*companion)().text() != (other.*companion)().text());
        CHECK(slot((other.*companion)().text()) == slot("{a}"));
    }
}

TEST_CASE("a name that begins with the reserved prefix is refused before anything is sent")
{
    holdfast::redis::client nowhere{"redis://127.0.0.1:1"};
    for (auto const* name : {"holdfast:", "holdfast:fence:{a}"}) {
        CHECK_THAT(refusal([&] { holdfast::redis::mutex{nowhere, name}; }), contains("reserved") && contains(name));
        CHECK(refusal([&] { holdfast::redis::mutex{nowhere, name}; }, &holdfast::error::lock_name) == name);
    }
    for (auto const* name : {"holdfast", "Holdfast:a", "a/holdfast:"})
        CHECK_NOTHROW(holdfast::redis::mutex{nowhere, name});
}

TEST_CASE("the prefix of a client counts when a name is looked at for what is reserved")
{
    holdfast::redis::client unlucky{{.server = {.port = 1}, .key_prefix = "hold"}};
    CHECK_THAT(refusal([&] {
                   holdfast::redis::mutex{unlucky, "fast:a"};
               }),
               contains("key_prefix") && contains("\"fast:a\"") && contains("reserved"));
    CHECK(refusal([&] { holdfast::redis::mutex{unlucky, "fast:a"}; }, &holdfast::error::lock_name) == "fast:a");
    holdfast::redis::client good{{.server = {.port = 1}, .key_prefix = "app:"}};
    CHECK_NOTHROW(holdfast::redis::mutex{good, "holdfast:a"});
}
