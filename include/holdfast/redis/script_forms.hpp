// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/script.hpp>
#include <holdfast/redis/script_table.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace holdfast::inline HOLDFAST_ABI::redis {

/// How a script is sent to the server.
enum class script_form {
    by_hash,  ///< EVALSHA
    by_text,  ///< EVAL, after NOSCRIPT
};

/// The form in which each script is sent next over one connection:
///
/// | the server                   | form |
/// |------------------------------|------|
/// | has not run it yet           | text: nothing is taken before it is known that new scripts may be run |
/// | has been sent its text       | hash, if no listener waits: it takes nothing, and there may be many at once |
/// | has run it                   | hash |
/// | was found not to know it     | text |
///
/// The server may say that it does not know a script when no operation waits for the answer any more, as with a node
/// that is farther away than the others. So it is the next command, of whatever operation, that sends the text.
class script_forms {
public:
    /// Returns: the form in which `c` is sent next; `waits`: a listener waits for its answer.
    [[nodiscard]] script_form next(command const& c, bool waits) const noexcept
    {
        if (c.what == command::verb::reacquire) return script_form::by_text;  // it is rare, so it need not be repeated
        auto const one = find(&script_of(c));
        return one != known_.size() && (known_[one].run || !waits) ? script_form::by_hash : script_form::by_text;
    }

    /// Effects: notes that `c` is on the wire.
    void sent(command const& c) noexcept
    {
        auto const& one = script_of(c);
        if (find(&one) != known_.size()) return;
        if (auto const free = find(nullptr); free != known_.size()) known_[free].which = &one;
    }

    /// Returns: whether the user may use the queues of waiters, as far as is known.
    [[nodiscard]] bool queues() const noexcept { return queues_; }

    /// Returns: whether renewals are asked for together, as far as is known.
    [[nodiscard]] bool joins() const noexcept { return joins_; }

    /// Effects: renewals are asked for alone from now on: one that was refused with others succeeds alone. So the user
    /// lacks a right to the key of another, or a proxy of several servers takes no keys of two.
    void join_no_more() noexcept { joins_ = false; }

    /// Returns: whether `why`, the answer to those that were asked for together, may be about one of them.
    [[nodiscard]] static bool about_one(std::error_code why) noexcept
    {
        return why == errc::not_permitted || why == errc::moved || why == errc::wrong_type || why == errc::server_error;
    }

    /// Effects: `c` keeps a record of `holder`, unless that is empty; it does without what the user may not use, as far
    /// as is known.
    void equip(command& c, std::string_view holder) const noexcept
    {
        c.holder = holder;
        c.use_holder = may_use_holder(c) && holders_ && !c.holder_refused;
        if (!queues_) c.leave_queue_out();
    }

    /// Returns: whether `c`, which was sent as `form` and failed with `why`, is to be sent again in another form: as
    /// text, or without the queue or the record of the holder.
    [[nodiscard]] static bool repeats(command const& c, script_form form, std::error_code why) noexcept
    {
        // mutant: a script that the server forgot not sent again
        return why && ((why == errc::no_script && form == script_form::by_hash) || refuses_more(c, why));
    }

    /// Effects: notes what the server answered to `c`, which was sent as `form`.
    void note(command const& c, script_form form, std::error_code why) noexcept
    {
        // It was not for a right that is missing in any case. What an operator asks may be about a lock of others.
        if (!why && c.queue_refused && !of_operator(c)) queues_ = false;
        if (!why && c.holder_refused && !of_operator(c)) holders_ = false;
        auto const one = find(&script_of(c));
        if (one == known_.size()) return;
        bool const by_hash = form == script_form::by_hash;
        if (!why || (why == errc::no_script && !by_hash))  // it has the text, whatever it says
            known_[one].run = true;
        else if (by_hash ? why == errc::no_script : !known_[one].run)
            known_[one] = {};
    }

    /// Returns: whether `c` failed with `why` because the user may not use the queue or the record, perhaps.
    [[nodiscard]] static bool refuses_more(command const& c, std::error_code why) noexcept
    {
        return why == errc::not_permitted && ((c.use_queue && may_queue(c)) || c.use_holder);
    }

private:
    /// A script whose text is with the server, or on the way; null: none.
    struct known_script {
        script const* which = nullptr;
        bool run = false;  ///< the server has run it
    };

    /// Returns: where it is in `known_`; the size of that if it is not there.
    [[nodiscard]] std::size_t find(script const* one) const noexcept
    {
        auto const is = [one](known_script const& k) { return k.which == one; };
        return static_cast<std::size_t>(std::find_if(known_.begin(), known_.end(), is) - known_.begin());
    }

    bool queues_ = true;
    bool holders_ = true;
    bool joins_ = true;
    std::array<known_script, most_scripts> known_{};
};

}  // namespace holdfast::redis
