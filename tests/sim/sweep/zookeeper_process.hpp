// SPDX-License-Identifier: MIT
#pragma once

#include "zookeeper_handle.hpp"
#include "zookeeper_servers.hpp"

#include <holdfast/core/clock.hpp>
#include <holdfast/core/token.hpp>
#include <holdfast/sim/host.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>
#include <holdfast/zookeeper/session_engine.hpp>
#include <holdfast/zookeeper/session_host.hpp>
#include <holdfast/zookeeper/session_options.hpp>
#include <holdfast/zookeeper/transport.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::test {

/// What a simulated process has in the place of threads: it attends to the shipped session at its times, as long as it
/// lives.
class zookeeper_loop : public std::enable_shared_from_this<zookeeper_loop> {
public:
    zookeeper_loop(sim::host& me, zookeeper_servers& servers) : me_{me}, servers_{servers} {}

    [[nodiscard]] sim::host& host() const noexcept { return me_; }

    void begin(zookeeper::session_engine& session) { session_ = &session; }

    /// Effects: does nothing any more; nor does the handle tell anything.
    void end()
    {
        session_ = nullptr;
        if (handle_) handle_->close();
    }

    [[nodiscard]] std::shared_ptr<zookeeper_handle> open(zookeeper::transport_events& to)
    {
        handle_ = std::make_shared<zookeeper_handle>(me_, servers_, to, cut_off_until_);
        handle_->open();
        return handle_;
    }

    void wake()
    {
        if (std::exchange(woken_, true)) return;
        me_.at(me_.present(), [self = shared_from_this()] {
            self->woken_ = false;
            self->attend();
        });
    }

    /// Effects: no server is reached for a while.
    void cut_off(boot_clock::duration d)
    {
        cut_off_until_ = std::max(cut_off_until_, me_.world().now() + d);
        if (handle_) handle_->cut_off();
    }

    /// Effects: that server has applied a change. Returns: whether one that waits here will be told.
    bool changed(unsigned server, ensemble::change const& what) const
    {
        return handle_ && handle_->changed(server, what);
    }

private:
    void attend()
    {
        if (!session_) return;
        auto next = boot_clock::time_point{};
        {
            zookeeper::session_engine::lock guard{session_->mutex()};
            next = session_->attend(guard);
        }
        auto const mine = ++times_;
        if (next == boot_clock::time_point::max()) return;
        me_.at(std::max(me_.present(), me_.when(next)) + std::chrono::microseconds{1},
               [self = shared_from_this(), mine] {
                   if (mine == self->times_) self->attend();
               });
    }

    sim::host& me_;
    zookeeper_servers& servers_;
    zookeeper::session_engine* session_ = nullptr;
    std::shared_ptr<zookeeper_handle> handle_;
    boot_clock::time_point cut_off_until_{};
    bool woken_ = false;
    std::uint64_t times_ = 0;
};

/// What the shipped session has of a simulated process.
class zookeeper_process final : public zookeeper::session_host {
public:
    explicit zookeeper_process(std::shared_ptr<zookeeper_loop> l) : loop_{std::move(l)} {}
    zookeeper_process(zookeeper_process const&) = delete;
    zookeeper_process& operator=(zookeeper_process const&) = delete;
    ~zookeeper_process() override { loop_->end(); }

    [[nodiscard]] std::unique_ptr<zookeeper::transport> open(zookeeper::transport_events& to) override
    {
        return std::make_unique<way>(loop_->open(to));
    }
    [[nodiscard]] std::string problem() const override { return {}; }
    [[nodiscard]] owner_token fresh_token() const override
    {
        auto const high = loop_->host().random();
        return owner_token::from_bits(high, loop_->host().random());
    }
    [[nodiscard]] bool in_child() const noexcept override { return false; }
    void ensure_running(zookeeper::session_engine& session, std::string_view) override
    {
        if (std::exchange(runs_, true)) return;
        loop_->begin(session);
        loop_->wake();
    }
    void wake() noexcept override { loop_->wake(); }
    void end(std::shared_ptr<zookeeper::session_engine> /*session*/) noexcept override { loop_->end(); }

private:
    class way final : public zookeeper::transport {
    public:
        explicit way(std::shared_ptr<zookeeper_handle> over) : handle_{std::move(over)} {}
        way(way const&) = delete;
        way& operator=(way const&) = delete;
        ~way() override { handle_->close(); }
        bool authenticate(std::string const&, std::string const&) override { return true; }
        bool send(zookeeper::request const& r, zookeeper::transport_events::call& as, bool) override
        {
            return handle_->send(r, as);
        }

    private:
        std::shared_ptr<zookeeper_handle> handle_;
    };

    std::shared_ptr<zookeeper_loop> loop_;
    bool runs_ = false;
};

/// Returns: the shipped session in a simulated process, which attends to it with `loop`.
inline std::shared_ptr<zookeeper::session_core> open_zookeeper_session(std::shared_ptr<zookeeper_loop> const& loop,
                                                                       zookeeper_servers const& servers,
                                                                       std::chrono::milliseconds operation_timeout)
{
    return zookeeper::session_engine::make(
        {},
        {.session_timeout = std::chrono::floor<std::chrono::milliseconds>(servers.timeout()),
         .operation_timeout = operation_timeout},
        std::make_unique<zookeeper_process>(loop));
}

}  // namespace holdfast::test
