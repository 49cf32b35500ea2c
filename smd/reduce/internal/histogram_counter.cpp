#include "smd/reduce/internal/histogram_counter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace smd {
namespace {

// Above zero, as TensorBoard's writers compute them.
std::vector<double> positive_bounds() {
  constexpr double kFirst = 1e-12;
  constexpr double kEnd = 1e20;
  constexpr double kGrowth = 1.1;
  std::vector<double> bounds;
  for (double bound = kFirst; bound < kEnd; bound *= kGrowth) bounds.push_back(bound);
  return bounds;
}

}  // namespace

const std::vector<double>& histogram_bounds() {
  static const auto all = [] {
    const std::vector<double> positive = positive_bounds();
    std::vector<double> bounds;
    for (size_t i = positive.size(); i-- > 0;) bounds.push_back(-positive[i]);
    bounds.push_back(0);
    bounds.insert(bounds.end(), positive.begin(), positive.end());
    return bounds;
  }();
  return all;
}

namespace internal {
namespace {

// Numbers that share sign, exponent and the first bits of the mantissa lie in one cell, which is
// narrower than a bucket, so that at most one bound lies in it: a look at the cell and one
// comparison find the counter.
template <typename Real>
struct Cell {
  Real bound = 0;        // from here on the next counter counts; NaN: there is none
  uint32_t counter = 0;  // of what is below the bound
};

constexpr int kCellBits = 4;

// For float64 only the cells between 2^-41 < 1e-12 and 2^68 > 1e20 have one of their own: there are
// no bounds beyond. For float32 all have.
template <typename Real>
struct Cells;

template <>
struct Cells<double> {
  static constexpr int kShift = 52 - kCellBits;
  static constexpr int kBias = 1023;
  static constexpr int64_t kFirst = int64_t{kBias - 41} << kCellBits;
  static constexpr int64_t kLast = int64_t{kBias + 68} << kCellBits;
  static constexpr size_t kSize = kLast - kFirst + 1;  // of each sign

  static size_t of(double x) {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    const auto bits = std::bit_cast<uint64_t>(x);
    const auto cell = static_cast<int64_t>((bits & ~kSign) >> kShift);
    const auto place = std::clamp(cell, kFirst, kLast) - kFirst;
    return static_cast<size_t>(place) + (bits >> 63) * kSize;
  }
};

template <>
struct Cells<float> {
  static constexpr int kShift = 23 - kCellBits;
  static constexpr size_t kSize = size_t{1} << (31 - kShift);

  static size_t of(float x) { return std::bit_cast<uint32_t>(x) >> kShift; }
};

// The least Real that is not less than the bound.
template <typename Real>
Real at_least(double bound) {
  const auto near = static_cast<Real>(bound);
  return near < bound ? std::nextafter(near, std::numeric_limits<Real>::infinity()) : near;
}

template <typename Real>
using CellTable = std::array<Cell<Real>, 2 * Cells<Real>::kSize>;

template <typename Real>
CellTable<Real> make_cells() {
  constexpr size_t kSize = Cells<Real>::kSize;
  const std::vector<double>& bounds = histogram_bounds();
  CellTable<Real> cells;
  uint32_t counter = 0;
  size_t next = 0;  // the first bound that no cell has
  // Ascending order of the numbers: negative cells from the last to the first, then the others.
  for (size_t i = 0; i < 2 * kSize; ++i) {
    const size_t place = i < kSize ? 2 * kSize - 1 - i : i - kSize;
    cells[place] = {.bound = std::numeric_limits<Real>::quiet_NaN(), .counter = counter};
    if (next == bounds.size()) continue;
    // Zero is the end of the negative numbers, so that -0 counts as 0.
    const Real bound = bounds[next] == 0 ? Real{-0.0} : at_least<Real>(bounds[next]);
    if (Cells<Real>::of(bound) != place) continue;
    cells[place].bound = bound;
    ++counter;
    ++next;
  }
  // The last bound belongs to the last bucket.
  Real& last = cells[Cells<Real>::of(at_least<Real>(bounds.back()))].bound;
  if (static_cast<double>(last) == bounds.back()) {
    last = std::nextafter(last, std::numeric_limits<Real>::infinity());
  }
  return cells;
}

template <typename Real>
const CellTable<Real>& cells() {
  static const CellTable<Real> table = make_cells<Real>();
  return table;
}

}  // namespace

template <typename T>
void HistogramCounter::count(std::span<const T> block) {
  using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
  const CellTable<Real>& table = cells<Real>();
  const auto add_one = [&](T element, std::array<int64_t, kCounters>& counters) {
    const auto x = static_cast<Real>(element);
    const Cell<Real>& cell = table[Cells<Real>::of(x)];
    ++counters[cell.counter + (x >= cell.bound ? 1u : 0u)];
  };
  size_t i = 0;
  for (; i + kWays <= block.size(); i += kWays) {
    for (size_t way = 0; way < kWays; ++way) add_one(block[i + way], counters_[way]);
  }
  for (; i < block.size(); ++i) add_one(block[i], counters_[0]);
}

template <typename T>
void HistogramCounter::take_sums(std::span<const T> block) {
  if (block.empty()) return;
  const Survey<T> survey = kernels_.of<T>().survey_values(block.data(), block.size(), {});
  if constexpr (std::is_floating_point_v<T>) {
    // The extrema mean nothing if there is a NaN, and then the sum is one.
    if (std::isnan(survey.plain.first) || std::isinf(survey.extrema.min) ||
        std::isinf(survey.extrema.max)) {
      alignas(64) T finite[kBlockElements];
      const auto end =
          std::copy_if(block.begin(), block.end(), finite, [](T x) { return std::isfinite(x); });
      // A sum of finite float64 elements may still overflow.
      if (static_cast<size_t>(end - finite) < block.size()) {
        return take_sums(std::span<const T>(finite, end));
      }
    }
  }
  const auto min = static_cast<double>(survey.extrema.min);
  const auto max = static_cast<double>(survey.extrema.max);
  sums_.min = sums_.finite_count == 0 ? min : std::min(sums_.min, min);
  sums_.max = sums_.finite_count == 0 ? max : std::max(sums_.max, max);
  sums_.sum += survey.plain.first;
  sums_.sum_squares += survey.plain.second;
  sums_.finite_count += static_cast<int64_t>(block.size());
}

template <typename T>
void HistogramCounter::add(std::span<const T> block) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    alignas(64) double reals[kBlockElements];
    if constexpr (std::is_signed_v<T>) {
      kernels_.from_int64(block.data(), block.size(), reals);
    } else {
      kernels_.from_uint64(block.data(), block.size(), reals);
    }
    add(std::span<const double>(reals, block.size()));
  } else {
    count(block);
    take_sums(block);
    sums_.count += static_cast<int64_t>(block.size());
  }
}

void HistogramCounter::finish(Histogram& out) const {
  std::vector<double> limits = std::move(out.limits);
  std::vector<double> counts = std::move(out.counts);
  limits.clear();
  counts.clear();
  out = sums_;
  const auto in_bucket = [&](size_t bucket) {
    int64_t sum = 0;
    for (const auto& way : counters_) sum += way[bucket + 1];
    return sum;
  };
  constexpr size_t kBuckets = kCounters - 2;
  size_t first = 0;
  while (first < kBuckets && in_bucket(first) == 0) ++first;
  if (first < kBuckets) {
    size_t end = kBuckets;
    while (in_bucket(end - 1) == 0) --end;
    const std::vector<double>& bounds = histogram_bounds();
    limits.push_back(bounds[first]);
    counts.push_back(0);
    for (size_t bucket = first; bucket < end; ++bucket) {
      limits.push_back(bounds[bucket + 1]);
      counts.push_back(static_cast<double>(in_bucket(bucket)));
    }
  }
  out.limits = std::move(limits);
  out.counts = std::move(counts);
}

template void HistogramCounter::add(std::span<const float> block);
template void HistogramCounter::add(std::span<const double> block);
template void HistogramCounter::add(std::span<const int32_t> block);
template void HistogramCounter::add(std::span<const int64_t> block);
template void HistogramCounter::add(std::span<const uint64_t> block);

}  // namespace internal
}  // namespace smd
