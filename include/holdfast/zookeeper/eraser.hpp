// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/parker.hpp>
#include <holdfast/zookeeper/acquirer.hpp>
#include <holdfast/zookeeper/erase_machine.hpp>
#include <holdfast/zookeeper/receiver.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <system_error>
#include <utility>

namespace holdfast::zookeeper {

class session_core;

/// Runs an `erase_machine` in the background of a session. Where memory runs out, or it is refused, it tries again later.
class eraser final : public receiver {
public:
    eraser(session_core& core, remains what, holdfast::detail::parker* bed) : core_{core}, machine_{std::move(what)}, bed_{bed} {}

    [[nodiscard]] bool done() const noexcept { return machine_.done(); }
    [[nodiscard]] bool settled() const noexcept { return machine_.settled(); }
    [[nodiscard]] std::error_code outcome() const noexcept { return machine_.outcome(); }

    /// Returns: whether anything was sent.
    [[nodiscard]] bool asked() const noexcept { return machine_.asked(); }

    /// Effects: wakes nobody.
    void forget() noexcept { bed_ = nullptr; }

    void on_answer(unsigned tag, reply const& r) override
    {
        machine_.answered(tag, r);
        act();
    }
    void on_notice(unsigned) override {}
    void on_connected(std::int64_t session) override
    {
        machine_.connected(session);
        act();
    }
    void on_expired() noexcept override
    {
        machine_.expired();
        hear([&] { act(); });  // it has nothing to send
    }
    void on_failure(std::error_code why) noexcept override;

private:
    void act();

    session_core& core_;
    erase_machine machine_;
    holdfast::detail::parker* bed_;
};

}  // namespace holdfast::zookeeper
