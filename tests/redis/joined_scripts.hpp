// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

namespace holdfast::test {

/// A script made of several, one after the other, each with its own keys and arguments. While a script runs, a server
/// lets no key expire, however long it is kept from the processor.
class joined_scripts {
public:
    /// Effects: adds a script; `keys` are those that it knows, quoted, in Lua.
    void add(std::string const& script, std::string const& keys, std::vector<std::string> const& arguments)
    {
        auto const before = given_.size();
        given_.insert(given_.end(), arguments.begin(), arguments.end());
        text_ += "table.insert(answers, (function(KEYS, ARGV)\n" + script + "\nend)({" + keys + "}, {unpack(ARGV, " +
                 std::to_string(before + 1) + ", " + std::to_string(given_.size()) + ")}))\n";
    }

    /// Returns: the command that runs them, and answers with what each answered.
    [[nodiscard]] std::vector<std::string> command() const
    {
        std::vector<std::string> words{"EVAL", text_ + "return answers", "0"};
        words.insert(words.end(), given_.begin(), given_.end());
        return words;
    }

private:
    std::string text_ = "local answers = {}\n";
    std::vector<std::string> given_;
};

}  // namespace holdfast::test
