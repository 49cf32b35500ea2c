#pragma once

// Sums and products of integers modulo 2^64, as NumPy computes them. Plain value.

#include <cstddef>
#include <cstdint>
#include <span>

namespace smd::internal {

class Wrapping final {
 public:
  template <typename T>
  void add(std::span<const T> values) {
    for (T x : values) {
      sum_ += bits(x);
      magnitude_ += x < 0 ? -bits(x) : bits(x);
    }
  }

  // Four independent products hide the latency of the multiplication. Zero, which comes with the
  // 64th even factor, stays.
  template <typename T>
  void multiply(std::span<const T> values) {
    if (product_ == 0) return;
    uint64_t lanes[4] = {1, 1, 1, 1};
    uint64_t signs = 0;
    size_t i = 0;
    for (; i + 4 <= values.size(); i += 4) {
      for (size_t lane = 0; lane < 4; ++lane) {
        lanes[lane] *= bits(values[i + lane]);
        signs ^= values[i + lane] < 0;
      }
    }
    for (; i < values.size(); ++i) {
      lanes[0] *= bits(values[i]);
      signs ^= values[i] < 0;
    }
    product_ *= lanes[0] * lanes[1] * lanes[2] * lanes[3];
    negative_ = negative_ != (signs != 0);
  }

  uint64_t sum(bool abs) const { return abs ? magnitude_ : sum_; }
  // Π|x| is Πx but for the sign, also modulo 2^64.
  uint64_t product(bool abs) const { return abs && negative_ ? -product_ : product_; }

 private:
  template <typename T>
  static uint64_t bits(T x) {
    return static_cast<uint64_t>(x);
  }

  uint64_t sum_ = 0;
  uint64_t magnitude_ = 0;
  uint64_t product_ = 1;
  bool negative_ = false;  // an odd number of negative factors
};

}  // namespace smd::internal
