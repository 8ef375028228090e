// SPDX-License-Identifier: MIT
#pragma once

#include <holdfast/zookeeper/acquire_machine.hpp>
#include <holdfast/zookeeper/requests.hpp>

#include <cstdint>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

using kind = zookeeper::request::kind;
using zookeeper::answer;
using zookeeper::reply;

/// Returns: a source of tokens that all look alike but for their last digit.
inline auto counted_tokens()
{
    return [next = std::uint64_t{0}]() mutable { return owner_token::from_bits(0, ++next); };
}

/// The name that the queue's machine gives its node for the `n`th token.
inline std::string node(unsigned n, std::string const& sequence)
{
    return "_c_00000000-0000-0000-0000-00000000000" + std::to_string(n) + "-lock-" + sequence;
}

/// Drives a machine by hand: what it sent, and answers to that.
template <class Machine>
class driven {
public:
    template <class... Args>
    explicit driven(Args&&... args) : machine{std::forward<Args>(args)...}
    {
    }

    Machine machine;

    /// Returns: what was sent since the last call, in short.
    std::vector<std::string> sent()
    {
        open_ = machine.take_actions();
        std::vector<std::string> words;
        for (auto const& one : open_)
            words.push_back(word(one.what.what) + (one.what.path.empty() ? "" : ' ' + one.what.path));
        return words;
    }

    /// Effects: answers the `i`th of what was sent.
    void answer_to(std::size_t i, reply const& r) { machine.answered(open_.at(i).tag, r); }

    /// Returns: the tag of the `i`th of what was sent.
    [[nodiscard]] unsigned tag(std::size_t i) const { return open_.at(i).tag; }

private:
    static std::string word(kind k)
    {
        switch (k) {
        case kind::create_sequential: return "create";
        case kind::create_plain: return "plain";
        case kind::create_container: return "container";
        case kind::create_persistent: return "persistent";
        case kind::children: return "children";
        case kind::data: return "data";
        case kind::watch: return "watch";
        case kind::watch_children: return "watch children";
        case kind::erase: return "erase";
        case kind::confirm: return "confirm";
        case kind::write: return "write";
        default: return "?";
        }
    }

    std::vector<zookeeper::action> open_;
};

inline reply created(std::string path, std::int64_t czxid)
{
    return {.what = answer::ok, .text = std::move(path), .stat = {czxid, 1}};
}
inline reply names(std::vector<std::string> children) { return {.what = answer::ok, .children = std::move(children)}; }
inline reply stat(std::int64_t czxid, std::int64_t owner, std::string text = {})
{
    return {.what = answer::ok, .text = std::move(text), .stat = {czxid, owner}};
}
inline reply only(answer what) { return {.what = what}; }

}  // namespace holdfast::test
