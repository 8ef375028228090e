// SPDX-License-Identifier: MIT
#include "timeline.hpp"

#include "check/history.hpp"

#include <support/svg.hpp>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace holdfast::faults {
namespace {

using test::svg;

// Colours that people with any kind of colour vision tell apart (Okabe and Ito).
constexpr std::string_view style =
    "text{font:12px sans-serif;fill:#333}.title{font-size:16px;font-weight:bold;fill:#111}.small{font-size:11px;fill:#666}.right{text-anchor:end}"
    ".middle{text-anchor:middle}.paper{fill:#fff}.lane{fill:#f1f3f5}.hold{fill:#0072b2}.shared{fill:#56b4e9}.late{fill:#d55e00}.paused{fill:#e69f00}"
    ".axis{stroke:#999}.fault{fill:#a33f0033}.killed{stroke:#a33f00;stroke-width:2}.refused{stroke:#cc79a7;stroke-width:2}";

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t shown = 6 * second;
constexpr double margin = 110;
constexpr double width = 1020;
constexpr double lane = 12;
constexpr double gap = 3;
constexpr double top = 62;
constexpr std::size_t most_lanes = 32;

class painter {
public:
    painter(std::string const& title, std::vector<record> const& records) : records_{records}
    {
        for (auto const& r : records) {
            bool const fault = r.what == event::paused || r.what == event::killed || r.what == event::fault_begun;
            if (fault && from_ == 0) from_ = r.at - second / 2;
        }
        if (from_ == 0 && !records.empty()) from_ = records.front().at;
        for (auto const& r : records)
            if (r.client != director && r.what != event::acquire_begun && r.at >= from_ && r.at < from_ + shown &&
                lanes_.size() < most_lanes)
                lanes_.try_emplace({r.lock, r.client}, 0.0);
        double y = top;
        for (auto& [key, place] : lanes_) {
            place = y;
            y += lane + gap;
        }
        bottom_ = y;
        out_ = svg{margin + width + 20, bottom_ + 60, style};
        out_.text(20, 26, title, "title");
        out_.text(20, 46, "The first seconds with faults, a lane for each client.", "small");
    }

    void save(std::filesystem::path const& file)
    {
        for (auto const& [key, y] : lanes_) {
            out_.rectangle(margin, y, width, lane, "lane");
            out_.text(margin - 8, y + 10,
                      "lock " + std::to_string(key.first + 1) + ", client " + std::to_string(key.second),
                      "small right");
        }
        spans(event::fault_begun, event::fault_ended, "fault");
        spans(event::paused, event::continued, "paused");
        holds();
        marks();
        axis();
        legend();
        out_.save(file);
    }

private:
    [[nodiscard]] double x(std::int64_t t) const
    {
        return margin +
               width * static_cast<double>(std::clamp<std::int64_t>(t - from_, 0, shown)) / static_cast<double>(shown);
    }

    void box(std::uint32_t lock, std::uint32_t client, std::int64_t begin, std::int64_t end, std::string_view look,
             double tall = lane)
    {
        auto const y = lanes_.find({lock, client});
        if (y == lanes_.end() || end <= from_ || begin >= from_ + shown) return;
        out_.rectangle(x(begin), y->second + (lane - tall) / 2, std::max(0.7, x(end) - x(begin)), tall, look);
    }

    void spans(event begin, event end, std::string_view look)
    {
        std::map<std::pair<std::uint32_t, std::uint64_t>, record> open;
        auto const close = [&](record const& b, std::int64_t until) {
            if (b.client != director) return box(b.lock, b.client, b.at, until, look);
            if (until > from_ && b.at < from_ + shown)
                out_.rectangle(x(b.at), top - 6, std::max(1.0, x(until) - x(b.at)), bottom_ - top + 6, look);
        };
        for (auto const& r : records_) {
            auto const key = std::pair{r.client, r.value + (r.client == director ? 0U : std::uint64_t{r.lock} << 32U)};
            if (r.what == begin) open[key] = r;
            if (r.what == end)
                if (auto const found = open.find(key); found != open.end()) {
                    close(found->second, r.at);
                    open.erase(found);
                }
        }
        for (auto const& [key, b] : open) close(b, from_ + shown);
    }

    void holds()
    {
        for (auto const& [lock, of_lock] : holds_of(records_))
            for (auto const& h : of_lock) {
                box(lock, h.client, h.granted, h.over(), h.shared ? "shared" : "hold", 8);
                if (h.release_begun != never && h.release_begun > h.over())
                    box(lock, h.client, h.over(), h.release_begun, "late", 8);
            }
    }

    void marks()
    {
        for (auto const& r : records_) {
            auto const y = lanes_.find({r.lock, r.client});
            if (y == lanes_.end() || r.at < from_ || r.at >= from_ + shown) continue;
            if (r.what == event::killed) out_.line(x(r.at), y->second - 2, x(r.at), y->second + lane + 2, "killed");
            if (r.what == event::write_refused)
                out_.line(x(r.at), y->second - 2, x(r.at), y->second + lane + 2, "refused");
        }
    }

    void axis()
    {
        out_.line(margin, bottom_ + 2, margin + width, bottom_ + 2, "axis");
        for (std::int64_t t = 0; t <= shown; t += second)
            out_.text(x(from_ + t), bottom_ + 16, std::to_string(t / second) + " s", "small middle");
    }

    void legend()
    {
        double at = 20;
        for (auto const& [look, what] : {std::pair{"hold", "holds the lock"},
                                         {"shared", "shares it"},
                                         {"paused", "is stopped"},
                                         {"late", "its lease has ended"},
                                         {"killed", "killed"},
                                         {"refused", "stale write refused"},
                                         {"fault", "a fault of servers or network"}}) {
            bool const line = std::string_view{look} == "killed" || std::string_view{look} == "refused";
            if (line)
                out_.line(at + 6, bottom_ + 32, at + 6, bottom_ + 46, look);
            else
                out_.rectangle(at, bottom_ + 34, 12, 10, look);
            out_.text(at + 18, bottom_ + 43, what, "small");
            at += 155;
        }
    }

    std::vector<record> const& records_;
    std::int64_t from_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> lanes_;
    double bottom_ = 0;
    svg out_{1, 1, style};
};

}  // namespace

void draw(std::string const& title, std::vector<record> const& records, std::filesystem::path const& file)
{
    painter{title, records}.save(file);
}

}  // namespace holdfast::faults
