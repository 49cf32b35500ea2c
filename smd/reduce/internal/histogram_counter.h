#pragma once

// Counts elements by bucket, a block at a time, while the block is in the cache. One thread at a
// time. Large: about 50 KB.

#include <array>
#include <cstdint>
#include <span>

#include "smd/reduce/histogram.h"
#include "smd/reduce/internal/kernels.h"

namespace smd::internal {

class HistogramCounter final {
 public:
  // Borrows the kernels.
  explicit HistogramCounter(const Kernels& kernels) : kernels_(kernels) {}

  // T is one of the types that compute: float, double, int32_t, int64_t, uint64_t. `block` has at
  // least one element and at most kBlockElements.
  template <typename T>
  void add(std::span<const T> block);

  // Reuses the memory of `out`.
  void finish(Histogram& out) const;

 private:
  // Below the first bound, the 1548 buckets, above the last bound or not a number.
  static constexpr size_t kCounters = 1550;
  // Neighbours count apart: adding twice to one counter waits for the first.
  static constexpr size_t kWays = 4;

  template <typename T>
  void count(std::span<const T> block);
  template <typename T>
  void take_sums(std::span<const T> block);

  const Kernels& kernels_;
  Histogram sums_;
  std::array<std::array<int64_t, kCounters>, kWays> counters_{};
};

}  // namespace smd::internal
