// SPDX-License-Identifier: MIT
#pragma once

#include "check/history.hpp"
#include "place.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::faults {

/// How a row of the table of faults is to be run.
struct run_options {
    bool full = false;     ///< with the counts of a release, not of every day
    bool control = false;  ///< with what the row is about switched off: it must find breaches then
    std::uint64_t seed = 1;
    bool own_network = false;  ///< packets can be dropped with nftables
    place::store on = place::store::redis;

    /// Returns: how many times something is to be done.
    [[nodiscard]] std::size_t count(std::size_t brief, std::size_t whole) const noexcept
    {
        return full ? whole : brief;
    }
};

/// What came of a row.
class findings {
public:
    /// A folder for journals and the like; it goes with the run.
    explicit findings(std::filesystem::path folder) : folder_{std::move(folder)} {}

    /// Returns: a new folder in that of the run.
    [[nodiscard]] std::filesystem::path folder(std::string const& name) const
    {
        auto made = folder_ / name;
        std::filesystem::create_directory(made);
        return made;
    }

    void figure(std::string name, std::string value) { figures_.emplace_back(std::move(name), std::move(value)); }
    void figure(std::string name, std::size_t value) { figure(std::move(name), std::to_string(value)); }
    /// Effects: median, 99th percentile and greatest of some times in ns, and how many are above `aim`.
    void times(std::string name, std::vector<std::int64_t> values, std::int64_t aim);
    /// Effects: the same; and with the counts of a release it is a breach where the 99th percentile is above `aim`. In
    /// the short form, beside which a machine does other things, a row has a limit of its own that is far above.
    void demanded_times(run_options const& run, std::string const& name, std::vector<std::int64_t> values,
                        std::int64_t aim);

    void check(std::string const& what, breaches const& found);
    /// Effects: where `good` is false, that is a breach.
    void require(bool good, std::string const& otherwise) { check({}, good ? breaches{} : breaches{otherwise}); }

    /// Effects: has the history of a run drawn.
    void show(std::vector<record> records) { shown_ = std::move(records); }

    [[nodiscard]] auto const& figures() const noexcept { return figures_; }
    [[nodiscard]] breaches const& wrong() const noexcept { return wrong_; }
    [[nodiscard]] std::vector<std::string> const& checked() const noexcept { return checked_; }
    [[nodiscard]] std::vector<record> const& shown() const noexcept { return shown_; }

private:
    std::filesystem::path folder_;
    std::vector<std::pair<std::string, std::string>> figures_;
    std::vector<std::string> checked_;
    breaches wrong_;
    std::vector<record> shown_;
};

/// What shows that a row can fail.
struct control_run {
    std::string_view without;  ///< what is switched off
    std::string_view finds;    ///< how a breach begins that has to be found then
};

/// One row of the table of faults.
struct row {
    std::string_view name;
    std::string_view must_show;
    control_run control;
    void (*run)(run_options const&, findings&);
    place::store on = place::store::redis;  ///< what it is run with
};

/// Returns: how many breaches were found that the control of a row has to find.
[[nodiscard]] std::size_t breaches_to_find(row const& of, findings const& found);

/// Returns: all rows, in the order of the table.
[[nodiscard]] std::vector<row> const& all_rows();

}  // namespace holdfast::faults
