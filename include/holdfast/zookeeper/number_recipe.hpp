// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/core/abi.hpp>
#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/error.hpp>
#include <holdfast/zookeeper/permit_number.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::inline HOLDFAST_ABI::zookeeper {

/// Marks that a session uses a semaphore with so many permits: an ephemeral node, `<id>-<permits>`, below `name#max`.
/// No two marks with different numbers are agreed at a time: the later one of the two, by czxid, is agreed only when it
/// finds no earlier one of another number, and a mark stays until its session uses the semaphore no more.
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | creating | create | made, or there → listing; no parent → creating, with one more container before it |
/// | listing | children | all say the same number → tied; ours is gone → creating with a new id; otherwise → checking |
/// | checking | data of all | an earlier one of another number is agreed → failed (`other_number`); there is one that asks → listing, later; none → tied |
/// | tied | write: it is agreed | granted; gone → creating with a new id |
///
/// One that replaces other numbers is agreed from the create on, so that every later mark of another number is refused:
///
/// | state | sent | answer → next |
/// |---|---|---|
/// | listing | children | as above; otherwise → checking |
/// | checking | delete of all that say another number | all are gone → tied |
///
/// A mark that is removed so is missed by its session: before it was agreed, as its write fails; after that, as
/// `mark_watch` says. Two that replace each other's numbers at the same time begin again, until one is the last.
///
/// One that asks may be refused in a moment; then it goes. If an answer is lost, all is repeated from the create on,
/// which makes no second node. After the end of the session all begins again.
class number_recipe final : public acquire_machine {
public:
    /// What becomes of marks of another number.
    enum class other_numbers : std::uint8_t { respected, replaced };

    /// `plan.lock`: the path of `name#max`.
    number_recipe(acquire_plan plan, std::size_t permits, other_numbers others = other_numbers::respected)
        : acquire_machine{std::move(plan)}, permits_{std::to_string(permits)}, others_{others}
    {
    }

    [[nodiscard]] leftover what_is_left() const override
    {
        return {plan().lock, node_, made_ ? path_of(node_) : std::string{}, 0, {}, session(), parents_.missing()};
    }

    [[nodiscard]] std::string detail() const override
    {
        return other_.empty() ? std::string{} : other_number_of(other_, permits_);
    }

private:
    /// The content of a mark.
    static constexpr std::string_view agreed = "agreed";
    static constexpr std::string_view asks = "asks";

    [[nodiscard]] bool replaces() const noexcept { return others_ == other_numbers::replaced; }
    [[nodiscard]] std::string path_of(std::string const& node) const { return plan().lock + '/' + node; }

    /// Returns: the number that a mark says.
    [[nodiscard]] static std::string_view number_of(std::string_view node) noexcept
    {
        return node.substr(node.rfind('-') + 1);
    }

    void start_over() override
    {
        id_ = plan().tokens();
        node_ = std::string{id_.view()} + '-' + permits_;
        made_ = false;
        create();
    }

    void resume() override { create(); }

    void create() override
    {
        enter(state::creating);
        in_doubt_ = !made_;
        send_create({request::kind::create_plain, path_of(node_), std::string{replaces() ? agreed : asks}});
    }

    void take(unsigned slot, reply const& r) override
    {
        switch (state_) {
        case state::creating: return take_created(r);
        case state::listing: return take_list(r);
        case state::checking: return replaces() ? take_removed(r) : take_mark(slot, r);
        case state::tied: return r.what == answer::ok ? grant() : start_over();
        default: return;
        }
    }

    void take_created(reply const& r)
    {
        if (r.what == answer::no_node) return make_parent(plan().lock);
        have(r);
        ask_for_line(state::listing);
    }

    /// Returns: whether it is the name of a mark: a token, and the number.
    [[nodiscard]] static bool is_mark(std::string_view node) noexcept
    {
        constexpr std::size_t length = 32;  // of a token
        auto const number = node.substr(std::min(node.size(), length + 1));
        return !number.empty() && node[length] == '-' &&
               node.substr(0, length).find_first_not_of("0123456789abcdef") == std::string_view::npos &&
               number.find_first_not_of("0123456789") == std::string_view::npos;
    }

    void take_list(reply const& r)
    {
        marks_ = r.children;
        std::erase_if(marks_, [](auto const& one) { return !is_mark(one); });
        if (std::find(marks_.begin(), marks_.end(), node_) == marks_.end()) return start_over();
        if (std::all_of(marks_.begin(), marks_.end(), [&](auto const& one) { return number_of(one) == permits_; }))
            return agree();
        enter(state::checking);
        if (replaces()) std::erase_if(marks_, [&](auto const& one) { return number_of(one) == permits_; });
        // mutant: a change of the number that leaves the marks of others
        auto const asked = replaces() ? request::kind::erase : request::kind::data;
        found_.assign(marks_.size(), {});
        open_ = marks_.size();
        for (std::size_t i = 0; i < marks_.size(); ++i) send(static_cast<unsigned>(i), {asked, path_of(marks_[i])});
    }

    void take_removed(reply const&)
    {
        if (--open_ == 0) agree();
    }

    void take_mark(unsigned slot, reply const& r)
    {
        if (r.what == answer::ok) found_.at(slot) = {r.stat.czxid, r.text == agreed};
        if (--open_ > 0) return;
        auto const ours =
            found_[static_cast<std::size_t>(std::find(marks_.begin(), marks_.end(), node_) - marks_.begin())];
        if (ours.czxid == 0) return start_over();
        bool in_question = false;
        for (std::size_t i = 0; i < marks_.size(); ++i) {
            auto const& one = found_[i];
            if (one.czxid == 0 || one.czxid >= ours.czxid || number_of(marks_[i]) == permits_) continue;
            if (!one.agreed) {
                in_question = true;  // mutant: an earlier number that is not yet agreed ignored
                continue;
            }
            other_ = number_of(marks_[i]);
            return fail(errc::other_number);
        }
        if (in_question) {
            enter(state::waiting);
            return stall();
        }
        agree();
    }

    void agree()
    {
        enter(state::tied);
        send(first, {request::kind::write, path_of(node_), std::string{agreed}});
    }

    struct mark {
        std::int64_t czxid = 0;  // 0: it is gone
        bool agreed = false;
    };

    std::string const permits_;
    other_numbers const others_;
    std::string node_;   // the name of ours
    std::string other_;  // the number that is agreed
    std::vector<std::string> marks_;
    std::vector<mark> found_;
    std::size_t open_ = 0;  // how many answers are to come
};

}  // namespace holdfast::zookeeper
