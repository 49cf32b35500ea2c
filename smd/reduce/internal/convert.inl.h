// Elements as a wider type, block by block. Included once per instruction set by kernels.cpp.

#if defined(SMD_REDUCE_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SMD_REDUCE_CONVERT_INL_H_
#undef SMD_REDUCE_CONVERT_INL_H_
#else
#define SMD_REDUCE_CONVERT_INL_H_
#endif

#include <cmath>

#include "hwy/highway.h"
#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/lanes.inl.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

// How one vector of elements is widened; From names the element, which for the small floats is not
// the type of its bits.
template <typename From, typename To>
struct Widen {
  using Bits = From;
  template <class D, class V>
  static HWY_INLINE auto apply(D to, V v) {
    return hn::PromoteTo(to, v);
  }
};

struct Float16 {};
template <>
struct Widen<Float16, float> {
  using Bits = uint16_t;
  template <class D, class V>
  static HWY_INLINE auto apply(D to, V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_NEON
    return hn::PromoteTo(to, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), v));
#else
    // Highway's stand-in for the missing instruction knows neither infinity nor NaN. The exponent
    // is corrected by a multiplication, which also makes subnormal numbers normal.
    const hn::RebindToUnsigned<D> bits;
    const auto half = hn::PromoteTo(bits, v);
    const auto magnitude = hn::ShiftLeft<13>(hn::And(half, hn::Set(bits, 0x7fffu)));
    const auto finite = hn::Mul(hn::BitCast(to, magnitude), hn::Set(to, 0x1p112f));
    const auto top = hn::IfThenElseZero(hn::Ge(finite, hn::Set(to, 65536.0f)),
                                        hn::BitCast(to, hn::Set(bits, 0x7f800000u)));
    const auto sign = hn::ShiftLeft<16>(hn::And(half, hn::Set(bits, 0x8000u)));
    return hn::Or(hn::Or(finite, top), hn::BitCast(to, sign));
#endif
  }
};

struct Bfloat16 {};
template <>
struct Widen<Bfloat16, float> {
  using Bits = uint16_t;
  template <class D, class V>
  static HWY_INLINE auto apply(D to, V v) {
    const hn::RebindToUnsigned<D> bits;
    return hn::BitCast(to, hn::ShiftLeft<16>(hn::PromoteTo(bits, v)));
  }
};

struct Boolean {};
template <>
struct Widen<Boolean, int32_t> {
  using Bits = uint8_t;
  template <class D, class V>
  static HWY_INLINE auto apply(D to, V v) {
    return hn::Min(hn::PromoteTo(to, v), hn::Set(to, 1));
  }
};

template <>
struct Widen<uint32_t, int64_t> {
  using Bits = uint32_t;
  template <class D, class V>
  static HWY_INLINE auto apply(D to, V v) {
    return hn::BitCast(to, hn::PromoteTo(hn::RebindToUnsigned<D>(), v));
  }
};

template <typename From, typename To>
void convert(const typename Widen<From, To>::Bits* from, size_t count, To* to) {
  using Bits = typename Widen<From, To>::Bits;
  const hn::ScalableTag<To> wide;
  const hn::Rebind<Bits, decltype(wide)> narrow;
  const size_t step = hn::Lanes(wide);
  size_t i = 0;
  for (; i + step <= count; i += step) {
    hn::StoreU(Widen<From, To>::apply(wide, hn::LoadU(narrow, from + i)), wide, to + i);
  }
  if (i < count) {
    const Padded<Bits, decltype(wide)> rest(from + i, count - i, Bits{0});
    HWY_ALIGN To lanes[hn::MaxLanes(wide)];
    hn::Store(Widen<From, To>::apply(wide, hn::LoadU(narrow, rest.lanes)), wide, lanes);
    std::memcpy(to + i, lanes, (count - i) * sizeof(To));
  }
}

template <typename From>
void to_double(const From* from, size_t count, double* to) {
  for (size_t i = 0; i < count; ++i) to[i] = static_cast<double>(from[i]);
}

// Two factors: the power of two itself need not be a float64.
inline void scale(const double* from, size_t count, int exponent, double* to) {
  const double first = std::ldexp(1.0, exponent / 2);
  const double second = std::ldexp(1.0, exponent - exponent / 2);
  for (size_t i = 0; i < count; ++i) to[i] = from[i] * first * second;
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#endif
