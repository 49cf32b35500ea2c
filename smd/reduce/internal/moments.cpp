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

void Moments::merge(double n, double mean, const ShiftedSums& sums, double spread) {
  const double total = n * shift_ + sums.first;
  const double all = count_ + n;
  const double delta = mean - mean_;
  squared_deviations_ += spread;
  if (count_ > 0) squared_deviations_ += delta * delta * (count_ * n / all);
  mean_ += delta * (n / all);
  count_ = all;
  total_ += total;
  squares_ += sums.second + shift_ * (sums.first + total);
  if (std::isfinite(mean)) shift_ = shortened(mean);
}

}  // namespace smd::internal
