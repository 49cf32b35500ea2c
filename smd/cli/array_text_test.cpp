#include "smd/cli/array_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace smd::cli {
namespace {

template <typename T>
TensorValue value_of(DType dtype, const Shape& shape, const std::vector<T>& elements) {
  TensorValue value{.dtype = dtype, .shape = shape};
  value.memory = allocate_aligned(std::max<size_t>(elements.size() * sizeof(T), 1), 0, 0);
  std::copy_n(reinterpret_cast<const std::byte*>(elements.data()), elements.size() * sizeof(T),
              value.memory.get());
  value.elements = {value.memory.get(), elements.size() * sizeof(T)};
  return value;
}

TEST(ArrayText, looks_like_numpy) {
  EXPECT_EQ(array_text(value_of<float>(DType::float32, {2, 2}, {1, -2.5, 3, 100}), {}),
            "[[   1 -2.5]\n [   3  100]]");
  EXPECT_EQ(array_text(value_of<int8_t>(DType::int8, {3}, {-128, 0, 7}), {}), "[-128    0    7]");
  EXPECT_EQ(array_text(value_of<uint64_t>(DType::uint64, {1}, {UINT64_MAX}), {}),
            "[18446744073709551615]");
  EXPECT_EQ(array_text(value_of<double>(DType::float64, {}, {0.1}), {}), "0.1");
  EXPECT_EQ(array_text(value_of<uint8_t>(DType::boolean, {2}, {0, 1}), {}), "[False  True]");
  EXPECT_EQ(array_text(value_of<float>(DType::complex64, {1}, {1, -2}), {}), "[1-2j]");
}

TEST(ArrayText, small_floats_are_widened) {
  EXPECT_EQ(array_text(value_of<uint16_t>(DType::float16, {1}, {0x3E00}), {}), "[1.5]");
  EXPECT_EQ(array_text(value_of<uint16_t>(DType::bfloat16, {1}, {0x3FC0}), {}), "[1.5]");
}

TEST(ArrayText, large_tensors_are_abbreviated_along_each_axis) {
  std::vector<int32_t> numbers(100);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  EXPECT_EQ(array_text(value_of(DType::int32, {100}, numbers), {.limit = 10}),
            "[ 0  1  2 ... 97 98 99]");
  EXPECT_EQ(array_text(value_of(DType::int32, {50, 2}, numbers), {.limit = 10}),
            "[[ 0  1]\n [ 2  3]\n [ 4  5]\n ...\n [94 95]\n [96 97]\n [98 99]]");
}

TEST(ArrayText, lines_are_broken_at_the_width) {
  EXPECT_EQ(array_text(value_of<int32_t>(DType::int32, {5}, {10, 20, 30, 40, 50}), {.width = 10}),
            "[10 20 30\n 40 50]");
}

TEST(ArrayText, texts_are_quoted_and_safe) {
  TensorValue value{.dtype = DType::string, .shape = {2}, .strings = {"a\n", "b"}};
  EXPECT_EQ(array_text(value, {}), "['a\\x0a' 'b']");
  EXPECT_EQ(array_json(value), Json({"a\n", "b"}));
}

TEST(ArrayText, absurd_shapes_are_harmless) {
  EXPECT_EQ(array_text(value_of<float>(DType::float32, {int64_t{1} << 60, 0}, {}), {}), "[]");
  EXPECT_EQ(array_json(value_of<float>(DType::float32, {int64_t{1} << 60, 0}, {})), Json::array());
  EXPECT_EQ(array_text(value_of<float>(DType::float32, Shape(100'000, 1), {2}), {}), "[2]");
}

TEST(ArrayText, json_keeps_numbers_exact) {
  EXPECT_EQ(array_json(value_of<int64_t>(DType::int64, {1, 1}, {INT64_MIN})), Json({{INT64_MIN}}));
  EXPECT_EQ(array_json(value_of<float>(DType::complex64, {1}, {1, 2})), Json({{1.0, 2.0}}));
  EXPECT_EQ(
      array_json(value_of<double>(DType::float64, {}, {std::numeric_limits<double>::infinity()})),
      Json("Infinity"));
}

}  // namespace
}  // namespace smd::cli
