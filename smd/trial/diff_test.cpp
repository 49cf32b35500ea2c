#include "smd/trial/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "smd/base/json.h"
#include "smd/format/file_name.h"
#include "tests/support/planted_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class DiffTest : public testing::Test {
 protected:
  Diff diff(const DiffOptions& options = {}) {
    auto found = diff_trials(*a.trial(), *b.trial(), options);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return *found;
  }
  // The same in both runs.
  template <typename Write>
  void both(Step step, Write&& write) {
    for (PlantedRun* run : {&a, &b}) {
      auto planted = run->step(step);
      write(planted);
    }
  }

  PlantedRun a;
  PlantedRun b;
};

std::vector<std::string> tensors_of(const std::vector<Difference>& table) {
  std::vector<std::string> out;
  for (const auto& found : table) out.push_back(found.tensor);
  return out;
}

TEST_F(DiffTest, identical_runs_are_equal) {
  for (Step step = 0; step < 3; ++step) {
    both(step, [](PlantedStep& s) {
      s.floats("w", {1, NAN, 3}).reduction("w", "mean", 2).strings("t", {"x"}).shape("s", {2, 3});
    });
  }
  const Diff found = diff();
  EXPECT_TRUE(found.equal());
  EXPECT_FALSE(found.first);
  EXPECT_THAT(found.table, IsEmpty());
  EXPECT_EQ(found.compared.steps, 3);
  EXPECT_EQ(found.compared.tensors, 3);
  EXPECT_EQ(found.compared.values, 6);
  EXPECT_EQ(found.compared.elements, 12);
  EXPECT_EQ(found.compared.reductions, 3);
  EXPECT_EQ(found.compared.shapes, 3);
  EXPECT_EQ(
      dump_json(found.compared.to_json()),
      R"({"steps": 3, "tensors": 3, "values": 6, "elements": 12, "reductions": 3, "shapes": 3})");
}

TEST_F(DiffTest, two_empty_runs_are_equal) { EXPECT_TRUE(diff().equal()); }

TEST_F(DiffTest, one_changed_element_is_named) {
  for (Step step = 0; step < 4; ++step) {
    both(step, [](PlantedStep& s) { s.floats("x", {1}); });
  }
  std::vector<float> values(5000, 2);
  a.step(4).floats("x", {1}).floats("y", values);
  values[4321] = 3;
  b.step(4).floats("x", {1}).floats("y", values);
  const Diff found = diff();
  EXPECT_FALSE(found.equal());
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->tensor, "y");
  EXPECT_EQ(found.first->step.step, 4);
  EXPECT_EQ(found.first->worker, "worker_0");
  EXPECT_EQ(found.first->kind, DifferenceKind::value);
  EXPECT_EQ(found.first->elements.first, 4321);
  EXPECT_EQ(found.first->elements.differing, 1);
  EXPECT_EQ(found.first->elements.max_absolute, 1);
  EXPECT_EQ(found.differing_tensors, 1);
  EXPECT_THAT(tensors_of(found.table), ElementsAre("y"));
}

TEST_F(DiffTest, the_first_difference_is_the_earliest_in_the_order_of_writing) {
  // Names and numbers of tensors are in another order than their writing at step 2.
  both(1, [](PlantedStep& s) { s.floats("a", {1}).floats("m", {1}).floats("z", {1}); });
  a.step(2).floats("z", {1}).floats("m", {1}).reduction("a", "mean", 1);
  b.step(2).floats("z", {1}).floats("m", {2}).reduction("a", "mean", 9);
  a.step(3).floats("a", {1});
  b.step(3).floats("a", {100});
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->tensor, "m");
  EXPECT_EQ(found.first->step.step, 2);
}

TEST_F(DiffTest, the_table_has_the_worst_step_of_each_tensor) {
  for (Step step = 0; step < 3; ++step) {
    both(step, [&](PlantedStep& s) { s.floats("same", {1}); });
  }
  a.step(3).floats("x", {100}).floats("y", {100}).floats("z", {100});
  b.step(3).floats("x", {101}).floats("y", {200}).floats("z", {100});
  a.step(4).floats("x", {100}).floats("y", {100});
  b.step(4).floats("x", {110}).floats("y", {101});
  const Diff found = diff();
  EXPECT_THAT(tensors_of(found.table), ElementsAre("y", "x"));
  EXPECT_EQ(found.table[0].step.step, 3);
  EXPECT_EQ(found.table[0].occurrences, 2);
  EXPECT_EQ(found.table[1].step.step, 4);
  EXPECT_EQ(found.table[1].elements.max_absolute, 10);

  const Diff shorter = diff({.top = 1});
  EXPECT_THAT(tensors_of(shorter.table), ElementsAre("y"));
  EXPECT_EQ(shorter.differing_tensors, 2);
}

TEST_F(DiffTest, a_value_says_more_than_its_reductions) {
  a.step(0).reduction("x", "min", 1).floats("x", {100}).reduction("r", "abs_max", 4);
  b.step(0).reduction("x", "min", -1).floats("x", {101}).reduction("r", "abs_max", 5);
  const Diff found = diff();
  EXPECT_EQ(found.first->reduction, "min");
  ASSERT_THAT(found.table, SizeIs(2));
  EXPECT_EQ(found.table[0].tensor, "r");
  EXPECT_EQ(found.table[0].reduction, "abs_max");
  EXPECT_EQ(found.table[1].kind, DifferenceKind::value);
  EXPECT_EQ(found.table[1].occurrences, 1);
}

TEST_F(DiffTest, runs_of_reductions_alone_are_compared) {
  a.step(0).reduction("x", "mean", 1).reduction("x", "l2", 7);
  b.step(0).reduction("x", "mean", 1).reduction("x", "l2", 8);
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->kind, DifferenceKind::reduction);
  EXPECT_EQ(found.first->reduction, "l2");
  EXPECT_EQ(found.compared.reductions, 2);
  EXPECT_EQ(found.compared.values, 0);
}

TEST_F(DiffTest, a_nan_in_one_run_comes_first_in_the_table) {
  a.step(0).floats("x", {1, 2}).floats("y", {1});
  b.step(0).floats("x", {1, NAN}).floats("y", {1000});
  const Diff found = diff();
  EXPECT_THAT(tensors_of(found.table), ElementsAre("x", "y"));
  EXPECT_EQ(found.table[0].elements.nan_only_in_b, 1);
  EXPECT_EQ(found.table[0].elements.max_relative, kInfinity);
}

TEST_F(DiffTest, other_element_types_and_shapes_are_told) {
  a.step(0).floats("d", {1}).tensor<float>("s", DType::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  b.step(0)
      .tensor<double>("d", DType::float64, {1}, {1})
      .tensor<float>("s", DType::float32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const Diff found = diff({.tolerance = {.absolute = 1e9}});
  ASSERT_THAT(found.table, SizeIs(2));
  EXPECT_EQ(found.table[0].kind, DifferenceKind::dtype);
  EXPECT_EQ(found.table[0].a, "float32[1]");
  EXPECT_EQ(found.table[0].b, "float64[1]");
  EXPECT_EQ(found.table[1].kind, DifferenceKind::shape);
  EXPECT_EQ(found.table[1].a, "float32[2, 3]");
  EXPECT_EQ(found.table[1].b, "float32[3, 2]");
}

TEST_F(DiffTest, shapes_without_values_are_compared) {
  a.step(0).shape("s", {2, 3}).shape("t", {1});
  b.step(0).shape("s", {2, 4}).shape("t", {1});
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->kind, DifferenceKind::shape);
  EXPECT_EQ(found.first->b, "[2, 4]");
  EXPECT_EQ(found.compared.shapes, 2);
}

TEST_F(DiffTest, texts_are_compared) {
  a.step(0).strings("t", {"same", "one"});
  b.step(0).strings("t", {"same", "two"});
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->kind, DifferenceKind::strings);
  EXPECT_EQ(found.first->elements.first, 1);
  EXPECT_EQ(found.first->a, "one");
  EXPECT_EQ(found.first->b, "two");
}

TEST_F(DiffTest, tolerances_forgive) {
  a.step(0).floats("x", {100}).reduction("x", "mean", 100);
  b.step(0).floats("x", {101}).reduction("x", "mean", 101);
  EXPECT_FALSE(diff().equal());
  EXPECT_FALSE(diff({.tolerance = {.absolute = 0.5}}).equal());
  EXPECT_TRUE(diff({.tolerance = {.absolute = 1}}).equal());
  EXPECT_TRUE(diff({.tolerance = {.relative = 0.01}}).equal());
}

TEST_F(DiffTest, tolerances_below_zero_are_refused) {
  for (const Tolerance& wrong : {Tolerance{.absolute = -1}, Tolerance{.relative = NAN}}) {
    const auto found = diff_trials(*a.trial(), *b.trial(), {.tolerance = wrong});
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.error().code, ErrorCode::invalid_argument);
  }
}

TEST_F(DiffTest, steps_belong_together_by_mode_and_mode_step) {
  // B has no evaluation in between, so its global steps are others.
  a.step({.step = 0, .mode = Mode::train, .mode_step = 0}).scalar("loss", 1);
  a.step({.step = 1, .mode = Mode::eval, .mode_step = 0}).scalar("loss", 5);
  a.step({.step = 2, .mode = Mode::train, .mode_step = 1}).scalar("loss", 2);
  b.step({.step = 0, .mode = Mode::train, .mode_step = 0}).scalar("loss", 1);
  b.step({.step = 1, .mode = Mode::train, .mode_step = 1}).scalar("loss", 3);
  b.step({.step = 2, .mode = Mode::train, .mode_step = 2}).scalar("loss", 9);
  const Diff found = diff();
  EXPECT_EQ(found.compared.steps, 2);
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->step.step, 2);
  EXPECT_EQ(found.first->step_in_b, 1);
  ASSERT_THAT(found.only_in_a.steps, SizeIs(1));
  EXPECT_EQ(found.only_in_a.steps[0].mode, Mode::eval);
  ASSERT_THAT(found.only_in_b.steps, SizeIs(1));
  EXPECT_EQ(found.only_in_b.steps[0].step, 2);

  const Diff eval = diff({.mode = Mode::eval});
  EXPECT_EQ(eval.compared.steps, 0);
  EXPECT_FALSE(eval.first);
  EXPECT_THAT(eval.only_in_b.steps, IsEmpty());
}

TEST_F(DiffTest, what_only_one_run_holds_is_listed) {
  a.step(0).floats("x", {1}).floats("a1", {1}).reduction("x", "mean", 1);
  b.step(0).floats("x", {1}).floats("b1", {1});
  a.step(1).floats("x", {1});
  b.step(1).floats("b2", {1});
  const Diff found = diff();
  EXPECT_FALSE(found.equal());
  EXPECT_FALSE(found.first);
  EXPECT_THAT(found.only_in_a.tensors, ElementsAre("a1"));
  EXPECT_THAT(found.only_in_b.tensors, ElementsAre("b1", "b2"));
  ASSERT_THAT(found.only_in_a.records, SizeIs(1));
  EXPECT_EQ(found.only_in_a.records[0].tensor, "x");
  EXPECT_EQ(found.only_in_a.records[0].count, 2);
  EXPECT_EQ(found.only_in_a.records[0].first.step, 0);
  EXPECT_THAT(found.only_in_b.records, IsEmpty());
}

TEST_F(DiffTest, workers_belong_together_by_name) {
  for (const char* worker : {"worker_0", "worker_1"}) a.step(0, worker).floats("x", {1});
  b.step(0, "worker_0").floats("x", {1});
  b.step(0, "worker_1").floats("x", {2});
  b.step(0, "worker_2").floats("x", {3});
  a.step(1, "worker_0").floats("x", {1});
  b.step(1, "worker_0").floats("x", {1});
  b.step(1, "worker_1").floats("x", {1});
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->worker, "worker_1");
  EXPECT_THAT(found.only_in_a.workers, IsEmpty());
  EXPECT_THAT(found.only_in_b.workers, ElementsAre("worker_2"));
  ASSERT_THAT(found.only_in_b.records, SizeIs(1));
  EXPECT_EQ(found.only_in_b.records[0].first.step, 1);
  EXPECT_EQ(found.only_in_b.records[0].count, 1);
}

TEST_F(DiffTest, single_workers_belong_together_whatever_their_names) {
  a.step(0, "alpha").floats("x", {1});
  b.step(0, "beta").floats("x", {2});
  const Diff found = diff();
  ASSERT_TRUE(found.first);
  EXPECT_EQ(found.first->worker, "alpha");
  EXPECT_THAT(found.only_in_a.workers, IsEmpty());
}

TEST_F(DiffTest, patterns_choose_tensors) {
  a.step(0).floats("conv/w", {1}).floats("dense/w", {1}).floats("dense/only", {1});
  b.step(0).floats("conv/w", {2}).floats("dense/w", {1});
  EXPECT_FALSE(diff().equal());
  EXPECT_TRUE(diff({.patterns = {"^dense/w", "nothing"}}).equal());
  EXPECT_EQ(diff({.patterns = {"^dense/w", "nothing"}}).compared.values, 1);
  const auto wrong = diff_trials(*a.trial(), *b.trial(), {.patterns = {"("}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_argument);
}

TEST_F(DiffTest, progress_is_told_and_can_stop) {
  for (Step step = 0; step < 4; ++step) {
    both(step, [](PlantedStep& s) { s.floats("x", {1}); });
  }
  std::vector<std::pair<int64_t, int64_t>> calls;
  DiffOptions options;
  options.progress = [&](int64_t done, int64_t total) {
    calls.emplace_back(done, total);
    return done < 2;
  };
  const Diff found = diff(options);
  EXPECT_THAT(calls, ElementsAre(std::pair(1, 4), std::pair(2, 4)));
  EXPECT_TRUE(found.stopped);
  EXPECT_FALSE(found.equal());
  EXPECT_EQ(found.compared.steps, 2);
}

TEST_F(DiffTest, a_missing_file_is_an_error) {
  both(0, [](PlantedStep& s) { s.floats("x", {1}); });
  const auto trial = b.trial();
  const std::string file = format::event_file_name(0, "worker_0");
  ASSERT_TRUE(b.storage->remove(file).ok());
  const auto found = diff_trials(*a.trial(), *trial, {});
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(found.error().message, HasSubstr(file));
}

}  // namespace
}  // namespace smd
