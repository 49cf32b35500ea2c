#include "smd/cli/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "smd/picture/interval.h"
#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

constexpr std::string_view kLetters = "ox+*#@%&";
constexpr std::array<int, 6> kColors = {36, 33, 32, 35, 34, 31};

struct Signs {
  std::string_view vertical, tick, corner, horizontal, nan, up, down;
};
constexpr Signs kUnicode = {"│", "┤", "└", "─", "×", "▲", "▼"};
constexpr Signs kAscii = {"|", "+", "+", "-", "x", "^", "v"};

// An axis needs two ends: a single value lies in the middle.
void settle(Interval& shown) {
  if (shown.empty()) shown = {0, 1};
  if (shown.low == shown.high) shown.widen(shown.low == 0 ? 1 : std::abs(shown.low) / 2);
}

std::string label(double value) { return fmt::format("{:.4g}", value); }

class Canvas final {
 public:
  Canvas(int columns, int rows, bool dots)
      : columns_(columns), rows_(rows), dots_(dots), cells_(static_cast<size_t>(columns * rows)) {}

  int dot_columns() const { return dots_ ? columns_ * 2 : columns_; }
  int dot_rows() const { return dots_ ? rows_ * 4 : rows_; }

  // Rows count from above.
  void line(int x0, int y0, int x1, int y1, int series) {
    const int dx = std::abs(x1 - x0);
    const int dy = -std::abs(y1 - y0);
    const int sx = x0 < x1 ? 1 : -1;
    const int sy = y0 < y1 ? 1 : -1;
    for (int error = dx + dy;;) {
      dot(x0, y0, series);
      if (x0 == x1 && y0 == y1) return;
      const int twice = 2 * error;
      if (twice >= dy) {
        error += dy;
        x0 += sx;
      }
      if (twice <= dx) {
        error += dx;
        y0 += sy;
      }
    }
  }
  void sign(int column, int row, std::string_view text) { cell(column, row).sign = text; }

  std::string row(int index, const ChartOptions& options) const {
    std::string out;
    for (int column = 0; column < columns_; ++column) {
      const Cell& c = cells_[static_cast<size_t>(index * columns_ + column)];
      const std::string shown = text_of(c);
      if (options.color && c.series >= 0 && c.sign.empty()) {
        const int code = kColors[static_cast<size_t>(c.series) % kColors.size()];
        out += fmt::format("\x1b[{}m{}\x1b[0m", code, shown);
      } else {
        out += shown;
      }
    }
    return out;
  }

 private:
  struct Cell {
    uint8_t dots = 0;
    int series = -1;
    std::string_view sign;
  };

  Cell& cell(int column, int row) { return cells_[static_cast<size_t>(row * columns_ + column)]; }

  void dot(int x, int y, int series) {
    if (!dots_) {
      cell(x, y).series = series;
      return;
    }
    constexpr uint8_t kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    Cell& c = cell(x / 2, y / 4);
    c.dots |= kBits[y % 4][x % 2];
    c.series = series;
  }

  std::string text_of(const Cell& c) const {
    if (!c.sign.empty()) return std::string(c.sign);
    if (c.series < 0) return " ";
    if (!dots_) return std::string(1, kLetters[static_cast<size_t>(c.series) % kLetters.size()]);
    // U+2800 and the dots, in UTF-8.
    return {'\xe2', static_cast<char>(0xa0 | c.dots >> 6),
            static_cast<char>(0x80 | (c.dots & 0x3f))};
  }

  const int columns_;
  const int rows_;
  const bool dots_;
  std::vector<Cell> cells_;
};

std::string legend_of(const std::vector<PlotLine>& series, const ChartOptions& options, bool dots) {
  if (series.size() < 2) return "";
  std::string out;
  for (size_t i = 0; i < series.size(); ++i) {
    std::string key = dots ? "—" : std::string(1, kLetters[i % kLetters.size()]);
    if (options.color) key = fmt::format("\x1b[{}m{}\x1b[0m", kColors[i % kColors.size()], key);
    out += fmt::format("  {} {}\n", key,
                       cut_to_width(printable(series[i].name), std::max(1, options.width - 4)));
  }
  return out;
}

// The series as a logarithmic axis shows them.
std::vector<PlotLine> logarithms(const std::vector<PlotLine>& series) {
  std::vector<PlotLine> out;
  for (const PlotLine& one : series) {
    PlotLine made{.name = one.name};
    for (const auto& [x, y] : one.points) {
      if (y > 0 || std::isnan(y)) made.points.emplace_back(x, std::log10(y));
    }
    out.push_back(std::move(made));
  }
  return out;
}

}  // namespace

std::string draw_chart(const std::vector<PlotLine>& drawn, const ChartOptions& options) {
  const std::vector<PlotLine> series = options.log ? logarithms(drawn) : drawn;
  const Signs& signs = options.ascii ? kAscii : kUnicode;
  const bool dots = !options.ascii && (options.color || series.size() < 2);
  Interval xs;
  Interval ys;
  for (const PlotLine& one : series) {
    for (const auto& [x, y] : one.points) {
      if (!std::isfinite(x)) continue;
      xs.add(x);
      if (std::isfinite(y)) ys.add(y);
    }
  }
  if (xs.empty()) return "There is nothing to draw.\n";
  const bool has_values = !ys.empty();
  settle(xs);
  settle(ys);

  const int rows = std::max(options.height, 3);
  const auto y_label = [&](double y) { return label(options.log ? std::pow(10, y) : y); };
  const std::array<std::string, 3> labels = {y_label(ys.high), y_label(ys.at(0.5)),
                                             y_label(ys.low)};
  size_t margin = 0;
  for (const std::string& text : labels) margin = std::max(margin, text.size());
  const int columns = std::max(std::max(options.width, 20) - static_cast<int>(margin) - 2, 4);
  Canvas canvas(columns, rows, dots);
  std::vector<bool> nan_at(static_cast<size_t>(columns));
  bool any_nan = false;
  bool any_infinity = false;

  const auto place = [](double part, int count) {
    return std::clamp(static_cast<int>(std::lround(part * (count - 1))), 0, count - 1);
  };
  for (size_t s = 0; s < series.size(); ++s) {
    bool joined = false;
    int last_x = 0;
    int last_y = 0;
    for (const auto& [x, y] : series[s].points) {
      if (!std::isfinite(x)) continue;
      const int column = place(xs.part(x), columns);
      if (!std::isfinite(y)) {
        joined = false;
        if (std::isnan(y)) {
          nan_at[static_cast<size_t>(column)] = any_nan = true;
        } else {
          canvas.sign(column, y > 0 ? 0 : rows - 1, y > 0 ? signs.up : signs.down);
          any_infinity = true;
        }
        continue;
      }
      const int dot_x = place(xs.part(x), canvas.dot_columns());
      const int dot_y = canvas.dot_rows() - 1 - place(ys.part(y), canvas.dot_rows());
      canvas.line(joined ? last_x : dot_x, joined ? last_y : dot_y, dot_x, dot_y,
                  static_cast<int>(s));
      joined = true;
      last_x = dot_x;
      last_y = dot_y;
    }
  }

  std::string out;
  for (int row = 0; row < rows; ++row) {
    const int which = row == 0 ? 0 : row == rows / 2 ? 1 : row == rows - 1 ? 2 : -1;
    const bool labelled = which >= 0 && has_values;
    out += fmt::format("{:>{}} {}{}\n", labelled ? labels[static_cast<size_t>(which)] : "", margin,
                       labelled ? signs.tick : signs.vertical, canvas.row(row, options));
  }
  out += fmt::format("{:>{}} {}", "", margin, signs.corner);
  for (bool nan : nan_at) out += nan ? signs.nan : signs.horizontal;
  const std::string from = label(xs.low);
  const std::string to = label(xs.high);
  const int room = columns - static_cast<int>(from.size() + to.size());
  out += fmt::format("\n{:>{}}  {}", "", margin, from);
  if (room >= 1) {
    const std::string name =
        room > 4 ? cut_to_width(printable(options.x_label), room - 2) : std::string();
    const int left = (room - text_width(name)) / 2;
    out += fmt::format("{:{}}{}{:{}}{}", "", left, name, "", room - text_width(name) - left, to);
  }
  out += '\n';
  out += legend_of(series, options, dots);
  if (any_nan || any_infinity) {
    out += "  ";
    if (any_nan) out += fmt::format("{} NaN  ", signs.nan);
    if (any_infinity) out += fmt::format("{} infinity  {} -infinity", signs.up, signs.down);
    out.erase(out.find_last_not_of(' ') + 1);
    out += '\n';
  }
  return out;
}

}  // namespace smd::cli
