#pragma once

// Σx, Σx² and Σ(x − mean)² of a tensor from the shifted sums of its blocks. Plain value.
//
// Blocks whose mean is far from zero, compared with how far their elements spread, are summed about
// a shift near it, so that Σ(x − mean)² is never a difference of large numbers; blocks are joined
// by the formula of Chan, Golub and LeVeque (1983). The shift has so few bits that sums of integers
// and of other short numbers stay exact.

#include <cstddef>

#include "smd/reduce/internal/kernels.h"

namespace smd::internal {

class Moments final {
 public:
  // The shift to use for the next block: zero, or the mean of the last, rounded.
  double shift() const { return shift_; }

  // Adds a block of `count` elements that was summed with shift(). If the block turned out to lie
  // far from the shift, recentred(mean) is asked for its sums about its mean.
  template <typename F>
  void add(size_t count, const ShiftedSums& sums, F&& recentred) {
    const auto n = static_cast<double>(count);
    const double mean = shift_ + sums.first / n;
    const double spread = spread_of(sums, n);
    if (kMostLoss * spread < sums.first * sums.first / n) {
      merge(n, mean, recentred(mean));
    } else {
      merge(n, shift_, sums);
    }
    take_sums(n, sums);
    shift_ = kMostLoss * spread < 2 * n * mean * mean ? shortened(mean) : 0;
  }

  double total() const { return total_; }
  double squares() const { return squares_; }
  double squared_deviations() const { return squared_deviations_; }

 private:
  // How many times the sought difference its terms may be: six bits of 53 are lost at most.
  static constexpr double kMostLoss = 64;

  static double spread_of(const ShiftedSums& sums, double n) {
    const double spread = sums.second - sums.first * sums.first / n;
    return spread < 0 ? 0 : spread;
  }
  // Joins Σ(x − mean)² of a block whose sums are about `centre`.
  void merge(double n, double centre, const ShiftedSums& sums);
  void take_sums(double n, const ShiftedSums& sums);
  // With so few bits that multiples of it stay exact.
  static double shortened(double x);

  double shift_ = 0;
  double count_ = 0;
  // The mean is centre_ + offset_: far from zero, one float64 would not tell neighbours apart.
  double centre_ = 0;
  double offset_ = 0;
  double total_ = 0;
  double squares_ = 0;
  double squared_deviations_ = 0;
};

}  // namespace smd::internal
