#include "smd/tensor/tensor_view.h"

#include <gtest/gtest.h>

#include <numeric>

namespace smd {
namespace {

std::vector<int32_t> gathered(const TensorView& view, int64_t first, size_t count) {
  std::vector<int32_t> out(count);
  gather(view, first, std::as_writable_bytes(std::span(out)));
  return out;
}

class Strided : public testing::Test {
 protected:
  Strided() : values(24) { std::iota(values.begin(), values.end(), 0); }
  std::vector<int32_t> values;
};

TEST_F(Strided, gathers_a_transposed_view_in_c_order) {
  const Shape shape = {4, 6};
  const Shape strides = {4, 16};  // the transpose of a 6×4 array
  const TensorView view{values.data(), DType::int32, shape, strides};
  EXPECT_FALSE(view.is_contiguous());
  const auto all = gathered(view, 0, 24);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(all[i], (i % 6) * 4 + i / 6);
  // Any piece equals the same piece of the whole.
  for (int64_t first = 0; first < 24; ++first) {
    for (size_t n = 0; first + static_cast<int64_t>(n) <= 24; ++n) {
      EXPECT_EQ(
          gathered(view, first, n),
          std::vector<int32_t>(all.begin() + first, all.begin() + first + static_cast<int64_t>(n)));
    }
  }
}

TEST_F(Strided, handles_negative_and_zero_strides) {
  const Shape shape = {3};
  const Shape back = {-4};
  EXPECT_EQ(gathered({values.data() + 2, DType::int32, shape, back}, 0, 3),
            (std::vector<int32_t>{2, 1, 0}));
  const Shape same = {0};
  EXPECT_EQ(gathered({values.data() + 5, DType::int32, shape, same}, 0, 3),
            (std::vector<int32_t>{5, 5, 5}));
}

TEST_F(Strided, swaps_bytes_of_the_other_order) {
  const std::vector<int32_t> big = {0x01000000, 0x02000000};
  const Shape shape = {2};
  const TensorView view{.data = big.data(), .dtype = DType::int32, .shape = shape, .swapped = true};
  EXPECT_FALSE(view.is_contiguous());
  EXPECT_EQ(gathered(view, 0, 2), (std::vector<int32_t>{1, 2}));
}

TEST(TensorView, knows_what_is_contiguous) {
  const float x[6] = {};
  const Shape shape = {2, 3};
  const Shape c = {12, 4};
  const Shape fortran = {4, 8};
  EXPECT_TRUE((TensorView{x, DType::float32, shape, {}}.is_contiguous()));
  EXPECT_TRUE((TensorView{x, DType::float32, shape, c}.is_contiguous()));
  EXPECT_FALSE((TensorView{x, DType::float32, shape, fortran}.is_contiguous()));
  const Shape row = {1, 3};
  const Shape odd = {999, 4};  // the stride of an axis of extent 1 does not matter
  EXPECT_TRUE((TensorView{x, DType::float32, row, odd}.is_contiguous()));
  EXPECT_TRUE((TensorView{x, DType::float32, {}, {}}.is_contiguous()));
  EXPECT_EQ((TensorView{x, DType::float32, {}, {}}.size()), 1);
}

TEST(TensorView, refuses_what_cannot_be_read) {
  const Shape negative = {2, -1};
  const Shape huge = {int64_t{1} << 40, int64_t{1} << 40};
  const Shape huge_but_empty = {int64_t{1} << 40, int64_t{1} << 40, 0};
  const Shape two = {2};
  const Shape strides = {4, 4};
  const float x[2] = {};
  EXPECT_FALSE(check({x, DType::float32, negative, {}}).ok());
  EXPECT_FALSE(check({x, DType::float32, huge, {}}).ok());
  EXPECT_TRUE(check({nullptr, DType::float32, huge_but_empty, {}}).ok());
  EXPECT_FALSE(check({nullptr, DType::float32, two, {}}).ok());
  EXPECT_FALSE(check({x, DType::float32, two, strides}).ok());
  EXPECT_TRUE(check({x, DType::float32, two, {}}).ok());
}

TEST(DType, codes_and_names_lead_back_to_the_type) {
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_code(info_of(dtype).code), dtype);
    EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
  }
  EXPECT_EQ(dtype_from_code(11), DType::int8);
  EXPECT_EQ(dtype_from_code(101), DType::float32);
  EXPECT_FALSE(dtype_from_code(20).has_value());
  EXPECT_FALSE(dtype_from_code(-3).has_value());
}

}  // namespace
}  // namespace smd
