#include "smd/reduce/nonfinite.h"

#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <vector>

namespace smd {
namespace {

template <typename T>
NonFinite count(const std::vector<T>& values, DType dtype) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  return *count_nonfinite({.data = values.data(), .dtype = dtype, .shape = shape});
}

TEST(NonFinite, tells_nan_and_the_two_infinities_apart) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(10'000, 1);
  values[3] = kNan;
  values[5000] = -kInf;
  values[9999] = kInf;
  values[9998] = kInf;
  EXPECT_EQ(count(values, DType::float32), (NonFinite{1, 2, 1}));
}

TEST(NonFinite, knows_small_floats_and_has_nothing_to_say_of_integers) {
  EXPECT_EQ(count<uint16_t>({0x7c00, 0xfc00, 0x7e00, 0x3c00}, DType::float16),
            (NonFinite{1, 1, 1}));
  EXPECT_EQ(count<uint16_t>({0x7f80, 0xff80, 0x7fc0}, DType::bfloat16), (NonFinite{1, 1, 1}));
  EXPECT_EQ(count<int32_t>({1, 2, -1}, DType::int32), NonFinite{});
  EXPECT_EQ(count<float>({}, DType::float32), NonFinite{});
}

TEST(NonFinite, a_complex_number_counts_once) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(count<std::complex<double>>({{-inf, 0}, {1, 1}}, DType::complex128),
            (NonFinite{0, 1, 0}));
}

}  // namespace
}  // namespace smd
