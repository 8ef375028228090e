// SPDX-License-Identifier: MIT
#include "proxy.hpp"

#include "proxy_loop.hpp"

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::test {

proxy::proxy(std::uint16_t target_port, protocol const& spoken)
    : loop_{std::make_unique<proxy_loop>(target_port, spoken)}
{
}
proxy::proxy(proxy&&) noexcept = default;
proxy& proxy::operator=(proxy&&) noexcept = default;
proxy::~proxy() = default;

std::uint16_t proxy::port() const noexcept { return loop_->port(); }

void proxy::lead_to(std::uint16_t target_port)
{
    loop_->run([&] { loop_->lead_to(target_port); });
}

void proxy::delay(std::chrono::microseconds to_server, std::chrono::microseconds to_client)
{
    loop_->run([&] {
        loop_->rules().delay_to_server = to_server;
        loop_->rules().delay_to_client = to_client;
    });
}

void proxy::trickle(std::chrono::microseconds interval)
{
    loop_->run([&] { loop_->rules().trickle = interval; });
}

void proxy::blackhole()
{
    loop_->run([&] {
        loop_->rules().blackholed = true;
        loop_->listen();
    });
}

void proxy::freeze()
{
    loop_->run([&] { loop_->rules().frozen = true; });
}

void proxy::refuse()
{
    loop_->run([&] { loop_->refuse(); });
}

void proxy::pass()
{
    loop_->run([&] {
        loop_->rules().blackholed = loop_->rules().frozen = false;
        loop_->listen();
    });
}

void proxy::cut_all()
{
    loop_->run([&] { loop_->reset_all(); });
}

void proxy::drop_next_request(fault_options options) { add(std::move(options), fault::kind::drop_request); }

void proxy::swallow_next_reply(fault_options options) { add(std::move(options), fault::kind::swallow_reply); }

void proxy::cut_mid_reply(std::size_t passed_bytes, fault_options options)
{
    add(std::move(options), fault::kind::cut_reply, passed_bytes);
}

void proxy::spoil_next_reply(std::string answer, fault_options options)
{
    add(std::move(options), fault::kind::spoil_reply, 0, std::move(answer));
}

void proxy::answer_next_request(std::string answer, fault_options options)
{
    add(std::move(options), fault::kind::answer_instead, 0, std::move(answer));
}

void proxy::add(fault_options options, fault::kind what, std::size_t passed_bytes, std::string answer)
{
    loop_->run([&] {
        loop_->rules().faults.push_back(
            {what, std::move(options.matches), options.times, options.then, passed_bytes, std::move(answer)});
    });
}

void proxy::end_after(std::size_t bytes, ending how)
{
    loop_->run([&] { loop_->rules().end_after = {bytes, how == ending::reset}; });
}

void proxy::flood(std::string const& bytes, request_predicate matches)
{
    constexpr std::size_t at_once = 1'048'576;  // bytes
    std::string many;
    do many += bytes;
    while (many.size() < at_once);
    loop_->run([&] {
        loop_->rules().floods.push_back({std::move(matches), std::make_shared<std::string const>(std::move(many))});
    });
}

void proxy::hold(request_predicate matches)
{
    loop_->run([&] { loop_->rules().holds.push_back(std::move(matches)); });
}

void proxy::let_go()
{
    loop_->run([&] { loop_->rules().let_go(); });
}

void proxy::heal()
{
    loop_->run([&] {
        auto& rules = loop_->rules();
        rules.delay_to_server = rules.delay_to_client = rules.trickle = {};
        rules.faults.clear();
        rules.floods.clear();
        rules.let_go();
        rules.end_after.reset();
        rules.blackholed = rules.frozen = false;
        loop_->listen();
    });
}

std::function<int()> proxy::count(request_predicate matches)
{
    auto so_far = std::make_shared<std::atomic<int>>(0);
    loop_->run([&] { loop_->rules().counts.push_back({std::move(matches), so_far}); });
    return [so_far] { return so_far->load(); };
}

void proxy::listen_in()
{
    loop_->run([&] { loop_->rules().heard.emplace(); });
}

std::string proxy::heard() const
{
    std::string all;
    loop_->run([&] { all = loop_->rules().heard.value_or(""); });
    return all;
}

int proxy::left() const noexcept { return loop_->rules().left; }

int proxy::connections() const noexcept { return loop_->accepted(); }

int proxy::open_connections() const
{
    int open = 0;
    loop_->run([&] { open = loop_->open(); });
    return open;
}

int proxy::requests() const noexcept { return loop_->rules().requests; }

int proxy::struck() const noexcept { return loop_->rules().struck; }

int proxy::held() const noexcept { return loop_->rules().held; }

}  // namespace holdfast::test
