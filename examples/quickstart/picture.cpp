// SPDX-License-Identifier: MIT
#include "picture.hpp"

#include <support/svg.hpp>
#include <support/text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace quickstart {
namespace {

using namespace std::chrono_literals;
using holdfast::test::counted;
using holdfast::test::grouped;
using holdfast::test::svg;
using seconds = std::chrono::duration<double>;

// Colours that people with any kind of colour vision tell apart (Okabe and Ito).
constexpr std::string_view style =
    "text{font:12px sans-serif;fill:#333}.title{font-size:17px;font-weight:bold;fill:#111}.head{font-weight:bold}"
    ".small{font-size:11px;fill:#666}.right{text-anchor:end}.middle{text-anchor:middle}.mark{fill:#a33f00;font-weight:bold}"
    ".paper{fill:#fff}.lane{fill:#f1f3f5}.hold{fill:#0072b2}.h1{fill:#b3d5e8}.h2{fill:#7fb8d8}.h3{fill:#4c9bc7}.h4{fill:#0072b2}"
    ".stopped{fill:#e69f00}.late{fill:#d55e00}.rate{fill:#009e73}.axis{stroke:#999}.fault{stroke:#a33f00;stroke-width:1.5;stroke-dasharray:4 3}";

/// A part of time drawn in a part of the picture, a lane per worker.
struct frame {
    time_point from;
    time_point until;
    double left, width, top, lane, gap;

    [[nodiscard]] double x(time_point t) const
    {
        return left + width * std::clamp(seconds{t - from} / seconds{until - from}, 0.0, 1.0);
    }
    [[nodiscard]] bool shows(time_point t) const { return from <= t && t < until; }
    [[nodiscard]] double y(unsigned worker) const { return top + worker * (lane + gap); }
    [[nodiscard]] double bottom() const { return y(workers) - gap; }
};

class painter {
public:
    painter(findings const& f, history const& h) : f_{f}, h_{h} {}

    void save(std::filesystem::path const& file)
    {
        title();
        overview();
        close_ups();
        legend();
        out_.save(file);
    }

private:
    static constexpr double width = 1160;
    static constexpr double height = 664;
    static constexpr double margin = 94;
    static constexpr double drawn = width - margin - 24;

    void title()
    {
        out_.text(20, 30, "Who held the lock: eight processes, one lock on " + counted(h_.masters, h_.kind), "title");
        out_.text(20, 50,
                  counted(f_.in_order.size(), "section") + ", " + counted(f_.overlapping, "overlapping hold") + ", " +
                      counted(f_.lost, "lost update") + ", " + counted(f_.stale_refused, "stale write") +
                      " refused and " + grouped(f_.stale_accepted) + " accepted",
                  "small");
    }

    void overview()
    {
        frame const all{
            .from = h_.begin, .until = h_.end, .left = margin, .width = drawn, .top = 108, .lane = 22, .gap = 4};
        for (unsigned w = 0; w < workers; ++w) {
            out_.rectangle(all.left, all.y(w), all.width, all.lane, "lane");
            out_.text(all.left - 10, all.y(w) + 15, "worker " + std::to_string(w + 1), "right");
            density(all, w);
        }
        late_holds(all);
        rates(all, all.bottom() + 54);
        time_axis(all, all.bottom() + 62);
        double clear_from = 0;
        double row = 0;
        for (auto const& one : h_.faults) {
            auto const x = all.x(one.at);
            row = x < clear_from && row == 0 ? 16 : 0;
            clear_from = x + 120;
            out_.line(x, all.top - 6 - row, x, all.bottom() + 62, "fault");
            out_.text(x, all.top - 12 - row, one.label, "mark middle");
        }
    }

    /// The darker, the greater the worker's share of that moment.
    void density(frame const& at, unsigned worker)
    {
        constexpr double step = 2;
        constexpr double shade = 0.06;
        constexpr std::array<std::string_view, 4> looks{"h1", "h2", "h3", "h4"};
        std::vector<double> held(static_cast<std::size_t>(at.width / step) + 1);
        auto const column = seconds{at.until - at.from} / at.width * step;
        for (auto const& s : f_.in_order)
            if (s.worker == worker && !s.late && at.shows(s.acquired))
                held[static_cast<std::size_t>((at.x(s.acquired) - at.left) / step)] +=
                    seconds{s.released - s.acquired} / column;
        for (std::size_t level = 0; level < looks.size(); ++level) {
            svg::row row{at.y(worker), at.lane};
            for (std::size_t i = 0; i < held.size(); ++i)
                if (held[i] > 0 && std::min(looks.size() - 1, static_cast<std::size_t>(held[i] / shade)) == level)
                    row.add(at.left + step * static_cast<double>(i), step);
            out_.rectangles(row, looks[level]);
        }
    }

    void rates(frame const& at, double floor)
    {
        constexpr double high = 40;
        std::vector<unsigned> counts(static_cast<std::size_t>((at.until - at.from) / 100ms) + 1);
        for (auto const& s : f_.in_order)
            if (at.shows(s.acquired)) ++counts[static_cast<std::size_t>((s.acquired - at.from) / 100ms)];
        auto const most = std::max(1U, *std::max_element(counts.begin(), counts.end()));
        double const step = at.x(at.from + 100ms) - at.left;
        for (std::size_t i = 0; i + 1 < counts.size(); ++i) {
            double const tall = high * counts[i] / most;
            out_.rectangle(at.left + step * static_cast<double>(i), floor - tall, step - 1, tall, "rate");
        }
        out_.text(at.left - 10, floor - 28, "sections", "right");
        out_.text(at.left - 10, floor - 14, "per second", "right");
        out_.text(at.left - 10, floor, "up to " + grouped(10UL * most), "small right");
    }

    void time_axis(frame const& at, double y)
    {
        out_.line(at.left, y, at.left + at.width, y, "axis");
        auto const every = h_.end - h_.begin > 25s ? 5s : 1s;
        for (auto t = 0s; at.from + t <= at.until; t += every) {
            auto const x = at.x(at.from + t);
            out_.line(x, y, x, y + 4, "axis");
            out_.text(x, y + 17, std::to_string(t.count()) + " s", "small middle");
        }
    }

    void close_ups()
    {
        out_.text(20, 436, "50 ms around each fault", "head");
        double const each = (drawn + 20) / static_cast<double>(h_.faults.size());
        double left = margin;
        for (auto const& one : h_.faults) {
            close_up({.from = one.at - 10ms,
                      .until = one.at + 40ms,
                      .left = left,
                      .width = each - 20,
                      .top = 474,
                      .lane = 12,
                      .gap = 2},
                     one);
            left += each;
        }
    }

    void close_up(frame const& at, fault const& around)
    {
        out_.text(at.left, at.top - 12, around.label, "mark");
        for (unsigned w = 0; w < workers; ++w) {
            out_.rectangle(at.left, at.y(w), at.width, at.lane, "lane");
            if (at.left == margin)
                out_.text(at.left - 10, at.y(w) + 10, "worker " + std::to_string(w + 1), "small right");
            svg::row holds{at.y(w), at.lane};
            for (auto const& s : f_.in_order)
                if (s.worker == w && !s.late && s.released > at.from && s.acquired < at.until)
                    holds.add(at.x(s.acquired), std::max(1.0, at.x(s.released) - at.x(s.acquired)));
            out_.rectangles(holds, "hold");
        }
        late_holds(at);
        out_.line(at.x(around.at), at.top - 6, at.x(around.at), at.bottom() + 4, "fault");
        out_.line(at.left, at.bottom() + 4, at.left + at.width, at.bottom() + 4, "axis");
        for (auto t = 0ms; t < 40ms; t += 10ms)
            out_.text(at.x(around.at + t), at.bottom() + 18, std::to_string(t.count()) + (t == 30ms ? " ms" : ""),
                      "small middle");
    }

    void late_holds(frame const& at)
    {
        auto const box = [&](section const& s, time_point from, time_point until, std::string_view look) {
            if (until > at.from && from < at.until)
                out_.rectangle(at.x(from), at.y(s.worker), at.x(until) - at.x(from), at.lane, look);
        };
        for (auto const& s : f_.in_order) {
            if (!s.late) continue;
            box(s, s.acquired, s.lease_end, "stopped");
            box(s, s.lease_end, s.released, "late");
        }
    }

    void legend()
    {
        double x = margin;
        auto const entry = [&](std::string_view look, std::string_view what, double room) {
            out_.rectangle(x, height - 30, 14, 12, look);
            out_.text(x + 21, height - 20, what, "small");
            x += room;
        };
        entry("hold", "holds the lock (on top: the darker, the larger its share)", 370);
        entry("stopped", "stopped; still the holder, until its lease ends", 320);
        entry("late", "stopped; its lease has ended, others hold", 270);
    }

    findings const& f_;
    history const& h_;
    svg out_{width, height, style};
};

}  // namespace

void draw(findings const& f, history const& h, std::filesystem::path const& file)
{
    painter{f, h}.save(file);
}

}  // namespace quickstart
