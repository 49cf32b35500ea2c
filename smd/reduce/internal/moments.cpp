#include "smd/reduce/internal/moments.h"

#include <bit>
#include <cstdint>

namespace smd::internal {

// Keeps the sign, the exponent and seven bits of the mantissa.
double Moments::shortened(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & ~((uint64_t{1} << 45) - 1));
}

void Moments::merge(double n, double centre, const ShiftedSums& sums) {
  if (count_ == 0) centre_ = centre;
  const double delta = (centre - centre_) + (sums.first / n - offset_);
  const double all = count_ + n;
  squared_deviations_ += spread_of(sums, n) + delta * delta * (count_ * n / all);
  offset_ += delta * (n / all);
  count_ = all;
}

void Moments::take_sums(double n, const ShiftedSums& sums) {
  const double total = n * shift_ + sums.first;
  total_ += total;
  squares_ += sums.second + shift_ * (sums.first + total);
}

}  // namespace smd::internal
