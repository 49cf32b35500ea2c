#include "smd/trial/matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/planted_run.h"
#include "tests/support/planted_sink.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A run in memory whose steps one sink writes, in either layout.
class MatrixTest : public testing::TestWithParam<bool> {
 protected:
  MatrixTest() {
    // Several segments.
    sink_ =
        planted_sink({.storage = run_.storage, .packed = GetParam(), .max_segment_bytes = 2048});
    run_.collections();
  }

  void begin(Step step, Mode mode = Mode::train) {
    ASSERT_TRUE(sink_->begin_step({.step = step, .mode = mode, .mode_step = step}).ok());
  }
  void end() { ASSERT_TRUE(sink_->end_step().ok()); }

  template <typename T>
  void reduction(std::string_view tensor, std::string_view name, T value) {
    StoredReduction stored{.name = name, .dtype = dtype_of<T>()};
    store_le(stored.bits.data(), value);
    ASSERT_TRUE(sink_->reductions(tensor, 1, {&stored, 1}).ok());
  }
  template <typename T>
  void tensor(std::string_view name, const std::vector<T>& values) {
    const int64_t shape[] = {static_cast<int64_t>(values.size())};
    ASSERT_TRUE(sink_
                    ->tensor({.name = name, .dtype = dtype_of<T>(), .shape = shape},
                             std::as_bytes(std::span(values)))
                    .ok());
  }
  template <typename T>
  static DType dtype_of() {
    if constexpr (std::is_same_v<T, float>) return DType::float32;
    if constexpr (std::is_same_v<T, double>) return DType::float64;
    return DType::int64;
  }

  Result<Matrix> read(const MatrixOptions& options) {
    EXPECT_TRUE(sink_->close().ok());
    return read_matrix(*run_.trial(), options);
  }
  Matrix matrix(const MatrixOptions& options) {
    auto found = read(options);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? std::move(*found) : Matrix();
  }
  static std::vector<double> row(const Matrix& matrix, size_t i) {
    std::vector<double> out;
    for (size_t j = 0; j < matrix.columns(); ++j) {
      EXPECT_TRUE(matrix.has(i, j) || std::isnan(matrix.number(i, j)));
      out.push_back(matrix.has(i, j) ? matrix.number(i, j) : -1);
    }
    return out;
  }

  PlantedRun run_;
  std::unique_ptr<Sink> sink_;
};

INSTANTIATE_TEST_SUITE_P(Layouts, MatrixTest, testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "packed" : "original"; });

TEST_P(MatrixTest, many_steps_of_many_tensors_stand_in_their_places) {
  constexpr int kSteps = 300;
  constexpr int kTensors = 70;
  for (int step = 0; step < kSteps; ++step) {
    begin(step);
    // Not the order of names; every other step has another schema.
    for (int t = kTensors - 1; t >= step % 2; --t) {
      reduction("t" + std::to_string(100 + t), "mean", static_cast<float>(1000 * step + t));
      reduction("t" + std::to_string(100 + t), "max", static_cast<float>(-1));
    }
    end();
  }
  const Matrix found = matrix({.reduction = "mean"});
  ASSERT_EQ(found.rows(), kTensors);
  ASSERT_EQ(found.columns(), kSteps);
  EXPECT_EQ(found.dtype, GetParam() ? DType::float32 : DType::float64);
  for (size_t t = 0; t < kTensors; ++t) {
    EXPECT_EQ(found.names[t], "t" + std::to_string(100 + t));
    for (size_t step = 0; step < kSteps; ++step) {
      ASSERT_EQ(found.has(t, step), t > 0 || step % 2 == 0);
      if (!found.has(t, step)) continue;
      ASSERT_EQ(found.number(t, step), 1000 * step + t);
    }
  }
}

TEST_P(MatrixTest, every_element_type_is_a_number) {
  begin(0);
  reduction("f", "sum", 1.5f);
  reduction("d", "sum", 1e300);
  reduction("i", "sum", int64_t{1} << 40);
  end();
  begin(1);
  reduction("f", "sum", 2.5f);
  reduction("d", "sum", kNan);
  end();
  const Matrix found = matrix({.reduction = "sum"});
  EXPECT_THAT(found.names, ElementsAre("d", "f", "i"));
  EXPECT_EQ(found.dtype, DType::float64);
  EXPECT_THAT(row(found, 1), ElementsAre(1.5, 2.5));
  EXPECT_THAT(row(found, 2), ElementsAre(std::ldexp(1, 40), -1));
  EXPECT_EQ(found.number(0, 0), 1e300);
  EXPECT_TRUE(found.has(0, 1));
  EXPECT_TRUE(std::isnan(found.number(0, 1)));
}

TEST_P(MatrixTest, what_is_not_stored_is_computed) {
  for (int step = 0; step < 3; ++step) {
    begin(step);
    tensor<float>("raw", {1, 2, static_cast<float>(step)});
    if (step == 1) reduction("raw", "max", 50.f);
    end();
  }
  EXPECT_THAT(row(matrix({.reduction = "max"}), 0), ElementsAre(2, 50, 2));
  EXPECT_THAT(row(matrix({.reduction = "sum"}), 0), ElementsAre(3, 4, 5));
}

TEST_P(MatrixTest, values_are_those_of_single_numbers) {
  begin(3);
  tensor<double>("loss", {0.5});
  tensor<float>("raw", {1, 2});
  const std::string_view texts[] = {"a"};
  const int64_t one[] = {1};
  ASSERT_TRUE(sink_->strings({.name = "text", .shape = one}, texts).ok());
  end();
  begin(4);
  ASSERT_TRUE(sink_->strings({.name = "text", .shape = one}, texts).ok());
  end();
  const Matrix found = matrix({.reduction = "value"});
  EXPECT_THAT(found.names, ElementsAre("loss"));
  EXPECT_THAT(found.steps, ElementsAre(3));
  EXPECT_TRUE(found.present.empty());
  EXPECT_THAT(row(found, 0), ElementsAre(0.5));
}

TEST_P(MatrixTest, chosen_tensors_stay_even_without_numbers) {
  begin(0);
  reduction("a", "mean", 1.f);
  reduction("b", "max", 1.f);
  end();
  const Matrix found = matrix({.reduction = "mean", .tensors = std::vector<uint32_t>{1, 0}});
  EXPECT_THAT(found.names, ElementsAre("b", "a"));
  EXPECT_THAT(row(found, 0), ElementsAre(-1));
  EXPECT_THAT(row(found, 1), ElementsAre(1));
}

TEST_P(MatrixTest, modes_and_steps_choose_columns) {
  for (int step = 0; step < 6; ++step) {
    begin(step, step % 2 == 0 ? Mode::train : Mode::eval);
    reduction("a", "mean", static_cast<float>(step));
    end();
  }
  EXPECT_THAT(matrix({.reduction = "mean", .mode = Mode::eval}).steps, ElementsAre(1, 3, 5));
  EXPECT_THAT(
      matrix({.reduction = "mean", .mode = Mode::train, .steps = {.begin = 1, .end = 4}}).steps,
      ElementsAre(2));
}

TEST_P(MatrixTest, wrong_choices_are_named) {
  begin(0);
  reduction("a", "mean", 1.f);
  end();
  EXPECT_THAT(read({.reduction = "meen"}).error().message, HasSubstr("'mean'"));
  EXPECT_THAT(read({.reduction = "mean", .worker = "worker_1"}).error().message,
              HasSubstr("'worker_0'"));
  EXPECT_EQ(read({.reduction = "mean", .tensors = std::vector<uint32_t>{7}}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(read({.reduction = "mean", .tensors = std::vector<uint32_t>{0, 0}}).error().code,
            ErrorCode::invalid_argument);
}

TEST_P(MatrixTest, a_run_without_numbers_is_an_empty_matrix) {
  const Matrix found = matrix({.reduction = "mean"});
  EXPECT_EQ(found.rows(), 0);
  EXPECT_EQ(found.columns(), 0);
}

}  // namespace
}  // namespace smd
