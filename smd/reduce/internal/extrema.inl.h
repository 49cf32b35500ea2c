// Extrema, special values and NaN search. Included once per instruction set by kernels.cpp.

#if defined(SMD_REDUCE_EXTREMA_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SMD_REDUCE_EXTREMA_INL_H_
#undef SMD_REDUCE_EXTREMA_INL_H_
#else
#define SMD_REDUCE_EXTREMA_INL_H_
#endif

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/lanes.inl.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

// Without the sign, floats order like the integers with the same bits, and NaN lies above infinity:
// the greatest magnitude therefore also tells whether there was a NaN.
template <class D>
struct MagnitudeTag {
  using type = hn::RebindToUnsigned<D>;
};
template <class D>
requires std::is_floating_point_v<hn::TFromD<D>>
struct MagnitudeTag<D> {
  using type = hn::RebindToSigned<D>;
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE auto lanes_magnitude(D, V v) {
  const typename MagnitudeTag<D>::type bits;
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    return hn::BitCast(bits, hn::Abs(v));
  } else if constexpr (std::is_signed_v<hn::TFromD<D>>) {
    const auto sign = hn::BroadcastSignBit(v);
    return hn::BitCast(bits, hn::Sub(hn::Xor(v, sign), sign));
  } else {
    return v;
  }
}

template <class D>
struct ExtremaLanes {
  using T = hn::TFromD<D>;
  using DM = typename MagnitudeTag<D>::type;

  hn::Vec<D> min, max;
  hn::Vec<DM> abs_min, abs_max;

  HWY_INLINE explicit ExtremaLanes(T element)
      : min(hn::Set(D(), element)),
        max(min),
        abs_min(lanes_magnitude(D(), min)),
        abs_max(abs_min) {}

  HWY_INLINE void add(const T* from) {
    const auto v = hn::LoadU(D(), from);
    const auto m = lanes_magnitude(D(), v);
    min = hn::Min(min, v);
    max = hn::Max(max, v);
    abs_min = hn::Min(abs_min, m);
    abs_max = hn::Max(abs_max, m);
  }

  HWY_INLINE void merge(const ExtremaLanes& other) {
    min = hn::Min(min, other.min);
    max = hn::Max(max, other.max);
    abs_min = hn::Min(abs_min, other.abs_min);
    abs_max = hn::Max(abs_max, other.abs_max);
  }

  HWY_INLINE Extrema<T> finish() const {
    using M = hn::TFromD<DM>;
    const M greatest = greatest_lane(DM(), abs_max);
    const M least = least_lane(DM(), abs_min);
    if constexpr (std::is_floating_point_v<T>) {
      if (greatest > std::bit_cast<M>(std::numeric_limits<T>::infinity())) {
        const T nan = std::numeric_limits<T>::quiet_NaN();
        return {nan, nan, nan, nan};
      }
    }
    return {least_lane(D(), min), greatest_lane(D(), max), std::bit_cast<Magnitude<T>>(least),
            std::bit_cast<Magnitude<T>>(greatest)};
  }
};

template <typename T>
Extrema<T> extrema(const T* block, size_t count) {
  using D = hn::ScalableTag<T>;
  const size_t step = hn::Lanes(D());
  ExtremaLanes<D> even(block[0]), odd(block[0]);
  size_t i = 0;
  for (; i + 2 * step <= count; i += 2 * step) {
    even.add(block + i);
    odd.add(block + i + step);
  }
  if (i + step <= count) {
    even.add(block + i);
    i += step;
  }
  if (i < count) odd.add(Padded<T, D>(block + i, count - i, block[0]).lanes);
  even.merge(odd);
  return even.finish();
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void count_lanes(D d, V v, SpecialCounts& counts) {
  using T = hn::TFromD<D>;
  const typename MagnitudeTag<D>::type bits;
  using M = hn::TFromD<decltype(bits)>;
  const auto m = lanes_magnitude(d, v);
  counts.zero += static_cast<int64_t>(hn::CountTrue(bits, hn::Eq(m, hn::Zero(bits))));
  if constexpr (std::is_floating_point_v<T>) {
    const auto inf = hn::Set(bits, std::bit_cast<M>(std::numeric_limits<T>::infinity()));
    counts.nan += static_cast<int64_t>(hn::CountTrue(bits, hn::Gt(m, inf)));
    counts.inf += static_cast<int64_t>(hn::CountTrue(bits, hn::Eq(m, inf)));
  }
}

template <typename T>
SpecialCounts count_special(const T* block, size_t count) {
  const hn::ScalableTag<T> d;
  const size_t step = hn::Lanes(d);
  SpecialCounts counts;
  size_t i = 0;
  for (; i + step <= count; i += step) count_lanes(d, hn::LoadU(d, block + i), counts);
  if (i < count) {
    const Padded<T, decltype(d)> rest(block + i, count - i, T{1});
    count_lanes(d, hn::Load(d, rest.lanes), counts);
  }
  return counts;
}

template <typename T>
bool any_above(const T* block, size_t count, T limit) {
  const hn::ScalableTag<T> d;
  const size_t step = hn::Lanes(d);
  const auto without_sign = hn::Set(d, std::numeric_limits<T>::max());
  auto greatest = hn::Zero(d);
  size_t i = 0;
  for (; i + step <= count; i += step) {
    greatest = hn::Max(greatest, hn::And(hn::LoadU(d, block + i), without_sign));
  }
  if (i < count) {
    const Padded<T, decltype(d)> rest(block + i, count - i, T{0});
    greatest = hn::Max(greatest, hn::And(hn::Load(d, rest.lanes), without_sign));
  }
  return !hn::AllFalse(d, hn::Gt(greatest, hn::Set(d, limit)));
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#endif
