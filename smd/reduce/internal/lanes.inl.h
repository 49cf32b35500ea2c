// Loading elements into float64 lanes. Included once per instruction set by kernels.cpp.

#if defined(SMD_REDUCE_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SMD_REDUCE_LANES_INL_H_
#undef SMD_REDUCE_LANES_INL_H_
#else
#define SMD_REDUCE_LANES_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Processors that work on halves of their longest vectors are slow to convert into whole ones.
using Wide = hn::CappedTag<double, 4>;
using WideVec = hn::Vec<Wide>;

// Lanes(Wide()) elements as float64.
template <typename T>
HWY_INLINE WideVec load_wide(const T* from) {
  const Wide wide;
  if constexpr (std::is_same_v<T, double>) {
    return hn::LoadU(wide, from);
  } else {
    return hn::PromoteTo(wide, hn::LoadU(hn::Rebind<T, Wide>(), from));
  }
}

// The last elements of a block, fewer than the lanes, in an array that fills them.
template <typename T, class D>
struct Padded {
  HWY_ALIGN T lanes[hn::MaxLanes(D())];

  HWY_INLINE Padded(const T* from, size_t count, T filler) {
    for (T& lane : lanes) lane = filler;
    std::memcpy(lanes, from, count * sizeof(T));
  }
};

HWY_INLINE double sum_of_lanes(WideVec v) {
  const Wide wide;
  return hn::GetLane(hn::SumOfLanes(wide, v));
}

template <class D, class V>
HWY_INLINE hn::TFromD<D> least_lane(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  // Highway begins with the greatest finite number, so that infinity is lost.
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  return *std::min_element(lanes, lanes + hn::Lanes(d));
#else
  return hn::GetLane(hn::MinOfLanes(d, v));
#endif
}

template <class D, class V>
HWY_INLINE hn::TFromD<D> greatest_lane(D d, V v) {
#if HWY_TARGET == HWY_EMU128
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(d));
#else
  return hn::GetLane(hn::MaxOfLanes(d, v));
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#endif
