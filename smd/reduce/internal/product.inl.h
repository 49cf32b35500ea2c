// Products that keep their exponent apart. Included once per instruction set by kernels.cpp.

#if defined(SMD_REDUCE_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SMD_REDUCE_PRODUCT_INL_H_
#undef SMD_REDUCE_PRODUCT_INL_H_
#else
#define SMD_REDUCE_PRODUCT_INL_H_
#endif

#include <type_traits>

#include "hwy/highway.h"
#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/lanes.inl.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

// A product per lane, its exponent taken out after every few factors.
class ProductLanes final {
  using Bits = hn::RebindToUnsigned<Wide>;
  static constexpr int64_t kBias = 1023;

 public:
  HWY_INLINE ProductLanes() : mantissa_(hn::Set(Wide(), 1.0)), exponent_(hn::Zero(Bits())) {}

  // Four float32 factors cannot leave the range of float64; float64 ones are taken apart first.
  template <typename T>
  HWY_INLINE void add(const T* from, size_t step) {
    multiply(hn::Mul(hn::Mul(factor(from), factor(from + step)),
                     hn::Mul(factor(from + 2 * step), factor(from + 3 * step))));
  }

  template <typename T>
  HWY_INLINE void add(const T* from) {
    multiply(factor(from));
  }

  HWY_INLINE void merge(const ProductLanes& other) {
    exponent_ = hn::Add(exponent_, other.exponent_);
    removed_ += other.removed_;
    multiply(other.mantissa_);
  }

  HWY_INLINE Product finish() const {
    const Wide wide;
    const Bits bits;
    HWY_ALIGN double mantissas[hn::MaxLanes(Wide())];
    HWY_ALIGN uint64_t exponents[hn::MaxLanes(Wide())];
    hn::Store(mantissa_, wide, mantissas);
    hn::Store(exponent_, bits, exponents);
    Product product;
    for (size_t lane = 0; lane < hn::Lanes(wide); ++lane) {
      product.merge({mantissas[lane], static_cast<int64_t>(exponents[lane]) - removed_ * kBias});
    }
    return product;
  }

 private:
  template <typename T>
  HWY_INLINE WideVec factor(const T* from) {
    const WideVec x = load_wide(from);
    return std::is_same_v<T, double> ? without_exponent(x) : x;
  }

  HWY_INLINE void multiply(WideVec x) { mantissa_ = without_exponent(hn::Mul(mantissa_, x)); }

  HWY_INLINE WideVec without_exponent(WideVec x) {
    const Wide wide;
    const Bits bits;
    exponent_ = hn::Add(exponent_, hn::ShiftRight<52>(hn::BitCast(bits, hn::Abs(x))));
    ++removed_;
    const auto keep = hn::Set(bits, 0x800fffffffffffffu);
    const auto one = hn::Set(bits, 0x3ff0000000000000u);
    return hn::BitCast(wide, hn::Or(hn::And(hn::BitCast(bits, x), keep), one));
  }

  WideVec mantissa_;
  hn::Vec<Bits> exponent_;
  int64_t removed_ = 0;  // how often an exponent, with its bias, went into exponent_
};

template <typename T>
Product product(const T* block, size_t count) {
  const size_t step = hn::Lanes(Wide());
  ProductLanes even, odd;
  size_t i = 0;
  for (; i + 8 * step <= count; i += 8 * step) {
    even.add(block + i, step);
    odd.add(block + i + 4 * step, step);
  }
  for (; i + step <= count; i += step) even.add(block + i);
  if (i < count) odd.add(Padded<T, Wide>(block + i, count - i, T{1}).lanes);
  even.merge(odd);
  return even.finish();
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#endif
