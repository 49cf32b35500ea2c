#pragma once

// One pass over a tensor: feeds each block, while it is in the cache, to the loops that the asked
// reductions need and keeps what they return. One thread at a time.

#include <cstdint>
#include <span>

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/spread.h"
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
 public:
  // Borrows the kernels.
  Pass(const Kernels& kernels, const PassOptions& options);

  // `block` has at least one element and at most kBlockElements.
  void add(std::span<const T> block);

  // What the blocks so far come to; of their absolute values if `abs`.
  Totals totals(bool abs) const;
  const SpecialCounts& special() const { return special_; }

  // Zero, or the power of two by which the elements must be multiplied before their squares fit
  // into float64: then the sums of totals() are to be taken from a second pass.
  int needed_exponent() const;

 private:
  static constexpr bool kFloating = std::is_floating_point_v<T>;

  void add_extrema(std::span<const T> block);
  template <typename Real>
  void add_moments(const ElementKernels<Real>& kernels, const Real* block, size_t count);
  void add_product(std::span<const T> block);
  double product() const;

  const Kernels& kernels_;
  const PassOptions options_;
  const Needs needs_;
  int64_t count_ = 0;
  Extrema<T> extrema_{};  // of all blocks, and of the last one
  Extrema<T> latest_{};
  Moments moments_;
  Spread spread_, abs_spread_;
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
