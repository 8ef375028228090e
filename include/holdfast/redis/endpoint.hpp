// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/error.hpp>
#include <holdfast/core/name.hpp>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::redis {

/// A URL as an argument, whose text outlives the call. It is not made from two pointers, as a `std::string_view` is, so that a list of two URLs
/// is never taken for one.
class url {
public:
    url(char const* text) noexcept : text_{text} {}         // NOLINT(google-explicit-constructor)
    url(std::string_view text) noexcept : text_{text} {}    // NOLINT(google-explicit-constructor)
    url(std::string const& text) noexcept : text_{text} {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] std::string_view text() const noexcept { return text_; }

private:
    std::string_view text_;
};

/// Where a Redis server is, and as whom to talk to it.
struct endpoint {
    std::string host = "127.0.0.1";
    std::uint16_t port = 6379;
    std::string unix_path{};  ///< in place of host and port where it is not empty
    std::string user{};       ///< empty: the default user
    std::string password{};   ///< empty: no authentication
    unsigned database = 0;
    bool tls = false;  ///< talk TLS; see `tls::options`

    /// Returns: the endpoint as a URL for messages: without user and password, with every byte that is not printable ASCII escaped.
    [[nodiscard]] std::string describe() const
    {
        if (!unix_path.empty()) return "unix://" + printable(unix_path) + (database != 0 ? "?db=" + std::to_string(database) : "");
        bool const v6 = host.find(':') != std::string::npos;
        return (tls ? "rediss://" : "redis://") + (v6 ? "[" + printable(host) + "]" : printable(host)) + ":" + std::to_string(port) +
               (database != 0 ? "/" + std::to_string(database) : "");
    }

    /// Returns: whether both are the same server: what is stored in one database of it is not safe from what happens to another.
    [[nodiscard]] bool same_server(endpoint const& other) const noexcept
    {
        if (!unix_path.empty() || !other.unix_path.empty()) return unix_path == other.unix_path;
        return host == other.host && port == other.port;
    }

    friend bool operator==(endpoint const&, endpoint const&) = default;
};

/// Throws: `error` (`misconfigured`) naming the field of `e` that cannot be used; `where` stands before it.
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
    require(!e.host.starts_with('.'), "host: a name does not begin with a dot");
    require(e.host.size() <= longest_host, "host: a name has at most 255 bytes");
    require(!e.unix_path.empty() || e.port != 0, "port: it must be 1 to 65535");
    require(e.unix_path.empty() || !e.tls, "tls: a Unix socket has none");
}

namespace detail {

/// Cuts a URL into an endpoint. A failure names the part that is wrong and never quotes what may hold a password.
class url_parser {
public:
    [[nodiscard]] static endpoint parse(std::string_view url)
    {
        endpoint e;
        e.tls = url.starts_with("rediss://");
        if (eat(url, "redis://") || eat(url, "rediss://"))
            parse_tcp(url, e);
        else if (eat(url, "unix://"))
            parse_unix(url, e);
        else
            fail("scheme", "it must begin with redis://, rediss:// or unix://");
        check_endpoint(e, "Redis URL, ");
        return e;
    }

private:
    [[noreturn]] static void fail(std::string_view part, std::string const& why)
    {
        throw error{holdfast::errc::misconfigured, "Redis URL, " + std::string{part} + ": " + why};
    }

    [[noreturn]] static void fail_option(std::string_view option, std::string const& why)
    {
        fail("options", "unknown option " + holdfast::quoted(option.substr(0, option.find('='))) + why);
    }

    /// Returns: what follows the `?`. What stands before an `@` is no option but belongs to a password with a `?` in it.
    static std::string_view cut_options(std::string_view& url)
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

    static void parse_tcp(std::string_view rest, endpoint& e)
    {
        auto const options = cut_options(rest);
        if (!options.empty()) fail_option(options, e.tls ? "; a rediss:// URL has none" : "; a redis:// URL has none");
        auto const database = cut(rest, '/');
        if (!database.empty()) e.database = number<unsigned>("database", database, 1'000'000);
        parse_credentials(rest, e);
        if (rest.starts_with('[')) {
            auto const end = rest.find(']');
            if (end == std::string_view::npos) fail("host", "a bracket is not closed");
            e.host = rest.substr(1, end - 1);
            rest.remove_prefix(end + 1);
            if (!rest.empty() && rest.front() != ':') fail("host", "only a port may follow the bracket");
            if (!rest.empty()) parse_port(rest.substr(1), e);
        } else {
            auto const colon = rest.find(':');
            if (colon != std::string_view::npos) parse_port(rest.substr(colon + 1), e);
            e.host = decoded("host", rest.substr(0, colon));
        }
        for (auto& c : e.host)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }

    static void parse_unix(std::string_view rest, endpoint& e)
    {
        auto options = cut_options(rest);
        while (!options.empty()) {
            auto option = options;
            options = cut(option, '&');
            if (!eat(option, "db=")) fail_option(option, "; db is the only one");
            e.database = number<unsigned>("db", option, 1'000'000);
        }
        if (!rest.starts_with('/'))
            parse_credentials(rest, e);
        else if (rest.substr(0, rest.rfind('@') + 1).find(':') != std::string_view::npos)
            fail("password", "it stands before the path, unix://user:password@/path; an @ in a path is written as %40");
        e.unix_path = decoded("path", rest);
        if (e.unix_path.empty()) fail("path", "it is empty; it must be absolute: unix:///run/redis.sock");
    }

    static void parse_credentials(std::string_view& rest, endpoint& e)
    {
        auto const at = rest.rfind('@');
        if (at == std::string_view::npos) return;
        auto const user = rest.substr(0, at);
        rest.remove_prefix(at + 1);
        auto const colon = user.find(':');
        e.user = decoded("user", user.substr(0, colon));
        if (colon != std::string_view::npos) e.password = decoded("password", user.substr(colon + 1));
    }

    static void parse_port(std::string_view text, endpoint& e)
    {
        e.port = static_cast<std::uint16_t>(number<unsigned>("port", text, 65535));
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

    template <class N>
    static N number(std::string_view part, std::string_view text, N most)
    {
        N n{};
        auto const [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
        if (ec != std::errc{} || end != text.data() + text.size() || n > most) fail(part, "it must be a number, at most " + std::to_string(most));
        return n;
    }

    static std::string decoded(std::string_view part, std::string_view text)
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
};

}  // namespace detail

/// Returns: what `redis://[user[:password]@]host[:port][/db]`, the same with `rediss://` for TLS, or `unix://[user:password@]/path[?db=n]`
/// says; `[user]` may be empty. Reserved characters in user, password, host and path are written as `%xx`, also an @ in a path behind a colon.
/// Throws: `error` (`misconfigured`) naming the part of the URL that is wrong, without quoting secrets.
[[nodiscard]] inline endpoint parse_url(std::string_view url) { return detail::url_parser::parse(url); }

}  // namespace holdfast::redis
