#include "smd/rules/classes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace smd::rules {
namespace {

using testing::ElementsAre;

std::vector<int64_t> labels_of(const std::vector<double>& numbers, const Shape& shape) {
  const auto out = label_classes({.data = numbers.data(), .dtype = DType::float64, .shape = shape});
  EXPECT_TRUE(out.ok());
  return out.ok() ? *out : std::vector<int64_t>();
}

std::vector<int64_t> predictions_of(const std::vector<double>& numbers, const Shape& shape,
                                    bool is_scores) {
  const auto out = predicted_classes(
      {.data = numbers.data(), .dtype = DType::float64, .shape = shape}, is_scores);
  EXPECT_TRUE(out.ok());
  return out.ok() ? *out : std::vector<int64_t>();
}

TEST(Classes, labels_are_classes_or_one_hot) {
  EXPECT_THAT(labels_of({2, 0, -1}, {3}), ElementsAre(2, 0, -1));
  EXPECT_THAT(labels_of({2, 0}, {2, 1}), ElementsAre(2, 0));
  EXPECT_THAT(labels_of({0, 0, 1, 1, 0, 0}, {2, 3}), ElementsAre(2, 0));
  // One axis alone is a list of labels, and two ones are no one-hot vector.
  EXPECT_THAT(labels_of({0, 1, 0}, {3}), ElementsAre(0, 1, 0));
  EXPECT_THAT(labels_of({1, 1, 0, 0}, {2, 2}), ElementsAre(1, 1, 0, 0));
}

TEST(Classes, labels_with_a_fraction_are_refused) {
  for (double number : {0.5, double{NAN}, double{INFINITY}}) {
    const Shape shape = {1};
    const auto out = label_classes({.data = &number, .dtype = DType::float64, .shape = shape});
    ASSERT_FALSE(out.ok()) << number;
    EXPECT_EQ(out.error().code, ErrorCode::unsupported);
  }
}

TEST(Classes, predictions_go_to_the_nearest_class) {
  EXPECT_THAT(predictions_of({0.49, 0.5, 1.2, -0.2, NAN, INFINITY}, {6}, false),
              ElementsAre(0, 1, 1, 0, kNoClass, kNoClass));
}

TEST(Classes, the_largest_score_wins) {
  EXPECT_THAT(predictions_of({0.1, 0.7, 0.2, 3, 1, 3, 1, NAN, 2}, {3, 3}, true),
              ElementsAre(1, 0, kNoClass));
}

}  // namespace
}  // namespace smd::rules
