// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/result.hpp>
#include <holdfast/io/tls_options.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::io {

/// The TLS of one connection, as far as the rest of the library knows it. It does no I/O: it turns what is to be said into bytes for the
/// wire and back, and whoever has the socket moves the bytes. What it has to say itself, in a handshake or for a new key, comes out of
/// `take_output`, too, so that reading never has to wait for writing, nor the other way round. One call at a time.
class secure_session {
public:
    enum class progress : std::uint8_t { under_way, done, failed };

    virtual ~secure_session() = default;

    /// Effects: takes what came over the wire. Throws: `std::bad_alloc`.
    virtual void receive(std::span<char const> wire) = 0;

    /// Effects: goes on with the handshake as far as what was received allows.
    virtual progress handshake() = 0;

    /// Returns: how many bytes were put into `buffer`; 0 where more has to be received first; nothing where the peer has ended the session
    /// or broken it. Requires: the handshake is done.
    virtual std::optional<std::size_t> read(std::span<char> buffer) = 0;

    /// Effects: puts `bytes` into the output. Returns: whether the session is in order. Requires: the handshake is done.
    virtual bool write(std::string_view bytes) = 0;

    /// Effects: puts into the output that nothing follows, where that can still be said.
    virtual void finish() noexcept = 0;

    /// Returns: what is to go over the wire next, behind what was taken before; valid until the next call of any member. Where it cannot
    /// be sent the session is lost.
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

using secure_layer_maker = std::shared_ptr<secure_layer const> (*)(tls::options const&);

/// Makes layers; null in a program in which no file includes <holdfast/tls.hpp>, which sets it before `main` begins. Throws `error`
/// (`misconfigured`) naming the option that cannot be used. A pointer, so that what needs no TLS needs no TLS library.
inline std::atomic<secure_layer_maker> make_secure_layer{nullptr};

}  // namespace holdfast::io
