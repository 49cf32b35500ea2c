#pragma once

// One pass over a tensor: feeds each block, while it is in the cache, to the loops that the asked
// reductions need and keeps what they return. One thread at a time.

#include <cstdint>
#include <span>
#include <type_traits>

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/moments.h"
#include "smd/reduce/internal/wrapping.h"
#include "smd/reduce/totals.h"

namespace smd::internal {

struct PassOptions {
  DType dtype = DType::float32;  // of the tensor, not of the blocks
  Needs plain = Needs::nothing;  // of the values
  Needs abs = Needs::nothing;    // of their absolute values
  bool count_special = false;
  int exponent = 0;  // the blocks hold the elements times two to this power
};

// T is one of the types that compute: float, double, int32_t, int64_t, uint64_t.
template <typename T>
class Pass final {
 private:
  static constexpr bool kFloating = std::is_floating_point_v<T>;
  // Whether a survey can read the elements as they are.
  static constexpr bool kSurveyed = kFloating || sizeof(T) == 4;

 public:
  static constexpr size_t kMostElements = kSurveyed ? kLongBlockElements : kBlockElements;

  // Borrows the kernels.
  Pass(const Kernels& kernels, const PassOptions& options);

  // `block` has at least one element and at most kMostElements.
  void add(std::span<const T> block);

  // What the blocks so far come to; of their absolute values if `abs`.
  Totals totals(bool abs) const;
  const SpecialCounts& special() const { return special_; }

  // Zero, or the exponent of the power of two by which the elements must be multiplied before their
  // squares fit into float64: then the sums of totals() are to be taken from a second pass.
  int needed_exponent() const;

 private:
  Extrema<T> extrema_of(std::span<const T> block) const;
  void take_extrema();
  // Sums the block, which Real can compute, and returns its extrema.
  template <typename Real>
  Extrema<Real> take_moments(std::span<const Real> block);
  void count_special(std::span<const T> block);
  void take_product(std::span<const T> block);
  double product() const;

  const Kernels& kernels_;
  const PassOptions options_;
  const Needs needs_;
  const bool complete_;  // absolute reductions need more than the values tell
  int64_t count_ = 0;
  Extrema<T> extrema_{};  // of all blocks, and of the last one
  Extrema<T> latest_{};
  Moments plain_, abs_;
  double magnitude_ = 0;  // Σ|x| unless complete
  Product product_;
  Wrapping wrapping_;
  SpecialCounts special_;
};

extern template class Pass<float>;
extern template class Pass<double>;
extern template class Pass<int32_t>;
extern template class Pass<int64_t>;
extern template class Pass<uint64_t>;

}  // namespace smd::internal
