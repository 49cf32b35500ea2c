#include "smd/reduce/internal/pass.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace smd::internal {
namespace {

template <typename T>
Needs work_for(const PassOptions& options) {
  Needs needs = options.plain | options.abs;
  const auto imply = [&needs](Needs a, Needs b) {
    if (has(needs, a)) needs = needs | b;
  };
  imply(Needs::deviations, Needs::moments);
  if constexpr (std::is_floating_point_v<T>) {
    imply(Needs::sum, Needs::moments);
    imply(Needs::product, Needs::extrema);
  }
  // Whether float64 squares fit is told by the extrema.
  if constexpr (std::is_same_v<T, double>) imply(Needs::moments, Needs::extrema);
  return options.count_special ? needs | Needs::extrema : needs;
}

// A NaN, once there, stays.
template <typename T>
void lower(T& least, T x) {
  if (x < least || x != x) least = x;
}
template <typename T>
void raise(T& greatest, T x) {
  if (x > greatest || x != x) greatest = x;
}

DType magnitude_type(DType dtype) {
  switch (dtype) {
    case DType::int8:
      return DType::uint8;
    case DType::int16:
      return DType::uint16;
    case DType::int32:
      return DType::uint32;
    case DType::int64:
      return DType::uint64;
    default:
      return dtype;
  }
}

DType sum_type(DType dtype) {
  return info_of(dtype).kind == DTypeKind::unsigned_integer ? DType::uint64 : DType::int64;
}

DType real_type(DType dtype) {
  switch (info_of(dtype).kind) {
    case DTypeKind::floating:
      return dtype == DType::float64 ? DType::float64 : DType::float32;
    case DTypeKind::complex:
      return dtype == DType::complex128 ? DType::float64 : DType::float32;
    default:
      return DType::float64;
  }
}

}  // namespace

template <typename T>
Pass<T>::Pass(const Kernels& kernels, const PassOptions& options)
    : kernels_(kernels), options_(options), needs_(work_for<T>(options)) {}

template <typename T>
void Pass<T>::add(std::span<const T> block) {
  if (has(needs_, Needs::extrema)) add_extrema(block);
  if (has(needs_, Needs::moments)) {
    if constexpr (sizeof(T) == 8 && !kFloating) {
      alignas(64) double reals[kBlockElements];
      const auto convert = [this] {
        if constexpr (std::is_signed_v<T>)
          return kernels_.from_int64;
        else
          return kernels_.from_uint64;
      }();
      convert(block.data(), block.size(), reals);
      add_moments(kernels_.float64, reals, block.size());
    } else {
      add_moments(kernels_.of<T>(), block.data(), block.size());
    }
  }
  if (has(needs_, Needs::product)) add_product(block);
  if constexpr (!kFloating) {
    if (has(needs_, Needs::sum)) wrapping_.add(block);
  }
  count_ += static_cast<int64_t>(block.size());
}

template <typename T>
void Pass<T>::add_extrema(std::span<const T> block) {
  latest_ = kernels_.of<T>().extrema(block.data(), block.size());
  if (count_ == 0) {
    extrema_ = latest_;
  } else {
    lower(extrema_.min, latest_.min);
    raise(extrema_.max, latest_.max);
    lower(extrema_.abs_min, latest_.abs_min);
    raise(extrema_.abs_max, latest_.abs_max);
  }
  if (!options_.count_special) return;
  bool special = latest_.abs_min == 0;
  if constexpr (kFloating) special = special || !std::isfinite(latest_.abs_max);
  if (!special) return;
  const SpecialCounts counts = kernels_.of<T>().count_special(block.data(), block.size());
  special_.nan += counts.nan;
  special_.inf += counts.inf;
  special_.zero += counts.zero;
}

template <typename T>
template <typename Real>
void Pass<T>::add_moments(const ElementKernels<Real>& kernels, const Real* block, size_t count) {
  const Moments latest = kernels.moments(block, count);
  moments_.total += latest.total;
  moments_.magnitude += latest.magnitude;
  moments_.squares += latest.squares;
  if (has(options_.plain, Needs::deviations)) {
    const double mean = latest.total / static_cast<double>(count);
    spread_.merge(count, mean, kernels.deviations(block, count, mean));
  }
  if (has(options_.abs, Needs::deviations)) {
    const double mean = latest.magnitude / static_cast<double>(count);
    abs_spread_.merge(count, mean, kernels.abs_deviations(block, count, mean));
  }
}

template <typename T>
void Pass<T>::add_product(std::span<const T> block) {
  if constexpr (!kFloating) {
    wrapping_.multiply(block);
  } else {
    // After a zero or a NaN the factors no longer matter.
    if (!(extrema_.abs_min > 0)) return;
    if (std::is_same_v<T, float> || latest_.abs_min >= std::numeric_limits<T>::min()) {
      product_.merge(kernels_.of<T>().product(block.data(), block.size()));
      return;
    }
    for (T x : block) {
      int exponent = 0;
      const double mantissa = std::isinf(x) ? std::copysign(1.0, x) : std::frexp(x, &exponent);
      product_.merge({mantissa, exponent});
    }
  }
}

// The factors decide, not their order: zero times whatever is finite is zero.
template <typename T>
double Pass<T>::product() const {
  const auto inf = std::numeric_limits<double>::infinity();
  const bool infinite = static_cast<double>(extrema_.abs_max) == inf;
  if (extrema_.abs_min == 0) return infinite ? inf - inf : 0;
  if (!(extrema_.abs_min > 0)) return std::numeric_limits<double>::quiet_NaN();
  return infinite ? std::copysign(inf, product_.mantissa) : product_.to_double();
}

template <typename T>
Totals Pass<T>::totals(bool abs) const {
  Totals out{.real_type = real_type(options_.dtype),
             .count = count_,
             .exponent = options_.exponent,
             .total = abs ? moments_.magnitude : moments_.total,
             .magnitude = moments_.magnitude,
             .squares = moments_.squares,
             .squared_deviations = (abs ? abs_spread_ : spread_).squared_deviations()};
  if constexpr (kFloating) {
    const auto element = [&](T x) { return Number::real(out.real_type, static_cast<double>(x)); };
    out.min = element(abs ? extrema_.abs_min : extrema_.min);
    out.max = element(abs ? extrema_.abs_max : extrema_.max);
    // Partial sums may have overflowed to the other infinity.
    if (std::is_same_v<T, double> && std::isinf(extrema_.abs_max)) {
      out.total = static_cast<double>(abs ? extrema_.abs_max : extrema_.min + extrema_.max);
    }
    out.sum = out.real(out.total, 1);
    out.prod = Number::real(out.real_type, abs ? std::abs(product()) : product());
  } else {
    const DType dtype = abs ? magnitude_type(options_.dtype) : options_.dtype;
    const auto bits = [](auto x) { return static_cast<uint64_t>(x); };
    out.min = Number::integer(dtype, abs ? bits(extrema_.abs_min) : bits(extrema_.min));
    out.max = Number::integer(dtype, abs ? bits(extrema_.abs_max) : bits(extrema_.max));
    out.sum = Number::integer(sum_type(dtype), wrapping_.sum(abs));
    out.prod = Number::integer(sum_type(dtype), wrapping_.product(abs));
  }
  return out;
}

template <typename T>
int Pass<T>::needed_exponent() const {
  if constexpr (std::is_same_v<T, double>) {
    // Between these bounds 2^62 squares add up without overflow, and what underflows is too small
    // to be seen beside the largest.
    constexpr int kBound = 400;
    if (!has(needs_, Needs::moments) || extrema_.abs_max == 0) return 0;
    if (!std::isfinite(extrema_.abs_max)) return 0;
    const int magnitude = std::ilogb(extrema_.abs_max);
    return std::abs(magnitude) > kBound ? -magnitude : 0;
  } else {
    return 0;
  }
}

template class Pass<float>;
template class Pass<double>;
template class Pass<int32_t>;
template class Pass<int64_t>;
template class Pass<uint64_t>;

}  // namespace smd::internal
