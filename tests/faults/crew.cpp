// SPDX-License-Identifier: MIT
#include "crew.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace holdfast::faults {

using namespace std::chrono_literals;

crew::crew(crew_options options, std::filesystem::path folder)
    : options_{std::move(options)},
      folder_{std::move(folder)},
      journal_{folder_, director},
      members_(options_.processes)
{
    for (std::size_t i = 0; i < size(); ++i) start(i);
}

crew::~crew()
{
    stage_->stop = true;
    for (auto& one : members_) one.process.kill();
}

void crew::start(std::size_t i)
{
    auto const lane = static_cast<std::uint32_t>(i % options_.lanes);
    auto const& there = options_.ways_there;
    bool const writes = i < options_.writers;
    duty what{.where = there.empty() ? options_.where : there[i % there.size()],
              .folder = folder_,
              .clients = {},
              .first_slot = i * options_.locks,
              .first_lock = lane * options_.locks,
              .one_lock = one_lock(i),
              .kind = options_.kind,
              .shared = options_.kind == primitive::readers && !writes,
              .crosses = options_.crosses,
              .permits = options_.permits,
              .period = options_.period,
              .period_asked = options_.period_asked.value_or(options_.period),
              .members = options_.members,
              .last_on = options_.last_on,
              .patience = writes ? options_.patience_of_writers.value_or(options_.patience) : options_.patience,
              .guarded = options_.guarded,
              .tokens_checked = options_.tokens_checked,
              .asynchronous = options_.asynchronous_in != 0 && i % options_.asynchronous_in == 0,
              .rest = options_.rest};
    for (std::uint32_t l = 0; l < threads(i); ++l) {
        what.clients.push_back(next_client_++);
        auto& s = of(i, l);
        s.stay = false;
        s.staying = false;
        s.asking = false;
        s.client = what.clients.back();
    }
    auto* const on = &*stage_;
    members_[i].process = test::child::fork([what, on] { return work(what, *on); });
}

void crew::pause(std::size_t i)
{
    note_about(event::paused, i);
    process(i).pause();
}

void crew::resume(std::size_t i)
{
    note_about(event::continued, i);
    process(i).resume();
}

void crew::kill(std::size_t i)
{
    auto const begun = static_cast<std::uint64_t>(monotonic_now());
    process(i).kill();
    note_about(event::killed, i, begun);  // on a busy machine that may be long after it has died
    ++killed_;
}

void crew::replace(std::size_t i)
{
    ++members_.at(i).generation;
    start(i);
}

void crew::note(event what, std::uint64_t value) { journal_.write({.value = value, .what = what}); }

void crew::note_about(event what, std::size_t i, std::uint64_t value)
{
    for (std::uint32_t lock = 0; lock < any_of(); ++lock)
        journal_.write({.value = value, .client = of(i).client, .lock = lock, .what = what});
    if (any_of() != 0) return;
    for (std::uint32_t l = 0; l < threads(i); ++l)
        journal_.write({.value = value,
                        .client = of(i, l).client,
                        .lock = static_cast<std::uint32_t>(i % options_.lanes) * options_.locks + (one_lock(i) ? 0 : l),
                        .what = what});
}

void crew::end()
{
    stage_->stop = true;
    for (std::size_t i = 0; i < size(); ++i) {
        if (process(i).paused()) process(i).resume();
        auto const status = process(i).wait_for(2min);
        if (status != 0)
            throw std::runtime_error{"worker " + std::to_string(i) +
                                     (status ? " ended with status " + std::to_string(*status) : " does not end")};
    }
}

std::uint64_t crew::sections() const
{
    std::uint64_t sum = 0;
    for (auto const& one : stage_->slots) sum += one.sections;
    return sum;
}

std::uint64_t crew::failures() const
{
    std::uint64_t sum = 0;
    for (auto const& one : stage_->slots) sum += one.failures;
    return sum;
}

}  // namespace holdfast::faults
