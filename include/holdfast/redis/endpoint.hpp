// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/core/number.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A URL as an argument, whose text outlives the call. Unlike `std::string_view` it is not made from two pointers, so
/// that a list of two URLs is never taken for one.
class url {
public:
    /// Effects: refers to `text`.
    url(char const* text) noexcept : text_{text} {}  // NOLINT(google-explicit-constructor)
    /// Effects: refers to `text`.
    url(std::string_view text) noexcept : text_{text} {}  // NOLINT(google-explicit-constructor)
    /// Effects: refers to `text`.
    url(std::string const& text) noexcept : text_{text} {}  // NOLINT(google-explicit-constructor)

    /// Returns: the text of the URL, which may hold a password.
    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string_view text_;
};

/// The address of a Redis server, and the user to log in as.
struct endpoint {
    std::string host = "127.0.0.1";  ///< a name, or an address without brackets
    std::uint16_t port = 6379;       ///< of the host
    std::string unix_path{};         ///< if not empty: used in place of host and port
    std::string user{};              ///< empty: the default user
    std::string password{};          ///< empty: no authentication
    unsigned database = 0;           ///< its number
    bool tls = false;                ///< use TLS; see `tls::options`

    /// Returns: the endpoint as a URL for messages: without user and password, with every byte that is not printable
    /// ASCII escaped.
    [[nodiscard]] std::string describe() const
    {
        if (!unix_path.empty())
            return "unix://" + printable(unix_path) + (database != 0 ? "?db=" + std::to_string(database) : "");
        bool const v6 = host.find(':') != std::string::npos;
        return (tls ? "rediss://" : "redis://") + (v6 ? "[" + printable(host) + "]" : printable(host)) + ":" +
               std::to_string(port) + (database != 0 ? "/" + std::to_string(database) : "");
    }

    /// Returns: whether both are the same server, in whatever database: what happens to one database may happen to the
    /// other.
    [[nodiscard]] bool same_server(endpoint const& other) const noexcept
    {
        if (!unix_path.empty() || !other.unix_path.empty()) return unix_path == other.unix_path;
        return host == other.host && port == other.port;
    }

    friend bool operator==(endpoint const&, endpoint const&) = default;
};

/// Throws: `error` (`misconfigured`) naming the field of `e` that cannot be used, after `where`.
inline void check_endpoint(endpoint const& e, std::string_view where)
{
    auto const require = [&](bool good, char const* what) {
        if (!good) throw error{holdfast::errc::misconfigured, std::string{where} + what};
    };
    auto const no_zero = [](std::string_view text) { return text.find('\0') == std::string_view::npos; };
    constexpr std::size_t longest = 107;       // sizeof sockaddr_un::sun_path - 1
    constexpr std::size_t longest_host = 255;  // of DNS, and of TLS
    require(e.unix_path.empty() || e.unix_path.starts_with('/'), "path: it must be absolute: unix:///run/redis.sock");
    require(e.unix_path.size() <= longest, "path: a Unix socket's path has at most 107 bytes");
    require(no_zero(e.unix_path) && no_zero(e.host), "host, path: a zero byte is in it");
    require(!e.unix_path.empty() || !e.host.empty(), "host: it is empty");
    auto const blank = [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; };
    require(std::none_of(e.host.begin(), e.host.end(), blank), "host: a blank or a control character is in it");
    require(!e.host.starts_with('.'), "host: a name does not begin with a dot");
    require(e.host.size() <= longest_host, "host: a name has at most 255 bytes");
    require(!e.unix_path.empty() || e.port != 0, "port: it must be 1 to 65535");
    require(e.unix_path.empty() || !e.tls, "tls: a Unix socket has none");
}

namespace detail {

/// Where a URL comes from. One that was cut out of a list, at commas, may be a part of a password that has a comma.
enum class url_origin : std::uint8_t { on_its_own, cut_out };

/// Parses a URL into an endpoint. An error names the part that is wrong and never quotes what may hold a password.
class url_parser {
public:
    /// `which` begins each message: "Redis URL".
    explicit url_parser(std::string which, url_origin from = url_origin::on_its_own)
        : which_{std::move(which)}, from_{from}
    {
    }

    [[nodiscard]] endpoint parse(std::string_view url) const
    {
        endpoint e;
        e.tls = url.starts_with("rediss://");
        if (eat(url, "redis://") || eat(url, "rediss://"))
            parse_tcp(url, e);
        else if (eat(url, "unix://"))
            parse_unix(url, e);
        else
            fail("scheme", "it must begin with redis://, rediss:// or unix://");
        check_endpoint(e, which_ + ", ");
        return e;
    }

private:
    [[noreturn]] void fail(std::string_view part, std::string const& why) const
    {
        throw error{holdfast::errc::misconfigured, which_ + ", " + std::string{part} + ": " + why};
    }

    [[noreturn]] void fail_option(std::string_view option, std::string const& why) const
    {
        auto const name = option.substr(0, option.find_first_of("=&"));
        bool const sets = option.substr(name.size()).starts_with('=');  // or it may be the end of a password
        if (sets && from_ == url_origin::on_its_own) fail("options", "unknown option " + holdfast::quoted(name) + why);
        fail("options", "one is unknown" + why + "; in a password, a comma is written as %2c and ? as %3f");
    }

    /// Returns: what follows the `?`. If it contains an `@`, the `?` belongs to a password.
    std::string_view cut_options(std::string_view& url) const
    {
        auto const options = cut(url, '?');
        if (options.find('@') != std::string_view::npos) fail("password", "a question mark in it is written as %3f");
        return options;
    }

    static bool eat(std::string_view& text, std::string_view prefix)
    {
        if (!text.starts_with(prefix)) return false;
        text.remove_prefix(prefix.size());
        return true;
    }

    void parse_tcp(std::string_view rest, endpoint& e) const
    {
        auto const options = cut_options(rest);
        if (!options.empty()) fail_option(options, e.tls ? "; a rediss:// URL has none" : "; a redis:// URL has none");
        auto const database = cut(rest, '/');
        if (database.find('@') != std::string_view::npos) fail("password", "a slash in it is written as %2f");
        if (rest.find(',', rest.rfind('@') + 1) != std::string_view::npos)
            fail("host", "a comma is in it; each server has a URL of its own");
        if (!database.empty()) e.database = number("database", database, 1'000'000);
        parse_credentials(rest, e);
        if (rest.starts_with('[')) {
            auto const end = rest.find(']');
            if (end == std::string_view::npos) fail("host", "a bracket is not closed");
            e.host = rest.substr(1, end - 1);
            auto const zone = e.host.find("%25");  // RFC 6874
            if (zone != std::string::npos && zone + 3 < e.host.size()) e.host.erase(zone + 1, 2);
            rest.remove_prefix(end + 1);
            if (!rest.empty() && rest.front() != ':') fail("host", "only a port may follow the bracket");
            if (!rest.empty()) parse_port(rest.substr(1), e);
        } else {
            auto const colon = rest.find(':');
            if (colon != std::string_view::npos) parse_port(rest.substr(colon + 1), e);
            e.host = decoded("host", rest.substr(0, colon));
        }
        auto const zone = std::find(e.host.begin(), e.host.end(), '%');  // the name of an interface
        std::transform(e.host.begin(), zone, e.host.begin(), holdfast::detail::in_small);
    }

    void parse_unix(std::string_view rest, endpoint& e) const
    {
        auto options = cut_options(rest);
        while (!options.empty()) {
            auto option = options;
            options = cut(option, '&');
            if (!eat(option, "db=")) fail_option(option, "; db is the only one");
            e.database = number("db", option, 1'000'000);
        }
        if (!rest.starts_with('/'))
            parse_credentials(rest, e);
        else if (rest.substr(0, rest.rfind('@') + 1).find(':') != std::string_view::npos)
            fail("password", "it stands before the path, unix://user:password@/path; an @ in a path is written as %40");
        e.unix_path = decoded("path", rest);
        if (e.unix_path.empty()) fail("path", "it is empty; it must be absolute: unix:///run/redis.sock");
    }

    void parse_credentials(std::string_view& rest, endpoint& e) const
    {
        auto const at = rest.rfind('@');
        if (at == std::string_view::npos) return;
        auto const user = rest.substr(0, at);
        rest.remove_prefix(at + 1);
        auto const colon = user.find(':');
        e.user = decoded("user", user.substr(0, colon));
        if (colon != std::string_view::npos) e.password = decoded("password", user.substr(colon + 1));
    }

    void parse_port(std::string_view text, endpoint& e) const
    {
        e.port = static_cast<std::uint16_t>(number("port", text, 65535));
    }

    /// Returns: what follows `mark`; what precedes it stays in `text`.
    static std::string_view cut(std::string_view& text, char mark)
    {
        auto const at = text.find(mark);
        if (at == std::string_view::npos) return {};
        auto const tail = text.substr(at + 1);
        text = text.substr(0, at);
        return tail;
    }

    unsigned number(std::string_view part, std::string_view text, unsigned most) const
    {
        auto const n = holdfast::detail::number_in<unsigned>(text);
        if (!n || *n > most) fail(part, "it must be a number, at most " + std::to_string(most));
        return *n;
    }

    std::string decoded(std::string_view part, std::string_view text) const
    {
        std::string out;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] != '%') {
                out += text[i];
                continue;
            }
            unsigned byte = 0;
            auto const* const begin = text.data() + i + 1;
            if (text.size() - i < 3 || std::from_chars(begin, begin + 2, byte, 16).ptr != begin + 2)
                fail(part, "% must be followed by two hexadecimal digits");
            if (byte == 0) fail(part, "it contains %00");
            out += static_cast<char>(byte);
            i += 2;
        }
        if (out.find('\0') != std::string::npos) fail(part, "it contains a zero byte");
        return out;
    }

    std::string which_;
    url_origin from_;
};

}  // namespace detail

/// Returns: the endpoint that `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS, or
/// `unix://[user:password@]/path[?db=n]` names; `[user]` may be empty. Reserved characters in user, password, host and
/// path are written as `%xx`, also an @ after a colon in a path.
/// Throws: `error` (`misconfigured`) naming the part of the URL that is wrong, without quoting secrets.
[[nodiscard]] inline endpoint parse_url(std::string_view url) { return detail::url_parser{"Redis URL"}.parse(url); }

/// Returns: what each of `urls` says, see `parse_url`. Throws: as that; the message says which one of them it is.
template <class Urls>
[[nodiscard]] std::vector<endpoint> parse_urls(Urls const& urls,
                                               detail::url_origin from = detail::url_origin::on_its_own)
{
    std::vector<endpoint> servers;
    for (url const one : urls) {
        auto which = "Redis URL " + std::to_string(servers.size() + 1) + " of " + std::to_string(urls.size());
        servers.push_back(detail::url_parser{std::move(which), from}.parse(one.text()));
    }
    return servers;
}

}  // namespace holdfast::redis
