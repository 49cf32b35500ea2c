#include "smd/reduce/internal/kernels.h"

#include <algorithm>
#include <cmath>

// The oldest and the newest x86 level bring nothing to these loops; vectors of unknown length
// cannot be members.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "smd/reduce/internal/kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "smd/reduce/internal/convert.inl.h"
#include "smd/reduce/internal/extrema.inl.h"
#include "smd/reduce/internal/product.inl.h"
#include "smd/reduce/internal/survey.inl.h"

HWY_BEFORE_NAMESPACE();
namespace smd::internal {
namespace HWY_NAMESPACE {

template <typename T>
constexpr ElementKernels<T> element_kernels() {
  ElementKernels<T> kernels{.extrema = extrema<T>, .count_special = count_special<T>};
  if constexpr (sizeof(T) == 4 || std::is_same_v<T, double>) {
    kernels.survey_values = survey_values<T>;
    kernels.survey_all = survey_all<T>;
  }
  if constexpr (std::is_floating_point_v<T>) kernels.product = product<T>;
  return kernels;
}

const Kernels& kernels() {
  static constexpr Kernels table = {
      .target = std::string_view(HWY_STR(HWY_NAMESPACE)).substr(2),  // after "N_"
      .float32 = element_kernels<float>(),
      .float64 = element_kernels<double>(),
      .int32 = element_kernels<int32_t>(),
      .int64 = element_kernels<int64_t>(),
      .uint64 = element_kernels<uint64_t>(),
      .from_float16 = convert<Float16, float>,
      .from_bfloat16 = convert<Bfloat16, float>,
      .from_int8 = convert<int8_t, int32_t>,
      .from_int16 = convert<int16_t, int32_t>,
      .from_uint8 = convert<uint8_t, int32_t>,
      .from_uint16 = convert<uint16_t, int32_t>,
      .from_boolean = convert<Boolean, int32_t>,
      .from_uint32 = convert<uint32_t, int64_t>,
      .from_int64 = to_double<int64_t>,
      .from_uint64 = to_double<uint64_t>,
      .scale = scale,
      .any_above_8 = any_above<int8_t>,
      .any_above_16 = any_above<int16_t>,
      .any_above_32 = any_above<int32_t>,
      .any_above_64 = any_above<int64_t>,
  };
  return table;
}

}  // namespace HWY_NAMESPACE
}  // namespace smd::internal
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace smd::internal {

HWY_EXPORT(kernels);

void Product::merge(const Product& other) {
  mantissa *= other.mantissa;
  exponent += other.exponent;
  if (std::abs(mantissa) < 2) return;
  mantissa /= 2;
  ++exponent;
}

double Product::to_double() const {
  constexpr int64_t kBeyond = 4096;  // any exponent past float64's gives zero or infinity
  return std::ldexp(mantissa, static_cast<int>(std::clamp(exponent, -kBeyond, kBeyond)));
}

const Kernels& best_kernels() { return HWY_DYNAMIC_DISPATCH(kernels)(); }

std::vector<const Kernels*> available_kernels() {
  std::vector<const Kernels*> found;
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    hwy::ChosenTarget one;
    one.Update(rest & -rest);
    found.push_back(&HWY_DISPATCH_TABLE(kernels)[one.GetIndex()]());
  }
  return found;
}

}  // namespace smd::internal
#endif
