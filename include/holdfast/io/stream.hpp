// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/result.hpp>
#include <holdfast/io/outlet.hpp>
#include <holdfast/io/resolver.hpp>
#include <holdfast/io/secure_layer.hpp>
#include <holdfast/io/stream_target.hpp>
#include <holdfast/io/tls_error.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::io {

/// A stream socket that never blocks, with TLS or without.
///
/// | state | descriptor | left by |
/// |---|---|---|
/// | closed | - | open → resolving, connecting |
/// | resolving | of look-up | addresses → connecting; none → closed |
/// | connecting | of socket | connected → open, with TLS securing; refused → connecting to the next address, or closed |
/// | securing | of socket | the handshake is done → open; it fails, end of file, an error → closed |
/// | open | of socket | close, end of file, an error → closed |
class stream {
public:
    enum class state : std::uint8_t { closed, resolving, connecting, securing, open };

    stream() = default;
    stream(stream const&) = delete;
    stream& operator=(stream const&) = delete;
    ~stream() { close(); }

    [[nodiscard]] state now() const noexcept { return state_; }
    [[nodiscard]] int descriptor() const noexcept { return state_ == state::resolving ? resolver_.descriptor() : fd(); }

    [[nodiscard]] short interest() const noexcept
    {
        return state_ == state::connecting || (out_ && out_->blocked()) ? POLLIN | POLLOUT : POLLIN;
    }

    /// Effects: begins to connect. Returns: whether it may succeed; otherwise `why()` says why not.
    bool open(stream_target const& target)
    try {
        close();
        why_ = {};
        tls_ = target.tls;
        if (tls_) host_ = target.host;
        if (!target.path.empty()) {
            auto const address = unix_address(target.path);
            return address && connect_to({*address});
        }
        auto numeric = resolve(target.host, target.port, AI_NUMERICHOST);
        if (!numeric.found.empty()) return connect_to(std::move(numeric.found));
        resolver_.start(target.host, target.port);
        state_ = state::resolving;
        return true;
    } catch (std::system_error const& e) {  // no thread or descriptor left: the same as not reachable
        return end({e.code(), e.what()});
    } catch (...) {
        return end({});
    }

    /// Effects: continues to open after an event. Returns: whether it has succeeded, or may still: see `now()`.
    bool go_on()
    try {
        if (!has_news()) return true;  // the event was of a descriptor that had the same number before
        if (state_ == state::resolving) {
            auto got = resolver_.take();
            why_.detail = std::move(got.why);
            return connect_to(std::move(got.found));
        }
        if (state_ == state::securing) {
            if (out_->blocked()) out_->flush_again();
            return shake_hands();
        }
        int error = 0;
        socklen_t size = sizeof error;
        if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
        if (error == 0) return connected();
        why_ = of_system(error);
        return connect_next();
    } catch (...) {
        return end({});
    }

    /// Effects: gives up the address that it connects to. Returns: whether another one may succeed: see `now()`.
    /// Throws: `std::bad_alloc`.
    bool skip_address() { return state_ == state::connecting && !untried_.empty() && connect_next(); }

    /// Returns: why the stream could not be opened, or has ended: a text; a code of `tls::errc`, the system, or none.
    [[nodiscard]] failure const& why() const noexcept { return why_; }

    /// Returns: whether what is sent is encrypted.
    [[nodiscard]] bool secured() const noexcept { return session_ != nullptr; }

    /// Returns: the outlet for the bytes to be sent. Requires: `now()` is `open`.
    [[nodiscard]] std::shared_ptr<outlet> const& out() const noexcept { return out_; }

    /// Returns: `bytes` as they go over the wire, valid until the next call of any member. They must be sent in the
    /// order of the calls; if they are not, `broken()` must be called.
    [[nodiscard]] std::string_view encode(std::string_view bytes)
    {
        if (!session_) return bytes;
        if (!session_->write(bytes)) out_->cut();
        return session_->take_output();
    }

    /// To be called if encoded bytes could not be sent. With TLS, what is sent later could not be understood.
    void broken() noexcept
    {
        if (session_) out_->cut();
    }

    /// Effects: reads at most `left` bytes from the socket, and subtracts their number from `left`.
    /// Returns: how many bytes were read into `buffer`, call again until it is 0; nothing if the stream has ended.
    /// Throws: `std::bad_alloc`.
    [[nodiscard]] std::optional<std::size_t> read(std::span<char> buffer, std::size_t& left)
    {
        if (!session_) return receive(buffer, left);
        for (;;) {
            auto const got = session_->read(buffer);
            send_output();
            if (!got) why_ = session_->why();
            if (!got || *got > 0) return got;
            auto const wire = receive(buffer, left);
            if (!wire || *wire == 0) return wire;
            session_->receive(buffer.first(*wire));
        }
    }

    /// Returns: whether there is something to read now; whether an event that it waits for has come.
    [[nodiscard]] bool readable() const noexcept { return is_ready_for(POLLIN); }
    [[nodiscard]] bool has_news() const noexcept { return is_ready_for(interest()); }

    /// Effects: closes the stream; what was to be sent before still goes out as far as the socket takes it.
    void close() noexcept
    {
        if (out_ && state_ == state::open) take_leave();
        drop();
    }

    /// Effects: closes the stream; what was sent and has not arrived is discarded.
    void abort() noexcept
    {
        if (out_) out_->abandon();
        drop();
    }

private:
    void drop() noexcept
    {
        resolver_.cancel();
        session_.reset();
        out_.reset();
        untried_.clear();
        state_ = state::closed;
    }

    bool connect_to(std::vector<socket_address> addresses)
    {
        untried_.assign(addresses.rbegin(), addresses.rend());
        return connect_next();
    }

    /// Effects: makes an outlet that owns `fd`. Throws: `std::bad_alloc`; then `fd` is closed.
    void own(int fd)
    try {
        out_ = std::make_shared<outlet>(fd);
    } catch (...) {
        ::close(fd);
        throw;
    }

    bool connect_next()
    {
        while (!untried_.empty()) {
            auto const address = untried_.back();
            untried_.pop_back();
            int const fd = ::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            if (fd < 0) {
                why_ = of_system(errno);
                continue;
            }
            own(fd);
            if (address.family() != AF_UNIX) set_tcp_options(fd);
            if (::connect(fd, address.get(), address.size) == 0) return connected();
            if (errno == EINPROGRESS) {
                state_ = state::connecting;
                return true;
            }
            why_ = of_system(errno);
        }
        close();
        return false;
    }

    bool connected()
    {
        state_ = state::open;
        if (!tls_) return true;
        state_ = state::securing;
        session_ = tls_->begin(host_);
        return shake_hands();
    }

    bool shake_hands()
    {
        std::array<char, 16'384> wire;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by receive
        for (auto left = wire.size();;) {
            auto const reached = session_->handshake();
            send_output();
            if (reached == secure_session::progress::failed) return end(session_->why());
            if (reached == secure_session::progress::done) {
                state_ = state::open;
                return true;
            }
            auto const got = receive(wire, left);
            if (!got) return end({tls::errc::handshake_interrupted, std::move(why_.detail)});
            if (*got == 0) return true;
            session_->receive(std::span{wire}.first(*got));
        }
    }

    /// Effects: sends the messages of the TLS itself.
    void send_output()
    {
        auto const bytes = session_->take_output();
        if (bytes.empty()) return;
        out_->append(bytes);
        out_->flush();
    }

    void take_leave() noexcept
    try {
        if (session_) {
            session_->finish();
            out_->append(session_->take_output());
        }
        out_->flush_again();
    } catch (std::bad_alloc const&) {  // it ends without a last message
    }

    std::optional<std::size_t> receive(std::span<char> buffer, std::size_t& left)
    {
        while (left > 0) {
            auto const n = ::recv(fd(), buffer.data(), std::min(buffer.size(), left), MSG_DONTWAIT);
            left -= static_cast<std::size_t>(std::max<ssize_t>(n, 0));
            if (n > 0) return static_cast<std::size_t>(n);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return 0;
            why_ = n == 0 ? failure{{}, "the server closed the connection"} : of_system(errno);
            return std::nullopt;
        }
        return 0;
    }

    bool end(failure why) noexcept
    {
        close();
        why_ = std::move(why);
        return false;
    }

    [[nodiscard]] static failure of_system(int error)
    {
        std::error_code const code{error, std::system_category()};
        return {code, code.message()};
    }

    [[nodiscard]] bool is_ready_for(short events) const noexcept { return io::is_ready_for(descriptor(), events); }
    [[nodiscard]] int fd() const noexcept { return out_ ? out_->descriptor() : -1; }

    state state_ = state::closed;
    std::shared_ptr<outlet> out_;
    std::shared_ptr<secure_layer const> tls_;  // null: no TLS
    std::unique_ptr<secure_session> session_;
    std::string host_;
    failure why_;
    resolver resolver_;
    std::vector<socket_address> untried_;  // the next one last
};

}  // namespace holdfast::io
