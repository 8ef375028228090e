// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/clock.hpp>
#include <holdfast/core/error.hpp>
#include <holdfast/core/parker.hpp>
#include <holdfast/core/result.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/explanation.hpp>
#include <holdfast/zookeeper/lock_place.hpp>
#include <holdfast/zookeeper/node_name.hpp>
#include <holdfast/zookeeper/receiver.hpp>
#include <holdfast/zookeeper/requests.hpp>
#include <holdfast/zookeeper/session_core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::zookeeper {

/// One who has a lock, or waits for it.
struct participant {
    std::string node;                 ///< the name of its node
    std::string content;              ///< what the node says of it: `host=… pid=… label=…`, in the plain form `id=…`, too; or what another client writes
    std::uint64_t fencing_token = 0;  ///< that of its first holder
};

/// Asks who has a lock and who waits for it.
class contenders_operation final : private receiver {
public:
    using list = std::vector<participant>;

    contenders_operation(lock_place& place, std::string lock) : place_{place}, core_{place.core()}, lock_{std::move(lock)} {}
    contenders_operation(contenders_operation const&) = delete;
    contenders_operation& operator=(contenders_operation const&) = delete;

    ~contenders_operation() override
    {
        std::scoped_lock guard{core_.mutex()};
        core_.detach(*this);
    }

    /// Returns: the list in the order in which they get the lock, or why it could not be had within the operation timeout. Requires: the
    /// session's thread runs.
    [[nodiscard]] result<list> ask()
    {
        auto const limit = boot_clock::now() + core_.options().operation_timeout;
        std::unique_lock guard{core_.mutex()};
        core_.attach(*this);
        while (!outcome_) {
            if (core_.refused()) return core_.refused();
            if (boot_clock::now() >= limit) return explained(make_error_code(core_.connected() ? errc::no_answer : errc::not_connected));
            guard.unlock();
            bed_.park_until(limit);
            guard.lock();
        }
        return *outcome_;
    }

private:
    [[nodiscard]] failure explained(std::error_code why) const { return {why, explanation(core_, why, lock_)}; }

    struct one {
        participant who;
        std::uint32_t sequence;
        bool there;
    };

    void on_notice(unsigned) override {}
    void on_expired() noexcept override
    {
        asked_ = false;
        bed_.unpark();
    }
    void on_failure(std::error_code why) noexcept override
    {
        if (!outcome_) end(why);
    }

    void on_connected(std::int64_t) override
    {
        if (outcome_ || std::exchange(asked_, true)) return;
        line_.clear();
        if (place_.queued()) {
            core_.perform(*this, {{{request::kind::children, lock_, {}}, round_ + 1}});
        } else {
            line_.push_back({{lock_, {}, 0}, 0, false});
            ask_some(0);
        }
    }

    void on_answer(unsigned tag, reply const& r) override
    {
        if (outcome_ || tag / slots != round_ / slots) return;
        if (r.what == answer::lost || r.what == answer::postponed) {
            asked_ = false;
            round_ = (round_ / slots + 1) * slots;
            return;
        }
        if (r.what == answer::refused) return end(explained(r.code));
        if (line_.empty()) {
            for (auto& c : contenders_among(r.children)) line_.push_back({{std::move(c.name), {}, 0}, c.sequence, false});
            return ask_some(0);
        }
        auto& seen = line_.at(asked_for_ + (tag % slots - first));
        seen.there = r.what == answer::ok;
        seen.who.content = r.text;
        seen.who.fencing_token = static_cast<std::uint64_t>(r.stat.czxid) * 64;
        if (--open_ == 0) ask_some(asked_for_ + most_at_once);
    }

    /// Effects: asks for those from `begin` on, not for all at once, however long the line is: a round has a tag for each.
    void ask_some(std::size_t begin)
    {
        if (begin >= line_.size()) return finish();
        asked_for_ = begin;
        open_ = std::min(line_.size() - begin, most_at_once);
        if (begin > 0) round_ = (round_ / slots + 1) * slots;
        std::vector<action> actions;
        for (std::size_t i = 0; i < open_; ++i) {
            auto path = place_.queued() ? lock_ + '/' + line_[begin + i].who.node : lock_;
            actions.push_back({{request::kind::data, std::move(path)}, round_ / slots * slots + first + static_cast<unsigned>(i)});
        }
        core_.perform(*this, actions);
    }

    void finish()
    {
        std::sort(line_.begin(), line_.end(), [](one const& a, one const& b) {
            return std::pair{a.sequence, a.who.fencing_token} < std::pair{b.sequence, b.who.fencing_token};
        });
        list all;
        for (auto& each : line_)
            if (each.there) all.push_back(std::move(each.who));
        end(std::move(all));
    }

    void end(result<list> outcome) noexcept
    {
        outcome_.emplace(std::move(outcome));
        bed_.unpark();
    }

    static constexpr unsigned slots = 1U << 16U;
    static constexpr unsigned first = 2;
    static constexpr std::size_t most_at_once = 1'000;

    lock_place& place_;
    session_core& core_;
    std::string lock_;
    bool asked_ = false;
    unsigned round_ = 0;
    std::vector<one> line_;
    std::size_t asked_for_ = 0;  // how many were in earlier rounds
    std::size_t open_ = 0;       // how many of this one have no answer
    std::optional<result<list>> outcome_;
    holdfast::detail::parker bed_;
};

}  // namespace holdfast::zookeeper
