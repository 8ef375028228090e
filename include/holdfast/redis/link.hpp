// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/io/reactor.hpp>
#include <holdfast/io/source.hpp>
#include <holdfast/io/stream.hpp>
#include <holdfast/io/tls_error.hpp>
#include <holdfast/redis/connect_phase.hpp>
#include <holdfast/redis/endpoint.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/error_reply.hpp>
#include <holdfast/redis/greeting.hpp>
#include <holdfast/redis/hiredis.hpp>
#include <holdfast/redis/reconnect_pause.hpp>
#include <holdfast/redis/script.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// A connection to a Redis server that is ready for use: authenticated, in its database, asked for its clock if needed.
/// Made on demand. A failure is remembered for a moment, so that callers do not wait for a dead server again and again.
///
/// | state | meaning | left by |
/// |---|---|---|
/// | down | no connection; `reason` says why | connect → greeting, when the pause after a failure is over |
/// | greeting | connecting, or waiting for answers to the hello | all answered → up; an error, end of file, a step's time is over → down, or the next address |
/// | up | replies go to `on_reply` | end of file, an error, `disconnect` → down |
class link : public io::source {
public:
    using hello = greeting_exchange::hello;

    /// Requires: `tls` is not null if the endpoint asks for it.
    link(io::reactor& reactor, endpoint const& server, std::shared_ptr<io::secure_layer const> tls,
         std::chrono::milliseconds connect_timeout, hello h)
        : reactor_{reactor}, server_{server}, tls_{std::move(tls)}, connect_timeout_{connect_timeout}, hello_{h}
    {
        reactor_.add(*this);
    }

    link(link const&) = delete;
    link& operator=(link const&) = delete;

    /// Effects: begins to connect if necessary. Returns: no error if it is up or being connected; otherwise why not.
    std::error_code connect(boot_clock::time_point now)
    try {
        if (overdue(now) && stream_.has_news()) since_ = now;  // no thread has looked: the next one will
        end_step(now);
        if (state_ != state::down) return {};
        if (!pause_.over(now)) return why_;
        looked_ = now;
        pause_.begin(now);
        state_ = state::greeting;
        heard_ = answered_ = false;
        received_ = understood_ = 0;
        bool const opens = stream_.open({server_.host, std::to_string(server_.port), server_.unix_path, tls_});
        opens ? begin_step(now) : disconnect_for_stream(errc::cannot_connect, now);
        return state_ == state::down ? why_ : std::error_code{};
    } catch (std::bad_alloc const&) {  // it may be up, with some waiting commands not sent
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
        return why_;
    }

    /// Effects: closes the connection, because of `why`; `reason` says more about it, for messages.
    void disconnect(std::error_code why, boot_clock::time_point now, std::string reason = {})
    {
        if (state_ == state::down) return;
        reason_ = std::move(reason);
        harmful_later() ? stream_.abort() : stream_.close();
        reader_.reset();
        reactor_.changed();
        state_ = state::down;
        why_ = why;
        auto const end = answered_ ? reconnect_pause::end::lost : reconnect_pause::end::refused;
        why == errc::protocol_error ? pause_.spoilt(end, now) : pause_.ended(end, now);
        ++generation_;
        told_ = answered_ && why != errc::protocol_error ? errc::connection_lost : why;
        on_down(told_, now);
    }

    /// Returns: more about `why` than its own message, if it took the link down last, or if the link is not up in time.
    [[nodiscard]] std::string reason(std::error_code why) const
    {
        if (why == told_) return reason_;
        return why == errc::no_answer && state_ == state::greeting ? connect_phase(stream_.now()) : std::string{};
    }

    [[nodiscard]] bool up() const noexcept { return state_ == state::up; }
    [[nodiscard]] std::error_code why_down() const noexcept { return why_; }

    [[nodiscard]] int descriptor() const noexcept override { return stream_.descriptor(); }
    [[nodiscard]] short interest() const noexcept override { return stream_.interest(); }
    void flush() noexcept override { stream_.out() ? stream_.out()->flush_all() : void(); }

    void on_ready(short, boot_clock::time_point now) override
    try {
        auto const before = std::pair{stream_.now(), stream_.descriptor()};
        // Operations may end while a server is still being connected to; then no thread looks.
        bool const unattended = now - std::exchange(looked_, now) >= connect_timeout_;
        go_on(now);
        if (unattended || std::pair{stream_.now(), stream_.descriptor()} != before) since_ = now;
        end_step(now);
    } catch (std::bad_alloc const&) {
        disconnect(std::make_error_code(std::errc::not_enough_memory), now);
    }

protected:
    ~link() { reactor_.remove(*this); }

    [[nodiscard]] virtual std::error_code refuses(greeting const&) { return {}; }  ///< why the server is not to be used
    virtual void on_up(greeting const& g, boot_clock::time_point now) = 0;
    virtual void on_reply(reply const& r, boot_clock::time_point now) = 0;
    virtual void on_down(std::error_code why, boot_clock::time_point now) noexcept = 0;

    /// Returns: whether something in flight must not arrive after the link is given up.
    [[nodiscard]] virtual bool harmful_later() const noexcept { return false; }

    /// Effects: `reason(why)` is now what the error `r` says. `ran` is the script that the server ran; null: none.
    void note_error(std::error_code why, reply const& r, script const* ran = nullptr) noexcept
    {
        told_ = why;
        reason_ = said(r, ran);
    }

    /// Effects: sends `bytes`. Requires: `up()`.
    void write(std::string_view bytes)
    try {
        reactor_.send(stream_.out(), stream_.encode(bytes));
    } catch (std::bad_alloc const&) {
        stream_.broken();
        throw;
    }

    [[nodiscard]] bool readable() const noexcept { return stream_.readable(); }

    /// Returns: how many bytes came over this connection, as they were on the wire.
    [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

private:
    enum class state { down, greeting, up };

    /// The first byte that a TLS server sends to a client that does not use TLS. No reply of Redis begins with it.
    static constexpr char tls_alert = '\x15';

    /// The most bytes that one turn takes from a socket; then the others have theirs.
    static constexpr std::size_t most_in_turn = 16'384;

    /// A server that sends this many bytes without a reply in them sends none.
    static constexpr std::uint64_t most_without_reply = 2 * reply_reader::longest_reply;

    [[nodiscard]] bool overdue(boot_clock::time_point now) const noexcept
    {
        return state_ == state::greeting && now - since_ >= connect_timeout_;
    }

    void begin_step(boot_clock::time_point now)
    {
        since_ = now;
        reactor_.changed();
        if (stream_.now() == io::stream::state::open) say_hello();
    }

    /// Effects: if the time of the step is over, connects to the next address of the server. If there is none, as
    /// `disconnect`; the pause begins when the time was over.
    void end_step(boot_clock::time_point now)
    {
        if (!overdue(now)) return;
        if (stream_.skip_address()) return begin_step(now);
        auto const late = now - since_ - connect_timeout_;
        disconnect(errc::cannot_connect, now, words_of([&] { return late_phase(stream_.now(), connect_timeout_); }));
        pause_.put_back(late);
    }

    /// Returns: details of `r`; empty if it is no error.
    [[nodiscard]] std::string said(reply const& r, script const* ran = nullptr) const noexcept
    {
        if (r.what() != reply::kind::error) return {};
        return words_of(
            [&] { return error_reply{r.text()}.detail(ran ? ran->text() : std::string{}, server_.password); });
    }

    /// Effects: as `disconnect`, for what the stream says; with its own code if TLS is the cause. Once the server has
    /// sent something over TLS, TLS works, and what breaks later is the connection.
    void disconnect_for_stream(errc otherwise, boot_clock::time_point now)
    {
        auto const& why = stream_.why();
        bool const refused = why.code.category() == tls::error_category() && !heard_;
        bool const plain = !server_.tls && server_.unix_path.empty() && stream_.now() == io::stream::state::open;
        disconnect(refused ? why.code : otherwise, now, words_of([&] {
                       return why.detail +
                              (plain && !heard_ ? ", without an answer; does it expect TLS (rediss://)?" : "");
                   }));
    }

    void go_on(boot_clock::time_point now)
    {
        using enum io::stream::state;
        if (stream_.now() != open) {
            if (!stream_.go_on()) return disconnect_for_stream(errc::cannot_connect, now);
            reactor_.changed();
            if (stream_.now() != open) return;
            say_hello();
            if (!stream_.secured()) return;  // with TLS, data may have come after the handshake
        }
        if (stream_.out()->blocked()) stream_.out()->flush_again();
        read(now);
    }

    void say_hello()
    {
        asked_ = boot_clock::now();
        reader_ = std::make_unique<reply_reader>();
        write(greeting_.begin(server_, hello_));
        if (greeting_.done()) come_up(asked_);
    }

    void read(boot_clock::time_point now)
    {
        std::array<char, most_in_turn> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): filled by read
        for (auto left = most_in_turn;;) {
            auto const before = left;
            auto const n = stream_.read(buffer, left);
            received_ += before - left;
            if (!n) return disconnect_for_stream(up() ? errc::connection_lost : errc::cannot_connect, now);
            if (received_ - understood_ > most_without_reply)
                return disconnect(errc::protocol_error, now, "it sends without end, and no answer");
            if (*n == 0) return;
            if (!std::exchange(heard_, true) && buffer[0] == tls_alert) return disconnect(tls::errc::tls_expected, now);
            if (!reader_->feed({buffer.data(), *n})) return disconnect(errc::protocol_error, now);
            auto const generation = generation_;
            for (;;) {
                auto const one = reader_->next();
                if (!one) return disconnect(errc::protocol_error, now);
                if (!*one) break;
                understood_ = received_;
                answered_ = answered_ || (up() && one->get().what() != reply::kind::error);
                if (up())
                    on_reply(one->get(), now);
                else
                    on_greeting(one->get(), now);
                if (generation != generation_) return;
            }
            if (*n < buffer.size() && !stream_.secured()) return;
        }
    }

    void on_greeting(reply const& r, boot_clock::time_point now)
    {
        if (auto const why = greeting_.on_reply(r)) return disconnect(why, now, said(r));
        if (greeting_.done()) come_up(now);
    }

    void come_up(boot_clock::time_point now)
    {
        auto got = greeting_.got();
        now = std::max(now, boot_clock::now());  // it may have arrived while others were served
        got.took = now - asked_;
        if (auto const why = refuses(got)) return disconnect(why, now);
        answered_ = hello_ != hello::plain;
        state_ = state::up;
        on_up(got, now);
    }

    io::reactor& reactor_;
    endpoint server_;
    std::shared_ptr<io::secure_layer const> tls_;
    std::chrono::milliseconds connect_timeout_;
    hello hello_;
    io::stream stream_;
    std::unique_ptr<reply_reader> reader_;
    state state_ = state::down;
    std::error_code why_ = errc::cannot_connect;
    std::error_code told_;  // why_, as it was reported
    std::string reason_;
    bool heard_ = false;               // whether anything was received over this connection
    bool answered_ = false;            // whether it was of use: up; with a plain hello, answered without an error
    std::uint64_t received_ = 0;       // bytes received
    std::uint64_t understood_ = 0;     // bytes received up to the last reply
    boot_clock::time_point since_{};   // when the current step began
    boot_clock::time_point looked_{};  // when a thread last looked
    reconnect_pause pause_;
    unsigned generation_ = 0;
    boot_clock::time_point asked_{};
    greeting_exchange greeting_;
};

}  // namespace holdfast::redis
