#include "smd/server/slice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace smd::server {
namespace {

using testing::ElementsAre;

// The elements of a slice of 0, 1, 2, … in the shape.
std::vector<int32_t> sliced(const std::string& text, const Shape& shape) {
  std::vector<int32_t> whole(static_cast<size_t>(*element_count(shape)));
  std::iota(whole.begin(), whole.end(), 0);
  const auto places = parse_slice(text, shape);
  EXPECT_TRUE(places.ok()) << text;
  if (!places.ok()) return {};
  // What is printed is read as the same.
  EXPECT_EQ(*parse_slice(slice_text(*places), shape), *places);
  Shape slice;
  std::vector<int64_t> strides;
  const TensorView view = slice_view({.data = whole.data(), .dtype = DType::int32, .shape = shape},
                                     *places, slice, strides);
  EXPECT_EQ(slice, slice_shape(*places));
  std::vector<int32_t> out(static_cast<size_t>(view.size()));
  gather(view, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

TEST(Slice, without_text_everything_is_taken) {
  EXPECT_THAT(sliced("", {2, 2}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(sliced("", {}), ElementsAre(0));
}

TEST(Slice, numbers_drop_their_dimension_and_count_from_the_end) {
  EXPECT_THAT(sliced("1", {2, 3}), ElementsAre(3, 4, 5));
  EXPECT_THAT(sliced("-1,0", {2, 3}), ElementsAre(3));
  EXPECT_EQ(slice_shape(*parse_slice("1", {2, 3})), (Shape{3}));
}

TEST(Slice, ranges_are_cut_and_have_steps) {
  EXPECT_THAT(sliced(":,1:", {2, 3}), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(sliced("::2", {5}), ElementsAre(0, 2, 4));
  EXPECT_THAT(sliced("-2:100", {5}), ElementsAre(3, 4));
  EXPECT_THAT(sliced("3:1", {5}), ElementsAre());
  EXPECT_THAT(sliced("1::99999999999999999999", {5}), ElementsAre(1));
  EXPECT_THAT(sliced(":", {0}), ElementsAre());
}

TEST(Slice, wrong_texts_are_errors) {
  for (const char* text :
       {"5", "-6", "a", "1,", ",", "::0", "::-1", "1:2:3:4", "1,1", "1 ", "0x1"}) {
    const auto places = parse_slice(text, {5});
    ASSERT_FALSE(places.ok()) << text;
    EXPECT_EQ(places.error().code, ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace smd::server
