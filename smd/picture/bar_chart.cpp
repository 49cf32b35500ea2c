#include "smd/picture/bar_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/picture/markup.h"

namespace smd {
namespace {

constexpr double kWidth = 640;
constexpr double kTitleRoom = 30;
constexpr double kStep = 22;
constexpr double kLabelRoom = 180;
constexpr double kValueRoom = 80;  // for the value of the longest bar

}  // namespace

std::string draw_svg(const BarChart& chart) {
  double most = 0;
  for (const ChartBar& bar : chart.bars) {
    if (std::isfinite(bar.value)) most = std::max(most, bar.value);
  }
  const double height = kTitleRoom + kStep * static_cast<double>(chart.bars.size()) + 24;
  const std::string title = escaped(chart.title);
  std::string out = fmt::format(
      "<svg class=\"chart\" role=\"img\" width=\"{0}\" "
      "height=\"{1}\" viewBox=\"0 0 {0} {1}\"><title>{2}</title>\n"
      "<text class=\"title\" x=\"12\" y=\"16\">{2}</text>\n",
      kWidth, height, title);
  const double room = kWidth - kLabelRoom - kValueRoom;
  double y = kTitleRoom;
  for (const ChartBar& bar : chart.bars) {
    const double part =
        most > 0 && bar.value > 0 && std::isfinite(bar.value) ? bar.value / most : 0;
    out += fmt::format(
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>"
        "<rect class=\"bar\" x=\"{}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"15\"/>"
        "<text x=\"{:.2f}\" y=\"{:.1f}\">{:.5g}</text>\n",
        kLabelRoom - 6, y + 12, escaped(bar.name), kLabelRoom, y, part * room,
        kLabelRoom + part * room + 5, y + 12, bar.value);
    y += kStep;
  }
  return out + fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n</svg>\n",
                           kLabelRoom + room / 2, y + 14, escaped(chart.value_label));
}

}  // namespace smd
