#include "smd/rules/roc_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace smd::rules {

std::optional<RocCurve> roc_curve(const std::vector<bool>& is_positive,
                                  std::span<const double> scores) {
  std::vector<size_t> order;
  double positives = 0;
  double negatives = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) continue;
    order.push_back(i);
    ++(is_positive[i] ? positives : negatives);
  }
  if (positives == 0 || negatives == 0) return std::nullopt;
  std::ranges::sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  RocCurve out;
  out.points.push_back({0, 0, std::numeric_limits<double>::infinity()});
  double true_count = 0;
  double false_count = 0;
  for (size_t i = 0; i < order.size();) {
    const double score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i) {
      ++(is_positive[order[i]] ? true_count : false_count);
    }
    const RocCurve::Point next{false_count / negatives, true_count / positives, score};
    const RocCurve::Point& last = out.points.back();
    out.auc += (next.false_positive_rate - last.false_positive_rate) *
               (next.true_positive_rate + last.true_positive_rate) / 2;
    out.points.push_back(next);
  }
  return out;
}

std::vector<RocCurve::Point> thinned(const RocCurve& curve, size_t most) {
  if (curve.points.size() <= most || most < 2) return curve.points;
  std::vector<RocCurve::Point> out;
  for (size_t i = 0; i < most; ++i) {
    out.push_back(curve.points[i * (curve.points.size() - 1) / (most - 1)]);
  }
  return out;
}

}  // namespace smd::rules
