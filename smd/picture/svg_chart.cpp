#include "smd/picture/svg_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/picture/interval.h"
#include "smd/picture/markup.h"

namespace smd {
namespace {

constexpr int kLeft = 64;
constexpr int kRight = 12;
constexpr int kTop = 28;
constexpr int kBottom = 34;
constexpr int kLegendRow = 16;
constexpr int kColors = 6;
constexpr int kSignWidth = 8;
constexpr size_t kMostTicks = 20;
constexpr double kLeastLog = 1e-300;
constexpr double kLogDecades = 3;

constexpr std::string_view kStyle =
    ".chart{color:#1f2328;font:12px system-ui,sans-serif}"
    ".chart text{fill:currentColor;stroke:none}"
    ".chart .title{font-weight:600}"
    ".chart .grid{stroke:currentColor;stroke-opacity:.15}"
    ".chart .axis{stroke:currentColor;stroke-opacity:.5}"
    ".chart .curve{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    ".chart .dot{stroke:none}"
    ".chart .bar{fill:#0969da}"
    ".chart .threshold{stroke:#bf8700;stroke-dasharray:6 4}"
    ".chart .mark,.chart .special{stroke:#cf222e;stroke-width:1.4}"
    ".chart .mark{stroke-dasharray:2 3}"
    ".chart text.mark{fill:#cf222e;stroke:none}"
    ".chart .s0{stroke:#0969da}.chart .s1{stroke:#bc4c00}.chart .s2{stroke:#1a7f37}"
    ".chart .s3{stroke:#8250df}.chart .s4{stroke:#0a7b83}.chart .s5{stroke:#9a6700}"
    "@media(prefers-color-scheme:dark){.chart{color:#e6edf3}"
    ".chart .mark,.chart .special{stroke:#ff7b72}.chart text.mark{fill:#ff7b72}"
    ".chart .threshold{stroke:#e3b341}.chart .bar{fill:#58a6ff}"
    ".chart .s0{stroke:#58a6ff}.chart .s1{stroke:#f0883e}.chart .s2{stroke:#56d364}"
    ".chart .s3{stroke:#bc8cff}.chart .s4{stroke:#39c5cf}.chart .s5{stroke:#e3b341}}";

// An axis: numbers to pixels, and where ticks stand.
struct Axis {
  Interval numbers{};  // their logarithms if it is a logarithmic axis
  int first_pixel = 0;
  int last_pixel = 1;
  bool is_log = false;

  double shown(double value) const {
    return is_log ? std::log10(std::max(value, kLeastLog)) : value;
  }
  double pixel(double value) const {
    const double part = std::clamp(numbers.part(shown(value)), 0.0, 1.0);
    return first_pixel + part * (last_pixel - first_pixel);
  }
  // Values of ticks: 1, 2 or 5 times a power of ten apart.
  std::vector<double> ticks(int most) const {
    const double raw = numbers.half_length() / most * 2;
    const double power = std::pow(10, std::floor(std::log10(raw)));
    const double factor = raw / power;
    double step = (factor <= 1 ? 1 : factor <= 2 ? 2 : factor <= 5 ? 5 : 10) * power;
    if (is_log) step = std::max(1.0, std::ceil(step));
    std::vector<double> out;
    const double first = std::ceil(numbers.low / step - 1e-9);
    for (double i = first; i * step <= numbers.high + step * 1e-9; ++i) {
      // Zero is added as minus zero would be shown with its sign.
      const double tick = is_log ? std::pow(10, i * step) : i * step + 0.0;
      if (!std::isfinite(tick) || out.size() == kMostTicks) break;
      out.push_back(tick);
    }
    return out;
  }
};

Axis axis_of(Interval range, bool is_log, int first_pixel, int last_pixel, double margin) {
  Axis axis{.first_pixel = first_pixel, .last_pixel = last_pixel, .is_log = is_log};
  if (range.empty()) range = {is_log ? 1.0 : 0.0, is_log ? 10.0 : 1.0};
  Interval& numbers = axis.numbers;
  numbers = {axis.shown(range.low), axis.shown(range.high)};
  if (numbers.half_length() < kLeastLog) {
    numbers.widen(is_log || std::abs(numbers.low) < kLeastLog ? 1 : std::abs(numbers.low) / 2);
  } else {
    numbers.widen(numbers.half_length() * (2 * margin));
  }
  return axis;
}

// So that ten million points make a picture of some kilobytes: of each pixel column the first, the
// lowest, the highest and the last.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points,
                                               const Axis& x) {
  const auto columns = static_cast<size_t>(x.last_pixel - x.first_pixel);
  if (points.size() <= 4 * columns) return points;
  std::vector<std::pair<double, double>> out;
  for (size_t first = 0; first < points.size();) {
    const int column = static_cast<int>(x.pixel(points[first].first));
    size_t end = first;
    size_t low = first;
    size_t high = first;
    while (end < points.size() && static_cast<int>(x.pixel(points[end].first)) == column) {
      if (points[end].second < points[low].second) low = end;
      if (points[end].second > points[high].second) high = end;
      ++end;
    }
    std::vector<size_t> kept = {first, low, high, end - 1};
    std::ranges::sort(kept);
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (size_t i : kept) out.push_back(points[i]);
    first = end;
  }
  return out;
}

class Picture final {
 public:
  Picture(const std::vector<PlotLine>& series, const SvgOptions& options)
      : series_(series), options_(options) {
    legend_rows_ = series.size() > 1 ? static_cast<int>(series.size()) : 0;
    height_ = options.height + legend_rows_ * kLegendRow;
    Interval xs;
    Interval ys;
    for (const PlotLine& one : series) {
      for (const auto& [x, y] : one.points) {
        if (!std::isfinite(x)) continue;
        xs.add(x);
        if (std::isfinite(y) && (!options.log || y > 0)) ys.add(y);
      }
    }
    if (options.mark && std::isfinite(*options.mark)) xs.add(*options.mark);
    shows_threshold_ = fits(ys);
    if (shows_threshold_) ys.add(*options.threshold);
    x_ = axis_of(xs, false, kLeft, options.width - kRight, 0);
    y_ = axis_of(ys, options.log, options.height - kBottom, kTop, 0.06);
  }

  std::string text() {
    const std::string title = escaped(options_.title);
    out_ = fmt::format(
        "<svg{3} class=\"chart\" role=\"img\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\"><title>{2}</title>\n",
        options_.width, height_, title,
        options_.is_file ? " xmlns=\"http://www.w3.org/2000/svg\"" : "");
    if (options_.is_file) out_ += fmt::format("<style>{}</style>\n", kStyle);
    out_ += fmt::format("<text class=\"title\" x=\"{}\" y=\"16\">{}</text>\n", kLeft, title);
    axes();
    if (shows_threshold_) threshold();
    for (size_t i = 0; i < series_.size(); ++i) curve(series_[i], i);
    if (options_.mark) mark();
    legend();
    return out_ + "</svg>\n";
  }

 private:
  // A threshold that the numbers do not come near to would squeeze them into a line.
  bool fits(const Interval& ys) const {
    if (!options_.threshold || !std::isfinite(*options_.threshold)) return false;
    const double threshold = *options_.threshold;
    if (options_.log) return threshold > 0;
    if (ys.empty()) return true;
    const double span = std::max(ys.half_length(), std::abs(ys.high) / 20);
    return threshold / 2 >= ys.low / 2 - 10 * span && threshold / 2 <= ys.high / 2 + 10 * span;
  }

  void axes() {
    for (double tick : y_.ticks(5)) {
      const double y = y_.pixel(tick);
      out_ += fmt::format(
          "<path class=\"grid\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:.4g}</text>\n",
          kLeft, y, options_.width - kRight, kLeft - 6, y + 4, tick);
    }
    const int floor = options_.height - kBottom;
    out_ += fmt::format("<path class=\"axis\" fill=\"none\" d=\"M{} {}V{}H{}\"/>\n", kLeft, kTop,
                        floor, options_.width - kRight);
    for (double tick : x_.ticks(8)) {
      if (options_.whole_steps && tick != std::floor(tick)) continue;
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.10g}</text>\n",
                          x_.pixel(tick), floor + 15, tick);
    }
    out_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n",
                        options_.width - kRight, floor + 29, escaped(options_.x_label));
    if (options_.y_label.empty()) return;
    out_ += fmt::format(
        "<text transform=\"translate(12 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
        (kTop + floor) / 2, escaped(options_.y_label));
  }

  void threshold() {
    const double y = y_.pixel(*options_.threshold);
    out_ += fmt::format(
        "<path class=\"threshold\" d=\"M{} {:.1f}H{}\"/><text x=\"{}\" y=\"{:.1f}\" "
        "text-anchor=\"end\">threshold {:.4g}</text>\n",
        kLeft, y, options_.width - kRight, options_.width - kRight - 4, y - 4, *options_.threshold);
  }

  void curve(const PlotLine& one, size_t number) {
    std::vector<std::pair<double, double>> piece;
    const auto flush = [&] {
      line(thinned(piece, x_), number);
      piece.clear();
    };
    double last_special = -kSignWidth;
    for (const auto& [x, y] : one.points) {
      if (!std::isfinite(x)) continue;
      if (std::isfinite(y)) {
        piece.emplace_back(x, y);
        continue;
      }
      flush();
      const double at = x_.pixel(x);
      if (at - last_special < kSignWidth) continue;  // one sign for many
      last_special = at;
      special(at, y);
    }
    flush();
  }

  void line(const std::vector<std::pair<double, double>>& points, size_t number) {
    if (points.empty()) return;
    const auto color = number % kColors;
    std::string path;
    for (const auto& [x, y] : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x_.pixel(x), y_.pixel(y));
    }
    // A single point is a line to itself, which round ends make visible.
    if (points.size() == 1) path += "h0";
    out_ += fmt::format(
        "<path class=\"curve s{}\"{} d=\"{}\"/>\n", color,
        points.size() == 1 ? " stroke-linecap=\"round\" style=\"stroke-width:5\"" : "", path);
  }

  void special(double x, double y) {
    const int floor = options_.height - kBottom;
    if (std::isnan(y)) {
      out_ += fmt::format("<path class=\"special\" d=\"M{0:.1f} {1}l6 6m0 -6l-6 6\"/>\n", x - 3,
                          floor - 8);
      return;
    }
    const bool is_up = y > 0;
    out_ += fmt::format("<path class=\"special\" fill=\"none\" d=\"M{:.1f} {}l4 {}l4 {}\"/>\n",
                        x - 4, is_up ? kTop + 6 : floor - 7, is_up ? -5 : 5, is_up ? 5 : -5);
  }

  void mark() {
    const double x = x_.pixel(*options_.mark);
    const bool is_right = x > options_.width / 2.0;
    out_ += fmt::format(
        "<path class=\"mark\" d=\"M{0:.1f} {1}V{2}\"/><text class=\"mark\" x=\"{3:.1f}\" y=\"{4}\" "
        "text-anchor=\"{5}\">{6}</text>\n",
        x, kTop, options_.height - kBottom, is_right ? x - 4 : x + 4, kTop + 12,
        is_right ? "end" : "start", escaped(options_.mark_label));
  }

  void legend() {
    for (int i = 0; i < legend_rows_; ++i) {
      const int y = options_.height + i * kLegendRow;
      out_ += fmt::format(
          "<path class=\"curve s{}\" d=\"M{} {}h18\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
          i % kColors, kLeft, y, kLeft + 24, y + 4, escaped(series_[static_cast<size_t>(i)].name));
    }
  }

  const std::vector<PlotLine>& series_;
  const SvgOptions& options_;
  int legend_rows_ = 0;
  int height_ = 0;
  bool shows_threshold_ = false;
  Axis x_;
  Axis y_;
  std::string out_;
};

}  // namespace

std::string_view svg_style() { return kStyle; }

std::string draw_svg(const std::vector<PlotLine>& series, const SvgOptions& options) {
  return Picture(series, options).text();
}

bool suits_log_axis(const std::vector<PlotLine>& series) {
  Interval range;
  for (const PlotLine& one : series) {
    for (const auto& [x, y] : one.points) {
      if (!std::isfinite(y) || y == 0) continue;
      if (y < 0) return false;
      range.add(y);
    }
  }
  return !range.empty() && std::log10(range.high) - std::log10(range.low) > kLogDecades;
}

}  // namespace smd
