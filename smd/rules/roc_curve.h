#pragma once

// How well scores tell two classes apart, for every threshold. Plain value and a pure function.

#include <optional>
#include <span>
#include <vector>

namespace smd::rules {

struct RocCurve {
  struct Point {
    double false_positive_rate = 0;
    double true_positive_rate = 0;
    double threshold = 0;  // scores from here on count as positive
  };
  std::vector<Point> points;  // from (0, 0), whose threshold is infinite, to (1, 1)
  double auc = 0;             // the area below; equal scores count half
};

// Samples whose score is NaN are left out. nullopt: one of the classes has no samples.
std::optional<RocCurve> roc_curve(const std::vector<bool>& is_positive,
                                  std::span<const double> scores);

// At most `most` points, evenly chosen, with both ends.
std::vector<RocCurve::Point> thinned(const RocCurve& curve, size_t most);

}  // namespace smd::rules
