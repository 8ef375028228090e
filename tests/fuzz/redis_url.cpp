// SPDX-License-Identifier: MIT
//
// The input is the URL of a Redis server.
#include "input.hpp"

#include <holdfast/core/error.hpp>
#include <holdfast/redis/endpoint.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace {

using holdfast::redis::endpoint;
using holdfast::test::require;

/// Returns: what the URL says; nothing where it is refused, and then `why` is the message.
std::optional<endpoint> parsed(std::string_view url, std::string& why)
{
    try {
        return holdfast::redis::parse_url(url);
    } catch (holdfast::error const& e) {
        require(e.code() == holdfast::errc::misconfigured, "a URL that is refused is a misconfiguration");
        why = e.what();
        return std::nullopt;
    }
}

std::string encoded(std::string_view text)
{
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (char const c : text) {
        auto const byte = static_cast<unsigned char>(c);
        out += '%';
        out += digits[byte >> 4U];
        out += digits[byte & 15U];
    }
    return out;
}

/// Returns: a URL that says what `e` is.
std::string written(endpoint const& e)
{
    auto const user = encoded(e.user) + ':' + encoded(e.password) + '@';
    auto const database = std::to_string(e.database);
    if (!e.unix_path.empty()) return "unix://" + user + encoded(e.unix_path) + "?db=" + database;
    return (e.tls ? "rediss://" : "redis://") + user + encoded(e.host) + ':' + std::to_string(e.port) + '/' + database;
}

bool plain(std::string_view text)
{
    return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_/:") == std::string_view::npos;
}

void check(endpoint const& e)
{
    bool const local = !e.unix_path.empty();
    require(e.database <= 1'000'000, "a database has a number that is not absurd");
    for (auto const* part : {&e.host, &e.unix_path, &e.user, &e.password})
        require(part->find('\0') == std::string::npos, "no part has a zero byte, at which C would end it");
    if (local) {
        require(e.unix_path.front() == '/' && e.unix_path.size() <= 107, "a path is absolute and fits into an address");
    } else {
        require(!e.host.empty() && e.port != 0, "a server has a host and a port");
        auto const zone = std::find(e.host.begin(), e.host.end(), '%');  // an interface: its capitals count
        require(std::none_of(e.host.begin(), zone, [](char c) { return c >= 'A' && c <= 'Z'; }),
                "a host has one way to be written");
    }

    std::string why;
    require(parsed(written(e), why) == e, "an endpoint can be written as a URL, which says the same");
    if (!plain(local ? e.unix_path : e.host) || (!local && e.host.find('/') != std::string::npos)) return;
    auto const again = parsed(e.describe(), why);
    require(again && again->same_server(e) && again->database == e.database, "the description of a server is its URL");
    require(again->user.empty() && again->password.empty(), "the description names no user");
}

}  // namespace

int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string const url{holdfast::test::text_of(data, size)};
    std::string why;
    if (auto const e = parsed(url, why)) check(*e);

    // What stands right before an @ may be the end of a password, whatever the rest looks like.
    constexpr std::string_view secret = "s3cr3tword";
    why.clear();
    if (url.find(secret) == std::string::npos) static_cast<void>(parsed(url + std::string{secret} + "@host", why));
    require(why.find(secret) == std::string::npos, "no message quotes a password");
    if (url.find(secret) == std::string::npos)
        if (auto const e = parsed(url + ':' + std::string{secret} + "@/r", why))
            require(e->describe().find(secret) == std::string::npos, "no description names a password");
    return 0;
}
