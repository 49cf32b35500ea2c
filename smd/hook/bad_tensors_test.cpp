#include "smd/hook/bad_tensors.h"

#include <gtest/gtest.h>

#include <limits>

namespace smd {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class BadTensorsTest : public testing::Test {
 protected:
  bool see(Step step, const std::string& name, const std::vector<float>& values,
           const std::string& reduction = "max") {
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
    ReductionSet set;
    set.add(*parse_reduction(reduction));
    ReductionResult results;
    EXPECT_TRUE(reduce(view, {.reductions = set}, results).ok());
    return *bad.see({.step = step, .mode = Mode::train, .mode_step = step}, name, view, results);
  }
  BadTensors bad;
};

TEST_F(BadTensorsTest, names_the_first_one_and_lists_the_others_after_it) {
  EXPECT_FALSE(see(3, "a", {1, 2}));
  EXPECT_FALSE(bad.is_found());
  EXPECT_TRUE(see(3, "b", {1, kNan, kInf, -kInf, kNan}));
  EXPECT_FALSE(see(3, "c", {kNan}));
  EXPECT_TRUE(bad.is_found());
  EXPECT_EQ(bad.step().step, 3);
  EXPECT_EQ(bad.tensors().at(0).name, "b");
  EXPECT_EQ(bad.tensors().at(0).counts, (NonFinite{2, 1, 1}));
  EXPECT_EQ(bad.tensors().at(1).name, "c");
  EXPECT_EQ(bad.count(), 2);
  bad.mark_reported();
  EXPECT_FALSE(bad.is_found());
  EXPECT_FALSE(bad.is_looking());
}

TEST_F(BadTensorsTest, a_sum_that_overflows_is_no_bad_tensor) {
  EXPECT_FALSE(see(0, "large", {3e38f, 3e38f}, "sum"));
  EXPECT_FALSE(bad.is_found());
}

TEST_F(BadTensorsTest, takes_negative_infinities_of_the_first_step_for_masks) {
  EXPECT_FALSE(see(0, "mask", {0, -kInf}, "min"));
  bad.end_step(Mode::train);
  EXPECT_FALSE(see(1, "mask", {0, -kInf}, "min"));
  EXPECT_EQ(bad.masks().count("mask"), 1u);
  EXPECT_TRUE(see(1, "log", {0, -kInf}, "min")) << "it was finite at first";
}

TEST_F(BadTensorsTest, a_mask_that_becomes_nan_counts) {
  EXPECT_FALSE(see(0, "mask", {0, -kInf}, "min"));
  EXPECT_TRUE(see(0, "mask", {kNan, -kInf}, "min"));
}

TEST_F(BadTensorsTest, of_results_alone_the_counts_are_not_known) {
  const StepInfo step{.step = 4, .mode = Mode::train, .mode_step = 4};
  const auto value = [](double v) { return Number::real(DType::float32, v); };
  const std::pair<std::string, Number> overflow[] = {{"sum", value(kInf)}, {"max", value(3e38)}};
  EXPECT_FALSE(bad.see(step, "large", overflow));
  const std::pair<std::string, Number> nan[] = {{"mean", value(kNan)}};
  EXPECT_TRUE(bad.see(step, "w", nan));
  EXPECT_FALSE(bad.tensors().front().counts.has_value());
}

TEST_F(BadTensorsTest, lists_a_bounded_number) {
  for (int i = 0; i < 1000; ++i) see(0, std::to_string(i), {kNan});
  EXPECT_EQ(bad.count(), 1000);
  EXPECT_LE(bad.tensors().size(), BadTensors::kListed + 1);
}

}  // namespace
}  // namespace smd
