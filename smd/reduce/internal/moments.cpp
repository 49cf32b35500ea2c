#include "smd/reduce/internal/moments.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace smd::internal {
namespace {

// Keeps the sign, the exponent and seven bits of the mantissa.
double shortened(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & ~((uint64_t{1} << 45) - 1));
}

}  // namespace

void Moments::merge(double n, double centre, const ShiftedSums& sums) {
  if (count_ == 0) centre_ = centre;
  const double delta = (centre - centre_) + (sums.first / n - offset_);
  const double all = count_ + n;
  squared_deviations_ += spread_of(sums, n) + delta * delta * (count_ * n / all);
  offset_ += delta * (n / all);
  count_ = all;
}

void Moments::take_sums(double n, double mean, const ShiftedSums& sums) {
  const double total = n * shift_ + sums.first;
  total_ += total;
  squares_ += sums.second + shift_ * (sums.first + total);
  if (std::isfinite(mean)) shift_ = shortened(mean);
}

}  // namespace smd::internal
