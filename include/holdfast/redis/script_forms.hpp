// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/redis/commands.hpp>
#include <holdfast/redis/error.hpp>
#include <holdfast/redis/script.hpp>
#include <holdfast/redis/script_table.hpp>

#include <algorithm>
#include <array>
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
/// | has run it                   | hash |
/// | was found not to know it     | text |
///
/// The server may say that it does not know a script when no operation waits for the answer any more, as with a node
/// that is farther away than the others. So it is the next command, of whatever operation, that sends the text.
class script_forms {
public:
    [[nodiscard]] script_form next(command const& c) const noexcept
    {
        bool const known = std::find(known_.begin(), known_.end(), &script_of(c)) != known_.end();
        return known ? script_form::by_hash : script_form::by_text;
    }

    /// Returns: whether the user may use the queues of waiters, as far as is known.
    [[nodiscard]] bool queues() const noexcept { return queues_; }

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
        return (why == errc::no_script && form == script_form::by_hash) || refuses_more(c, why);
    }

    /// Effects: notes what the server answered to `c`, which was sent as `form`.
    void note(command const& c, script_form form, std::error_code why) noexcept
    {
        if (!why && c.queue_refused) queues_ = false;  // it was not for a right that is missing in any case
        if (!why && c.holder_refused) holders_ = false;
        if (why && why != errc::no_script) return;
        auto const* const one = &script_of(c);
        script const* const none = nullptr;
        if (why && form == script_form::by_hash)
            std::replace(known_.begin(), known_.end(), one, none);
        else if (std::find(known_.begin(), known_.end(), one) == known_.end())
            if (auto* const free = std::find(known_.begin(), known_.end(), none); free != known_.end()) *free = one;
    }

    /// Returns: whether `c` failed with `why` because the user may not use the queue or the record, perhaps.
    [[nodiscard]] static bool refuses_more(command const& c, std::error_code why) noexcept
    {
        return why == errc::not_permitted && ((c.use_queue && may_queue(c)) || c.use_holder);
    }

private:
    bool queues_ = true;
    bool holders_ = true;
    std::array<script const*, most_scripts> known_{};  ///< the server has their text; null: free
};

}  // namespace holdfast::redis
