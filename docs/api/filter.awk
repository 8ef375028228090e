# SPDX-License-Identifier: MIT
#
# What Doxygen reads of a header: no inline namespace of the version, no special members that are only defaulted or
# deleted (the standard says what these do), and the words that begin a clause as Doxygen's aliases (Doxyfile).
{
    sub(/::inline HOLDFAST_ABI/, "")
    sub(/ \/\/ NOLINT.*/, "")
    if ($0 ~ /= (default|delete);$/ && !was_comment) $0 = ""
    comment = $0 ~ /^ *\/\/\/ /
    if (comment) {
        lead = was_comment ? "" : substr($0, 1, match($0, /\/\/\/ /) + 3)
        rest = was_comment ? $0 : substr($0, length(lead) + 1)
        if (!was_comment && match(rest, /^(Effects|Returns|Throws|Requires|Postconditions): /)) {
            word = substr(rest, 1, RLENGTH - 2)
            rest = "<b>" word ":</b> " substr(rest, RLENGTH + 1)
        }
        gsub(/Effects: /, "@effects ", rest)
        gsub(/Returns: /, "@gives ", rest)
        gsub(/Throws: /, "@error ", rest)
        gsub(/Requires: /, "@requirement ", rest)
        gsub(/Postconditions: /, "@after ", rest)
        gsub(/<b>Effects:/, "<b>Effects:", rest)
        $0 = lead rest
    }
    was_comment = comment
    print
}
