// Extrema and shifted sums in one loop. Included once per instruction set by kernels.cpp.

#if defined(SMD_REDUCE_SURVEY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SMD_REDUCE_SURVEY_INL_H_
#undef SMD_REDUCE_SURVEY_INL_H_
#else
#define SMD_REDUCE_SURVEY_INL_H_
#endif

#include <algorithm>
#include <bit>

#include "hwy/highway.h"
#include "smd/reduce/internal/extrema.inl.h"
#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/lanes.inl.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

// Sums beside each other: as many as there are registers for, as each has to wait for its last
// addition.
constexpr size_t kSums = HWY_TARGET == HWY_AVX3 ? 4 : 2;

// The loop is bound by the adders, which also convert, while the multipliers idle: so some sums are
// left to these, if there is a register for the one. Times one is exact.
HWY_INLINE WideVec one() { return hn::Set(Wide(), 1.0); }
template <bool kComplete>
constexpr bool kHasOne = kSums == 4 || !kComplete;

// Sums over lanes; kComplete adds what only absolute reductions ask for.
template <bool kComplete, bool kShifted>
struct SumLanes {
  WideVec plain_first, plain_second, abs_first, abs_second;

  HWY_INLINE SumLanes()
      : plain_first(hn::Zero(Wide())),
        plain_second(plain_first),
        abs_first(plain_first),
        abs_second(plain_first) {}

  // `d` is x − shift.plain, `e` is |x| − shift.abs.
  HWY_INLINE void add(WideVec d, WideVec e) {
    plain_first = kHasOne<kComplete> ? hn::MulAdd(d, one(), plain_first) : hn::Add(plain_first, d);
    plain_second = hn::MulAdd(d, d, plain_second);
    // The multipliers take shifts away, too, and take longer for one sum.
    constexpr bool kAdd = kShifted || kSums < 4;
    abs_first = kAdd ? hn::Add(abs_first, e) : hn::MulAdd(e, one(), abs_first);
    if (kComplete) abs_second = hn::MulAdd(e, e, abs_second);
  }

  HWY_INLINE void merge(const SumLanes& other) {
    plain_first = hn::Add(plain_first, other.plain_first);
    plain_second = hn::Add(plain_second, other.plain_second);
    abs_first = hn::Add(abs_first, other.abs_first);
    abs_second = hn::Add(abs_second, other.abs_second);
  }
};

// Takes the shift away, unless there is none.
template <bool kComplete, bool kShifted>
struct ShiftLanes {
  WideVec plain, abs;

  HWY_INLINE explicit ShiftLanes(Shift shift)
      : plain(hn::Set(Wide(), shift.plain)), abs(hn::Set(Wide(), shift.abs)) {}

  HWY_INLINE WideVec of_value(WideVec x) const { return minus(x, plain); }
  HWY_INLINE WideVec of_magnitude(WideVec x) const {
    return kComplete ? minus(hn::Abs(x), abs) : hn::Abs(x);
  }

 private:
  static HWY_INLINE WideVec minus(WideVec x, WideVec y) {
    if (!kShifted) return x;
    return kHasOne<kComplete> ? hn::MulSub(x, one(), y) : hn::Sub(x, y);
  }
};

template <class D, bool kComplete>
struct RangeLanes {
  using T = hn::TFromD<D>;
  using DM = typename MagnitudeTag<D>::type;

  hn::Vec<D> min, max;
  hn::Vec<DM> abs_min;

  HWY_INLINE explicit RangeLanes(T element)
      : min(hn::Set(D(), element)), max(min), abs_min(lanes_magnitude(D(), min)) {}

  HWY_INLINE void add(const T* from) {
    const auto x = hn::LoadU(D(), from);
    min = hn::Min(min, x);
    max = hn::Max(max, x);
    if (kComplete) abs_min = hn::Min(abs_min, lanes_magnitude(D(), x));
  }

  HWY_INLINE Extrema<T> finish() const {
    const T least = least_lane(D(), min);
    const T greatest = greatest_lane(D(), max);
    return {least, greatest, std::bit_cast<Magnitude<T>>(least_lane(DM(), abs_min)),
            std::max(magnitude_of(least), magnitude_of(greatest))};
  }
};

template <bool kComplete, bool kShifted, typename T>
Survey<T> survey(const T* block, size_t count, Shift shift) {
  using D = hn::CappedTag<T, 4 * sizeof(double) / sizeof(T)>;
  const Wide wide;
  const size_t step = hn::Lanes(wide);
  const ShiftLanes<kComplete, kShifted> from(shift);
  RangeLanes<D, kComplete> range(block[0]);
  SumLanes<kComplete, kShifted> sums[kSums];
  size_t i = 0;
  for (; i + kSums * step <= count; i += kSums * step) {
    for (size_t at = i; at < i + kSums * step; at += hn::Lanes(D())) range.add(block + at);
    HWY_UNROLL(4)
    for (size_t k = 0; k < kSums; ++k) {
      const WideVec x = load_wide(block + i + k * step);
      sums[k].add(from.of_value(x), from.of_magnitude(x));
    }
  }
  SumLanes<kComplete, kShifted>& sum = sums[0];
  for (; i < count; i += step) {
    const size_t rest = std::min(count - i, step);
    const Padded<T, D> padded(block + i, rest, block[0]);
    const WideVec x = load_wide(padded.lanes);
    const auto valid = hn::FirstN(wide, rest);
    range.add(padded.lanes);
    sum.add(hn::IfThenElseZero(valid, from.of_value(x)),
            hn::IfThenElseZero(valid, from.of_magnitude(x)));
  }
  for (size_t k = 1; k < kSums; ++k) sum.merge(sums[k]);
  return {range.finish(),
          {sum_of_lanes(sum.plain_first), sum_of_lanes(sum.plain_second)},
          {sum_of_lanes(sum.abs_first), sum_of_lanes(sum.abs_second)}};
}

template <bool kComplete, typename T>
Survey<T> survey_about(const T* block, size_t count, Shift shift) {
  if (shift.plain == 0 && shift.abs == 0) return survey<kComplete, false>(block, count, shift);
  return survey<kComplete, true>(block, count, shift);
}

template <typename T>
Survey<T> survey_values(const T* block, size_t count, Shift shift) {
  return survey_about<false>(block, count, shift);
}

template <typename T>
Survey<T> survey_all(const T* block, size_t count, Shift shift) {
  return survey_about<true>(block, count, shift);
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#endif
