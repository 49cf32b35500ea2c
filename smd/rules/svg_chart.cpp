#include "smd/rules/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace smd::rules {
namespace {

constexpr double kWidth = 640;
constexpr double kHeight = 280;
constexpr double kLeft = 70;
constexpr double kRight = 16;
constexpr double kTop = 30;
constexpr double kBottom = 46;
constexpr size_t kMostPoints = 2000;
constexpr double kBarStep = 22;
constexpr double kBarLeft = 180;

constexpr std::array<std::string_view, 10> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                                       "#9467bd", "#8c564b", "#e377c2", "#7f7f7f",
                                                       "#bcbd22", "#17becf"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double x) {
    if (!std::isfinite(x)) return;
    low = std::min(low, x);
    high = std::max(high, x);
  }
  // So that it has a width.
  void widen() {
    if (!(low <= high)) *this = {0, 1};
    if (low == high) {
      const double margin = low == 0 ? 1 : std::fabs(low) / 10;
      low -= margin;
      high += margin;
    }
  }
};

std::string start(double height, std::string_view title) {
  return fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "<text class=\"title\" x=\"{}\" y=\"18\">{}</text>\n",
      kWidth, height, escape_html(title), kLeft, escape_html(title));
}

std::string path_of(const ChartLine& line, const auto& to_x, const auto& to_y,
                    std::string_view colour) {
  const size_t stride = line.x.size() / kMostPoints + 1;
  std::string path;
  std::string dots;
  size_t run = 0;  // points of the piece that is being drawn
  std::string last;
  const auto end_piece = [&] {
    // A piece of one point has no length.
    if (run == 1) dots += last;
    run = 0;
  };
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (i % stride != 0 && i + 1 != line.x.size()) continue;
    if (!std::isfinite(line.x[i]) || !std::isfinite(line.y[i])) {
      end_piece();
      continue;
    }
    const double x = to_x(line.x[i]);
    const double y = to_y(line.y[i]);
    path += fmt::format("{}{:.2f} {:.2f}", run == 0 ? "M" : "L", x, y);
    last = fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"3\" fill=\"{}\"/>\n", x, y, colour);
    ++run;
  }
  end_piece();
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", path,
                     colour) +
         dots;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::vector<double> tick_numbers(double low, double high, int count) {
  const double rough = (high - low) / count;
  if (!(rough > 0) || !std::isfinite(rough)) return {low};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double nice : {1.0, 2.0, 5.0}) {
    if (nice * power >= rough) {
      step = nice * power;
      break;
    }
  }
  std::vector<double> out;
  for (double i = std::ceil(low / step); i * step <= high + step * 1e-9; ++i) {
    out.push_back(i == 0 ? 0 : i * step);
  }
  return out;
}

std::string draw(const LineChart& chart) {
  Range x;
  Range y;
  for (const ChartLine& line : chart.lines) {
    for (size_t i = 0; i < line.x.size(); ++i) {
      if (!std::isfinite(line.y[i])) continue;
      x.add(line.x[i]);
      y.add(line.y[i]);
    }
  }
  x.widen();
  y.widen();
  const auto to_x = [&](double v) {
    return kLeft + (v - x.low) / (x.high - x.low) * (kWidth - kLeft - kRight);
  };
  const auto to_y = [&](double v) {
    return kHeight - kBottom - (v - y.low) / (y.high - y.low) * (kHeight - kTop - kBottom);
  };
  const size_t per_row = 4;
  const size_t legend_rows = (chart.lines.size() + per_row - 1) / per_row;
  std::string out = start(kHeight + 18 * static_cast<double>(legend_rows), chart.title);
  for (double tick : tick_numbers(y.low, y.high, 5)) {
    out += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.2f}\" y2=\"{:.2f}\"/>"
        "<text class=\"tick\" x=\"{}\" y=\"{:.2f}\" text-anchor=\"end\">{:g}</text>\n",
        kLeft, kWidth - kRight, to_y(tick), to_y(tick), kLeft - 6, to_y(tick) + 4, tick);
  }
  for (double tick : tick_numbers(x.low, x.high, 8)) {
    out += fmt::format(
        "<text class=\"tick\" x=\"{:.2f}\" y=\"{}\" text-anchor=\"middle\">{:g}</text>\n",
        to_x(tick), kHeight - kBottom + 16, tick);
  }
  out += fmt::format(
      "<text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n"
      "<text class=\"axis\" transform=\"translate(14 {}) rotate(-90)\" text-anchor=\"middle\">{}"
      "</text>\n",
      (kLeft + kWidth - kRight) / 2, kHeight - 12, escape_html(chart.x_label),
      (kTop + kHeight - kBottom) / 2, escape_html(chart.y_label));
  for (size_t i = 0; i < chart.lines.size(); ++i) {
    const std::string_view colour = kColours[i % kColours.size()];
    out += path_of(chart.lines[i], to_x, to_y, colour);
    const double at = kLeft + static_cast<double>(i % per_row) * (kWidth - kLeft) / per_row;
    const double row = kHeight + 4 + 18 * static_cast<double>(i / per_row);
    out += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"12\" height=\"4\" fill=\"{}\"/>"
        "<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        at, row, colour, at + 17, row + 6, escape_html(chart.lines[i].name));
  }
  return out + "</svg>\n";
}

std::string draw(const BarChart& chart) {
  double most = 0;
  for (const ChartBar& bar : chart.bars) {
    if (std::isfinite(bar.value)) most = std::max(most, bar.value);
  }
  const double height = kTop + kBarStep * static_cast<double>(chart.bars.size()) + 24;
  std::string out = start(height, chart.title);
  const double room = kWidth - kBarLeft - 80;
  double y = kTop;
  for (const ChartBar& bar : chart.bars) {
    const double part =
        most > 0 && bar.value > 0 && std::isfinite(bar.value) ? bar.value / most : 0;
    out += fmt::format(
        "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
        "<rect x=\"{}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"15\" fill=\"{}\"/>"
        "<text class=\"tick\" x=\"{:.2f}\" y=\"{:.1f}\">{:.5g}</text>\n",
        kBarLeft - 6, y + 12, escape_html(bar.name), kBarLeft, y, part * room, kColours[0],
        kBarLeft + part * room + 5, y + 12, bar.value);
    y += kBarStep;
  }
  out +=
      fmt::format("<text class=\"axis\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                  kBarLeft + room / 2, y + 14, escape_html(chart.value_label));
  return out + "</svg>\n";
}

}  // namespace smd::rules
