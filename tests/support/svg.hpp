// SPDX-License-Identifier: MIT
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace holdfast::test {

/// Writes an SVG of rectangles, lines and text. How they look is said by classes of a style sheet.
class svg {
public:
    /// Many rectangles of one height, as one element.
    class row {
    public:
        row(double y, double height) : y_{y}, height_{height} {}

        void add(double x, double width)
        {
            outline_ << 'M' << tenths(x) << ' ' << tenths(y_) << 'h' << tenths(width) << 'v' << tenths(height_) << 'h'
                     << -tenths(width) << 'z';
        }

        [[nodiscard]] std::string outline() const { return outline_.str(); }

    private:
        double y_;
        double height_;
        std::ostringstream outline_;
    };

    svg(double width, double height, std::string_view style)
    {
        body_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width << "\" height=\"" << height
              << "\" viewBox=\"0 0 " << width << ' ' << height << "\">\n<style>" << style << "</style>\n";
        rectangle(0, 0, width, height, "paper");
    }

    void rectangle(double x, double y, double width, double height, std::string_view look)
    {
        body_ << "<rect x=\"" << tenths(x) << "\" y=\"" << tenths(y) << "\" width=\"" << tenths(width) << "\" height=\""
              << tenths(height) << "\" class=\"" << look << "\"/>\n";
    }

    void rectangles(row const& all, std::string_view look)
    {
        if (auto const outline = all.outline(); !outline.empty())
            body_ << "<path d=\"" << outline << "\" class=\"" << look << "\"/>\n";
    }

    void line(double x1, double y1, double x2, double y2, std::string_view look)
    {
        body_ << "<line x1=\"" << tenths(x1) << "\" y1=\"" << tenths(y1) << "\" x2=\"" << tenths(x2) << "\" y2=\""
              << tenths(y2) << "\" class=\"" << look << "\"/>\n";
    }

    /// Requires: `what` has no characters that XML keeps for itself.
    void text(double x, double y, std::string_view what, std::string_view look)
    {
        body_ << "<text x=\"" << tenths(x) << "\" y=\"" << tenths(y) << "\" class=\"" << look << "\">" << what
              << "</text>\n";
    }

    /// Throws: `std::runtime_error` where the file cannot be written.
    void save(std::filesystem::path const& file) const
    {
        std::ofstream out{file};
        out << body_.str() << "</svg>\n";
        if (!out.flush()) throw std::runtime_error{"cannot write the picture to " + file.string()};
    }

private:
    static double tenths(double x) { return std::round(x * 10) / 10; }

    std::ostringstream body_;
};

}  // namespace holdfast::test
