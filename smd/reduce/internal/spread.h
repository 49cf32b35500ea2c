#pragma once

// Σ(x − mean)² of a whole from those of its parts, by the formula of Chan, Golub and LeVeque
// (1983): never a difference of large sums. Plain value.

#include <cstddef>

namespace smd::internal {

class Spread final {
 public:
  void merge(size_t count, double mean, double squared_deviations) {
    const auto n = static_cast<double>(count);
    const double delta = mean - mean_;
    const double all = count_ + n;
    squared_deviations_ += squared_deviations;
    if (count_ > 0) squared_deviations_ += delta * delta * (count_ * n / all);
    mean_ += delta * (n / all);
    count_ = all;
  }

  double squared_deviations() const { return squared_deviations_; }

 private:
  double count_ = 0;
  double mean_ = 0;
  double squared_deviations_ = 0;
};

}  // namespace smd::internal
