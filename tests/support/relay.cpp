// SPDX-License-Identifier: MIT
#include "relay.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

namespace holdfast::test {
namespace {

using action = outlet::action;

outlet::time_point after(std::chrono::microseconds delay) { return std::chrono::steady_clock::now() + delay; }

action action_of(aftermath then)
{
    return then == aftermath::reset ? action::reset : then == aftermath::refuse ? action::refuse : action::silence;
}

}  // namespace

relay::relay(file_descriptor client, file_descriptor server, protocol const& spoken, traffic& rules)
    : spoken_{spoken}, rules_{rules}, client_{.fd = std::move(client), .in = splitter{spoken}},
      server_{.fd = std::move(server), .in = splitter{spoken}}
{
}

short relay::events(side const& s) noexcept
{
    return static_cast<short>((s.ended ? 0 : POLLIN) | (s.full ? POLLOUT : 0));
}

/// Returns: whether the other side should be told that this one has ended.
bool relay::receive(side& from)
{
    std::array<char, 65536> buffer;
    auto const got = ::recv(from.fd.get(), buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got > 0) {
        silent_ = silent_ || rules_.blackholed;  // what is lost here is missed for ever
        if (!silent_) from.in.feed({buffer.data(), static_cast<std::size_t>(got)});
        return false;
    }
    from.ended = true;
    return true;
}

void relay::read_client()
{
    bool const ended = receive(client_);
    if (ended) ++rules_.left;
    while (auto request = client_.in.next()) forward(std::move(*request));
    if (ended && silent_)
        reset();
    else if (ended) {
        // Also after an RST: what was sent before it is still on its way.
        server_.out.push({action::send, client_.in.rest(), after(rules_.delay_to_server)});
        server_.out.push({action::finish, {}, after(rules_.delay_to_server)});
    }
}

void relay::read_server()
{
    bool const ended = receive(server_);
    while (auto reply = server_.in.next()) answer(std::move(*reply));
    if (ended && !silent_) {
        send_reply(server_.in.rest());
        client_.out.push({action::finish, {}, after(rules_.delay_to_client)});
    }
}

void relay::forward(std::string request)
{
    rules_.count(request);
    if (rules_.heard) *rules_.heard += request;
    if (auto bytes = rules_.flood(request); bytes && !flood_) flood_ = std::move(bytes);
    auto const gate = rules_.hold(request);
    auto const due = after(rules_.delay_to_server);
    auto strikes = rules_.strike(request);
    if (strikes && strikes->what == fault::kind::drop_request) {
        ++rules_.struck;
        server_.out.push({action_of(strikes->then), {}, due, gate});
        return;
    }
    if (strikes && strikes->what == fault::kind::answer_instead) request = spoken_.harmless(request);
    if (auto const replies = spoken_.replies(request); replies != 0)
        expected_.push_back({std::move(strikes), spoken_.number_of_request(request), replies});
    server_.out.push({action::send, std::move(request), due, gate});
}

void relay::answer(std::string reply)
{
    auto const of = std::ranges::find(expected_, spoken_.number_of_reply(reply), &expectation::number);
    if (of == expected_.end()) return send_reply(std::move(reply));
    if (of->strikes)
        strike(*of->strikes, std::move(reply));
    else
        send_reply(std::move(reply));
    if (--of->replies == 0) expected_.erase(of);
}

void relay::send_reply(std::string bytes)
{
    auto const due = after(rules_.delay_to_client);
    auto& end = rules_.end_after;
    bool const last = end && bytes.size() >= end->bytes;
    if (last) bytes.resize(end->bytes);
    if (end) end->bytes -= bytes.size();
    client_.out.push({action::send, std::move(bytes), due});
    if (!last) return;
    ++rules_.struck;
    client_.out.push({end->reset ? action::reset : action::finish, {}, due});
    end.reset();
}

void relay::strike(fault const& f, std::string reply)
{
    ++rules_.struck;
    if (f.what == fault::kind::answer_instead || f.what == fault::kind::spoil_reply)
        return send_reply(spoken_.instead(reply, f.answer));
    if (f.what == fault::kind::cut_reply) send_reply(reply.substr(0, f.passed_bytes));
    client_.out.push({action_of(f.then), {}, after(rules_.delay_to_client)});
}

void relay::advance()
{
    advance(server_, {});
    if (flooded_ == 0) advance(client_, rules_.trickle);
    flood();
    over_ = over_ || (client_.finished && server_.finished);
}

void relay::advance(side& to, outlet::pace trickle)
{
    if (over_ || silent_ || to.finished) return;
    auto const outcome = to.out.advance(to.fd.get(), rules_.open_gate, trickle);
    to.full = outcome == outlet::outcome::full;
    if (outcome == outlet::outcome::silence)
        silent_ = true;
    else if (outcome == outlet::outcome::refuse) {
        rules_.refusing = true;
        reset();
    } else if (outcome == outlet::outcome::reset)
        reset();
    else if (outcome == outlet::outcome::finish || outcome == outlet::outcome::broken) {
        // The client may be gone while requests of its are still on their way, and the server while its last words are.
        ::shutdown(to.fd.get(), SHUT_WR);
        to.finished = true;
    }
}

/// Replies of the server come between two times.
void relay::flood()
{
    if (!flood_ || over_ || silent_ || client_.finished) return;
    if (flooded_ == 0 && rules_.floods.empty()) return flood_.reset();
    if (flooded_ == 0 && client_.out.due(rules_.open_gate)) return;
    auto const sent = ::send(client_.fd.get(), flood_->data() + flooded_, flood_->size() - flooded_, MSG_NOSIGNAL);
    client_.full = sent < 0 && errno == EAGAIN;
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return reset();
    if (sent > 0) flooded_ = (flooded_ + static_cast<std::size_t>(sent)) % flood_->size();
}

void relay::reset()
{
    reset_connection(client_.fd.get());
    reset_connection(server_.fd.get());
    over_ = true;
}

std::optional<outlet::time_point> relay::due() const
{
    if (over_ || silent_) return std::nullopt;
    if (flood_ && !client_.finished && !client_.full) return std::chrono::steady_clock::now();
    auto const of = [this](side const& s) { return s.finished || s.full ? std::nullopt : s.out.due(rules_.open_gate); };
    auto const to_client = of(client_);
    auto const to_server = of(server_);
    return to_client && to_server ? std::min(to_client, to_server) : to_client ? to_client : to_server;
}

}  // namespace holdfast::test
