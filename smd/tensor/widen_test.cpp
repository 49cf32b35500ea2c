#include "smd/tensor/widen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace smd {
namespace {

TEST(Widen, every_bit_pattern_survives_the_way_to_float32_and_back) {
  for (DType dtype : {DType::float8_e4m3fn, DType::float8_e5m2, DType::bfloat16}) {
    const size_t item = size_of(dtype);
    const size_t count = item == 1 ? 256 : 65536;
    Bytes in(count * item);
    for (size_t i = 0; i < count; ++i) {
      if (item == 1)
        in[i] = static_cast<std::byte>(i);
      else
        store_le(in.data() + 2 * i, static_cast<uint16_t>(i));
    }
    std::vector<float> wide(count);
    widen(dtype, in, wide);
    Bytes back(in.size());
    narrow(dtype, wide, back);
    EXPECT_EQ(back, in) << name_of(dtype);
  }
}

TEST(Widen, known_values_are_right) {
  // Values from the OCP 8-bit floating point specification.
  auto value = [](DType dtype, int code) {
    const std::byte in[] = {static_cast<std::byte>(code)};
    float out = 0;
    widen(dtype, in, {&out, 1});
    return out;
  };
  EXPECT_EQ(value(DType::float8_e4m3fn, 0x7e), 448.0f);
  EXPECT_EQ(value(DType::float8_e4m3fn, 0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(value(DType::float8_e4m3fn, 0x08), std::ldexp(1.0f, -6));
  EXPECT_TRUE(std::isnan(value(DType::float8_e4m3fn, 0x7f)));
  EXPECT_EQ(value(DType::float8_e5m2, 0x7b), 57344.0f);
  EXPECT_EQ(value(DType::float8_e5m2, 0x01), std::ldexp(1.0f, -16));
  EXPECT_TRUE(std::isinf(value(DType::float8_e5m2, 0xfc)));
  EXPECT_TRUE(std::isnan(value(DType::float8_e5m2, 0x7d)));
  EXPECT_EQ(value(DType::float8_e5m2, 0xbc), -1.0f);
}

}  // namespace
}  // namespace smd
