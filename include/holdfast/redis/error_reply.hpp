// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/name.hpp>
#include <holdfast/redis/error.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// An error reply of a server. When an error comes from inside a script, its text depends on the server's version:
///
/// | server | a user without PEXPIRE runs a script that calls it in its line 3 |
/// |---|---|
/// | Redis 6 | `ERR Error running script (call to f_<SHA-1>): @user_script:3: @user_script: 3: The user executing the script can't run this command or subcommand` |
/// | Redis 7.0 | `ERR The user executing the script can't run this command or subcommand script: <SHA-1>, on @user_script:3.` |
/// | Redis 7.2 and later, Valkey | `ERR ACL failure in script: User app has no permissions to run the 'pexpire' command script: <SHA-1>, on @user_script:3.` |
///
/// Source: `luaPushError`, `luaCallFunction` and `scriptVerifyACL` in scripting.c, script_lua.c and script.c of these
/// servers.
class error_reply {
public:
    explicit error_reply(std::string_view text) noexcept : text_{unwrapped(text)}, line_{line_in(text)} {}

    /// Returns: the code of the error.
    [[nodiscard]] errc code() const noexcept
    {
        if (text_.starts_with("ERR max number of clients")) return errc::too_many_clients;
        if (text_.starts_with("ERR unknown command")) return errc::no_script;
        auto const said = after_code();
        if (said.starts_with("The user executing the script") || said.starts_with("ACL failure in script"))
            return errc::not_permitted;
        auto const word = text_.substr(0, text_.find(' '));
        for (auto const& one : detail::error_words)
            if (!one.word.empty() && one.word == word) return one.code;
        return errc::server_error;
    }

    /// Returns: what the message of the code does not say: which right or password is missing; the text of an unknown
    /// error, without what was sent to the server. `script` is the script that the server ran, if it ran one. Empty if
    /// there is nothing more to say, or if the text contains `secret`.
    [[nodiscard]] std::string detail(std::string_view script = {}, std::string_view secret = {}) const
    {
        if (!secret.empty() && text_.find(secret) != std::string_view::npos) return {};
        auto const what = code();
        if (what == errc::not_permitted) return missing_right(script);
        if (what == errc::other_number)
            return without_tokens(
                holdfast::printable(text_.substr(std::min(text_.find(' '), text_.size() - 1) + 1, 99)));
        if (text_.starts_with("NOAUTH")) return "the server asks for a password, and none is given";
        if (text_.starts_with("DENIED"))
            return "the server is in protected mode: it has no password, and takes no connection from other machines";
        if (what != errc::server_error && what != errc::no_script) return {};
        constexpr std::size_t longest = 100;
        auto const arguments = text_.find(", with args beginning with");
        return "the server said " +
               holdfast::quoted(without_tokens(text_.substr(0, std::min(arguments, 2 * longest))).substr(0, longest));
    }

private:
    static constexpr std::string_view place = "@user_script:";

    /// Returns: the text without `ERR`, which is missing if Redis 6 wraps an error.
    [[nodiscard]] std::string_view after_code() const noexcept
    {
        return text_.starts_with("ERR ") ? text_.substr(4) : text_;
    }

    /// Returns: the error itself, without what the server adds when it stops a script.
    [[nodiscard]] static std::string_view unwrapped(std::string_view text) noexcept
    {
        if (auto const end = text.rfind(" script: ");
            end != std::string_view::npos && text.find(place, end) != std::string_view::npos)
            text = text.substr(0, end);
        if (!text.starts_with("ERR Error running script")) return text;
        for (auto at = text.find(place); at != std::string_view::npos; at = text.find(place)) {
            auto const end = text.find(": ", at + place.size() + 1);
            if (end == std::string_view::npos) break;
            text.remove_prefix(end + 2);
        }
        if (text.starts_with('-')) text.remove_prefix(1);
        while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
        return text;
    }

    /// Returns: the line at which the script was stopped, from 1; 0 if none is named.
    [[nodiscard]] static std::size_t line_in(std::string_view text) noexcept
    {
        auto const at = text.find(place);
        if (at == std::string_view::npos) return 0;
        auto const digits = text.substr(at + place.size(), 4);
        std::size_t line = 0;
        std::from_chars(digits.data(), digits.data() + digits.size(), line);
        return line;
    }

    /// Returns: `text` with a dot in place of each hexadecimal digit of what may be an owner token or a part of one.
    [[nodiscard]] static std::string without_tokens(std::string_view text)
    {
        constexpr std::size_t suspicious = 16;
        std::string out{text};
        for (std::size_t at = 0; at < out.size(); ++at) {
            auto const end = std::min(out.find_first_not_of("0123456789abcdefABCDEF", at), out.size());
            if (end - at >= suspicious)
                std::fill(out.begin() + static_cast<std::ptrdiff_t>(at), out.begin() + static_cast<std::ptrdiff_t>(end),
                          '.');
            at = end;
        }
        return out;
    }

    [[nodiscard]] std::string missing_right(std::string_view script) const
    {
        auto command = between(text_, "run the '", '\'');
        if (command.empty() && text_.find("run this command") != std::string_view::npos)
            command = between(line_of(script), "call('", '\'');
        if (!command.empty()) return "the command " + holdfast::quoted(command.substr(0, 32)) + " is not permitted";
        if (text_.find("channel") != std::string_view::npos) return "a channel is not permitted";
        if (text_.find(" key") != std::string_view::npos) return "a key is not permitted";
        return {};
    }

    [[nodiscard]] std::string_view line_of(std::string_view script) const noexcept
    {
        for (auto line = line_; line > 1; --line) {
            auto const end = script.find('\n');
            if (end == std::string_view::npos) return {};
            script.remove_prefix(end + 1);
        }
        return line_ == 0 ? std::string_view{} : script.substr(0, script.find('\n'));
    }

    [[nodiscard]] static std::string_view between(std::string_view text, std::string_view before, char after) noexcept
    {
        auto const at = text.find(before);
        if (at == std::string_view::npos) return {};
        text.remove_prefix(at + before.size());
        return text.substr(0, text.find(after));
    }

    std::string_view text_;
    std::size_t line_;
};

/// Returns: the code of an error reply.
[[nodiscard]] inline errc classify(std::string_view reply) noexcept { return error_reply{reply}.code(); }

}  // namespace holdfast::redis
