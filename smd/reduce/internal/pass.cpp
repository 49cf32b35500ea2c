#include "smd/reduce/internal/pass.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/reduce/result_types.h"

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

}  // namespace

template <typename T>
Pass<T>::Pass(const Kernels& kernels, const PassOptions& options)
    : kernels_(kernels),
      options_(options),
      needs_(work_for<T>(options)),
      complete_(options.count_special || has(needs_, Needs::product) ||
                has(options.abs, Needs::extrema | Needs::deviations)) {}

template <typename T>
void Pass<T>::add(std::span<const T> block) {
  if constexpr (kSurveyed) {
    if (has(needs_, Needs::moments)) {
      latest_ = take_moments<T>(block);
    } else if (has(needs_, Needs::extrema)) {
      latest_ = extrema_of(block);
    }
  } else {
    if (has(needs_, Needs::extrema)) latest_ = extrema_of(block);
    if (has(needs_, Needs::moments)) {
      alignas(64) double reals[kBlockElements];
      if constexpr (std::is_signed_v<T>) {
        kernels_.from_int64(block.data(), block.size(), reals);
      } else {
        kernels_.from_uint64(block.data(), block.size(), reals);
      }
      take_moments<double>({reals, block.size()});
    }
  }
  if (has(needs_, Needs::extrema)) take_extrema();
  if (options_.count_special) count_special(block);
  if (has(needs_, Needs::product)) take_product(block);
  if constexpr (!kFloating) {
    if (has(needs_, Needs::sum)) wrapping_.add(block);
  }
  count_ += static_cast<int64_t>(block.size());
}

template <typename T>
Extrema<T> Pass<T>::extrema_of(std::span<const T> block) const {
  return kernels_.of<T>().extrema(block.data(), block.size());
}

template <typename T>
template <typename Real>
Extrema<Real> Pass<T>::take_moments(std::span<const Real> block) {
  const auto& kernels = kernels_.of<Real>();
  const auto survey = [&](Shift shift) {
    const auto loop = complete_ ? kernels.survey_all : kernels.survey_values;
    return loop(block.data(), block.size(), shift);
  };
  const Survey<Real> first = survey({plain_.shift(), complete_ ? abs_.shift() : 0});
  plain_.add(block.size(), first.plain, [&](double mean) { return survey({mean, 0}).plain; });
  if (complete_) {
    abs_.add(block.size(), first.abs, [&](double mean) { return survey({0, mean}).abs; });
  } else {
    magnitude_ += first.abs.first;
  }
  if (!std::isnan(first.plain.first)) return first.extrema;
  return kernels.extrema(block.data(), block.size());
}

template <typename T>
void Pass<T>::take_extrema() {
  if (count_ == 0) {
    extrema_ = latest_;
    return;
  }
  lower(extrema_.min, latest_.min);
  raise(extrema_.max, latest_.max);
  lower(extrema_.abs_min, latest_.abs_min);
  raise(extrema_.abs_max, latest_.abs_max);
}

template <typename T>
void Pass<T>::count_special(std::span<const T> block) {
  bool special = latest_.abs_min == 0;
  if constexpr (kFloating) special = special || !std::isfinite(latest_.abs_max);
  if (!special) return;
  const SpecialCounts counts = kernels_.of<T>().count_special(block.data(), block.size());
  special_.nan += counts.nan;
  special_.inf += counts.inf;
  special_.zero += counts.zero;
}

template <typename T>
void Pass<T>::take_product(std::span<const T> block) {
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
      int exponent = 1;
      const double half = std::isinf(x) ? std::copysign(0.5, x) : std::frexp(x, &exponent);
      product_.merge({2 * half, exponent - 1});
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
  const double magnitude = complete_ ? abs_.total() : magnitude_;
  Totals out;
  out.real_type = real_type(options_.dtype);
  out.count = count_;
  out.exponent = options_.exponent;
  out.total = abs ? magnitude : plain_.total();
  out.magnitude = magnitude;
  // An infinity leaves no squares about the shift.
  out.squares = std::isinf(magnitude) ? magnitude : plain_.squares();
  out.squared_deviations = (abs ? abs_ : plain_).squared_deviations();
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
