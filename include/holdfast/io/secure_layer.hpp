// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/io/tls_options.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::inline HOLDFAST_ABI::io {

/// The TLS of one connection, as the rest of the library knows it. It does no I/O: it turns plain bytes into bytes for
/// the wire and back, and the owner of the socket moves them. Its own messages, in a handshake or for a new key, also
/// come out of `take_output`, so that reading never has to wait for writing, or writing for reading. One call at a
/// time.
class secure_session {
public:
    enum class progress : std::uint8_t { under_way, done, failed };

    virtual ~secure_session() = default;

    /// Effects: takes what came over the wire. Throws: `std::bad_alloc`.
    virtual void receive(std::span<char const> wire) = 0;

    /// Effects: continues the handshake as far as the received bytes allow.
    virtual progress handshake() = 0;

    /// Returns: how many bytes were put into `buffer`; 0 if more has to be received first; nothing if the peer has
    /// ended the session or broken it. Requires: the handshake is done.
    virtual std::optional<std::size_t> read(std::span<char> buffer) = 0;

    /// Effects: puts `bytes` into the output. Returns: whether the session is intact. Requires: the handshake is done.
    virtual bool write(std::string_view bytes) = 0;

    /// Effects: puts the message that nothing follows into the output, if that is still possible.
    virtual void finish() noexcept = 0;

    /// Returns: what is to be sent next, after what was taken before; valid until the next call of any member. If it
    /// cannot be sent, the session is lost.
    virtual std::string_view take_output() noexcept = 0;

    /// Returns: why the handshake failed or reading ended.
    [[nodiscard]] virtual failure const& why() const noexcept = 0;
};

/// What the connections of a client have in common: what they trust, and what they show.
class secure_layer {
public:
    virtual ~secure_layer() = default;

    /// Returns: the client's side of a new connection to `host`, a name or an address. Throws: `std::bad_alloc`.
    [[nodiscard]] virtual std::unique_ptr<secure_session> begin(std::string const& host) const = 0;
};

/// Makes a layer. Its address is null if no file of the program includes <holdfast/tls.hpp>, so that a program without
/// TLS needs no TLS library. Throws: `error` (`misconfigured`) naming the option that cannot be used.
[[gnu::weak, gnu::visibility("default")]] std::shared_ptr<secure_layer const> make_secure_layer(tls::options const& o);

}  // namespace holdfast::io
