#include "smd/native/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstring>
#include <vector>

namespace my {
struct Bfloat16 {
  uint16_t bits;
};
}  // namespace my

template <>
struct smd::ElementType<my::Bfloat16> {
  static constexpr smd::DType value = smd::DType::bfloat16;
};

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

static_assert(dtype_of<int8_t>() == DType::int8 && dtype_of<uint16_t>() == DType::uint16);
static_assert(dtype_of<long>() == DType::int64 && dtype_of<long long>() == DType::int64);
static_assert(dtype_of<unsigned>() == DType::uint32 && dtype_of<uint64_t>() == DType::uint64);
static_assert(dtype_of<float>() == DType::float32 && dtype_of<const double>() == DType::float64);
static_assert(dtype_of<bool>() == DType::boolean);
static_assert(dtype_of<std::complex<float>>() == DType::complex64);
static_assert(dtype_of<std::complex<double>>() == DType::complex128);
static_assert(dtype_of<my::Bfloat16>() == DType::bfloat16);
static_assert(!Element<char> && !Element<char32_t> && !Element<long double> && !Element<void*>);

template <typename T>
std::vector<T> elements(const View& view) {
  EXPECT_TRUE(view.status().ok()) << view.status().error().message;
  const TensorView tensor = view;
  std::vector<T> out(static_cast<size_t>(tensor.size()));
  gather(tensor, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

// What Eigen's matrices offer, in either storage order.
struct FakeMatrix {
  using Scalar = float;
  std::vector<float> values;
  int64_t row_count = 0;
  int64_t col_count = 0;
  bool row_major = false;

  const float* data() const { return values.data(); }
  int64_t rows() const { return row_count; }
  int64_t cols() const { return col_count; }
  int64_t rowStride() const { return row_major ? col_count : 1; }
  int64_t colStride() const { return row_major ? 1 : row_count; }
};

struct FakeVector : FakeMatrix {
  enum { IsVectorAtCompileTime = 1 };
  // Newer versions of Eigen make vectors ranges, too.
  const float* begin() const { return data(); }
  const float* end() const { return data() + row_count * col_count; }
};

TEST(View, takes_vectors_arrays_and_spans_as_one_axis) {
  const std::vector<float> numbers{1, 2, 3};
  const std::array<int64_t, 2> pair{4, 5};
  std::vector<double> doubles{6, 7};
  EXPECT_THAT(elements<float>(view(numbers)), ElementsAre(1, 2, 3));
  EXPECT_THAT(view(numbers).shape(), ElementsAre(3));
  EXPECT_THAT(elements<int64_t>(view(pair)), ElementsAre(4, 5));
  EXPECT_EQ(view(pair).tensor().dtype, DType::int64);
  EXPECT_THAT(elements<double>(view(std::span<double>(doubles))), ElementsAre(6, 7));
  EXPECT_THAT(elements<double>(view(std::span<const double>(doubles).last(1))), ElementsAre(7));
}

TEST(View, takes_the_shape_of_c_arrays) {
  const float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const bool flags[4] = {true, false, true, true};
  EXPECT_THAT(view(matrix).shape(), ElementsAre(2, 3));
  EXPECT_THAT(elements<float>(view(matrix)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(view(matrix, {3, 2}).shape(), ElementsAre(3, 2));
  EXPECT_THAT(view(flags).shape(), ElementsAre(4));
  EXPECT_EQ(view(flags).tensor().dtype, DType::boolean);
}

TEST(View, takes_shapes_of_any_integer_type) {
  const std::vector<float> numbers(6);
  const size_t rows = 2;
  const int columns = 3;
  const std::vector<int64_t> shape{1, 6};
  EXPECT_THAT(view(numbers, {rows, columns}).shape(), ElementsAre(2, 3));
  EXPECT_THAT(view(numbers, shape).shape(), ElementsAre(1, 6));
  EXPECT_THAT(view(numbers, 6).shape(), ElementsAre(6));
  const float one = 8;
  EXPECT_THAT(view(&one, {}).shape(), ElementsAre());
  EXPECT_THAT(elements<float>(view(&one, {})), ElementsAre(8));
}

TEST(View, reads_pointers_through_strides_of_elements) {
  const std::vector<int32_t> numbers{0, 1, 2, 3, 4, 5};
  EXPECT_THAT(elements<int32_t>(view(numbers.data(), {2, 3})), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(elements<int32_t>(view(numbers.data(), {3, 2}, {1, 3})),
              ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(elements<int32_t>(view(numbers.data() + 5, {3}, {-2})), ElementsAre(5, 3, 1));
  EXPECT_THAT(elements<int32_t>(view(numbers.data() + 1, {3}, {0})), ElementsAre(1, 1, 1));
}

TEST(View, reads_matrices_in_their_storage_order) {
  const FakeMatrix columns{{1, 2, 3, 4, 5, 6}, 2, 3, false};
  const FakeMatrix rows{{1, 2, 3, 4, 5, 6}, 2, 3, true};
  EXPECT_THAT(view(columns).shape(), ElementsAre(2, 3));
  EXPECT_THAT(elements<float>(view(columns)), ElementsAre(1, 3, 5, 2, 4, 6));
  EXPECT_FALSE(view(columns).tensor().is_contiguous());
  EXPECT_THAT(elements<float>(view(rows)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_TRUE(view(rows).tensor().is_contiguous());
}

TEST(View, gives_vectors_of_a_matrix_library_one_axis) {
  const FakeVector column{{{1, 2, 3}, 3, 1, false}};
  const FakeVector row{{{1, 2, 3}, 1, 3, true}};
  EXPECT_THAT(view(column).shape(), ElementsAre(3));
  EXPECT_THAT(elements<float>(view(column)), ElementsAre(1, 2, 3));
  EXPECT_THAT(view(row).shape(), ElementsAre(3));
  EXPECT_THAT(elements<float>(view(row)), ElementsAre(1, 2, 3));
}

TEST(View, takes_element_types_that_the_program_declares) {
  const std::vector<my::Bfloat16> halves{{0x3f80}, {0xc000}};
  EXPECT_EQ(view(halves).tensor().dtype, DType::bfloat16);
  EXPECT_EQ(view(halves).tensor().size_bytes(), 4);
}

TEST(View, refuses_a_shape_that_the_elements_do_not_fill) {
  const std::vector<float> numbers(6);
  const View wrong = view(numbers, {2, 4});
  ASSERT_FALSE(wrong.status().ok());
  EXPECT_EQ(wrong.status().error().message, "6 elements do not fill the shape [2, 4].");
  EXPECT_FALSE(check(wrong.tensor()).ok());
  EXPECT_FALSE(view(numbers, {2, 0}).status().ok());
  EXPECT_FALSE(check(view(numbers, {2, 0}).tensor()).ok());
}

TEST(View, refuses_what_cannot_be_read) {
  const std::vector<float> numbers(6);
  EXPECT_THAT(view(numbers.data(), {2, -3}).status().error().message, HasSubstr("negative"));
  EXPECT_THAT(view(static_cast<const float*>(nullptr), {2}).status().error().message,
              HasSubstr("without data"));
  EXPECT_THAT(view(numbers.data(), {2, 3}, {1}).status().error().message, HasSubstr("1 strides"));
  EXPECT_THAT(view(numbers.data(), {2}, {INT64_MAX}).status().error().message,
              HasSubstr("too long"));
  const std::vector<int64_t> nine(9, 1);
  EXPECT_THAT(view(numbers.data(), nine).status().error().message, HasSubstr("at most 8 axes"));
  EXPECT_FALSE(View(DType::string, numbers.data(), {2}).status().ok());
}

TEST(View, keeps_its_shape_when_it_is_copied) {
  const std::vector<float> numbers{1, 2, 3, 4};
  auto original = std::make_unique<View>(view(numbers.data(), {2, 2}, {1, 2}));
  const View copy = *original;
  original.reset();
  EXPECT_THAT(elements<float>(copy), ElementsAre(1, 3, 2, 4));
}

TEST(View, takes_over_vectors_that_fill_their_shape) {
  const auto owned = own(std::vector<float>{1, 2, 3, 4}, {2, 2});
  ASSERT_TRUE(owned.ok());
  EXPECT_EQ(owned->shape, (Shape{2, 2}));
  EXPECT_EQ(owned->dtype, DType::float32);
  EXPECT_EQ(static_cast<const float*>(owned->data)[3], 4);
  EXPECT_FALSE(own(std::vector<float>{1, 2, 3, 4}, {3}).ok());
  EXPECT_EQ(own(std::vector<int32_t>{1, 2}).shape, (Shape{2}));
}

}  // namespace
}  // namespace smd
