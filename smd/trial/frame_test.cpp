#include "smd/trial/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "smd/format/file_name.h"
#include "tests/support/planted_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// "step worker tensor column=number …", one line per row.
std::vector<std::string> lines_of(const Frame& frame, const FrameBatch& batch) {
  const auto columns = frame.number_columns();
  EXPECT_EQ(batch.numbers.size(), columns.size());
  std::vector<std::string> out;
  for (size_t row = 0; row < batch.step.size(); ++row) {
    std::string line = std::to_string(batch.step[row]) + " " +
                       frame.worker_names()[static_cast<size_t>(batch.worker[row])] + " " +
                       frame.tensor_names()[static_cast<size_t>(batch.tensor[row])];
    for (size_t c = 0; c < columns.size(); ++c) {
      if ((batch.numbers[c].validity[row / 8] >> row % 8 & 1) == 0) continue;
      char text[32];
      std::snprintf(text, sizeof text, "%g", batch.numbers[c].values[row]);
      line += " " + columns[c] + "=" + text;
    }
    out.push_back(line);
  }
  return out;
}

Frame frame_of(const PlantedRun& run, FrameOptions options = {}) {
  auto frame = Frame::create(run.trial(), std::move(options));
  EXPECT_TRUE(frame.ok()) << frame.error().message;
  return *frame;
}

std::vector<std::string> table(const Frame& frame, size_t batch_rows = FrameReader::kBatchRows) {
  FrameReader reader(frame, batch_rows);
  std::vector<std::string> out;
  while (true) {
    auto batch = reader.next();
    EXPECT_TRUE(batch.ok()) << batch.error().message;
    if (!batch.ok() || !*batch) return out;
    EXPECT_GT((*batch)->rows(), 0);
    for (auto& line : lines_of(frame, **batch)) out.push_back(std::move(line));
  }
}

std::vector<std::string> table(const PlantedRun& run, FrameOptions options = {}) {
  return table(frame_of(run, std::move(options)));
}

TEST(FrameTest, stored_reductions_and_single_numbers_become_columns) {
  PlantedRun run;
  run.step(0).reduction("w", "mean", 2).reduction("w", "abs_max", 3).scalar("loss", 0.5);
  run.step(1).floats("one", {7}).reduction("w", "mean", 4);
  EXPECT_THAT(frame_of(run).number_columns(), ElementsAre("mean", "abs_max", "value"));
  EXPECT_THAT(table(run), ElementsAre("0 worker_0 loss value=0.5", "0 worker_0 w mean=2 abs_max=3",
                                      "1 worker_0 one value=7", "1 worker_0 w mean=4"));
}

TEST(FrameTest, tensors_without_numbers_have_no_row) {
  PlantedRun run;
  run.step(0).floats("two", {1, 2}).strings("text", {"a"}).shape("shape", {3});
  run.step(0, "worker_1").tensor<float>("z", DType::complex64, {}, {1, 2}).floats("none", {});
  EXPECT_THAT(table(run), IsEmpty());
  EXPECT_THAT(frame_of(run).number_columns(), ElementsAre("value"));
}

TEST(FrameTest, reductions_are_computed_only_when_asked_for) {
  PlantedRun run;
  run.step(0).floats("x", {1, -4, 6}).reduction("x", "max", 99);
  EXPECT_THAT(table(run), ElementsAre("0 worker_0 x max=99"));
  EXPECT_THAT(table(run, {.reductions = {"mean", "abs_min", "max"}}),
              ElementsAre("0 worker_0 x mean=1 abs_min=1 max=99"));
  EXPECT_THAT(frame_of(run, {.reductions = {"l2_norm", "l2"}}).number_columns(),
              ElementsAre("l2", "value"));
}

TEST(FrameTest, texts_and_empty_tensors_have_nothing_to_compute) {
  PlantedRun run;
  run.step(0).strings("text", {"a", "b"}).floats("none", {}).floats("x", {2, 4});
  EXPECT_THAT(table(run, {.reductions = {"mean"}}), ElementsAre("0 worker_0 x mean=3"));
}

TEST(FrameTest, a_named_value_column_comes_alone) {
  PlantedRun run;
  run.step(0).scalar("loss", 1).reduction("w", "mean", 4);
  EXPECT_THAT(table(run, {.reductions = {"value"}}), ElementsAre("0 worker_0 loss value=1"));
}

TEST(FrameTest, rows_are_sorted_by_step_worker_and_tensor) {
  PlantedRun run;
  run.step(10, "worker_1").scalar("a", 1).scalar("b", 2);
  run.step(10, "worker_0").scalar("b", 3).scalar("a", 4);
  run.step(9, "worker_1").scalar("c", 5);
  EXPECT_THAT(table(run),
              ElementsAre("9 worker_1 c value=5", "10 worker_0 a value=4", "10 worker_0 b value=3",
                          "10 worker_1 a value=1", "10 worker_1 b value=2"));
}

TEST(FrameTest, listed_tensors_come_in_the_order_of_the_list) {
  PlantedRun run;
  run.step(0).scalar("a", 1).scalar("b", 2).scalar("c", 3);
  const auto now = run.trial()->snapshot();
  const std::vector<uint32_t> tensors = {*now->find_tensor("c"), *now->find_tensor("a")};
  EXPECT_THAT(table(run, {.tensors = tensors}),
              ElementsAre("0 worker_0 c value=3", "0 worker_0 a value=1"));
  EXPECT_THAT(table(run, {.tensors = std::vector<uint32_t>()}), IsEmpty());
}

TEST(FrameTest, mode_worker_and_range_narrow_the_table) {
  PlantedRun run;
  for (Step step = 0; step < 6; ++step) {
    const Mode mode = step % 2 == 0 ? Mode::train : Mode::eval;
    for (const char* worker : {"worker_0", "worker_1"}) {
      run.step({.step = step, .mode = mode, .mode_step = step / 2}, worker)
          .scalar("x", static_cast<double>(step));
    }
  }
  EXPECT_THAT(table(run), SizeIs(12));
  EXPECT_THAT(table(run, {.worker = "worker_1", .steps = {.begin = 2, .end = 4}}),
              ElementsAre("2 worker_1 x value=2", "3 worker_1 x value=3"));
  // Steps are those of the mode.
  EXPECT_THAT(
      table(run, {.mode = Mode::eval, .worker = "worker_0", .steps = {.begin = 1, .end = 3}}),
      ElementsAre("3 worker_0 x value=3", "5 worker_0 x value=5"));
}

TEST(FrameTest, nan_and_infinity_are_numbers) {
  PlantedRun run;
  run.step(0).scalar("nan", std::nan("")).scalar("inf", -std::numeric_limits<double>::infinity());
  EXPECT_THAT(table(run), ElementsAre("0 worker_0 inf value=-inf", "0 worker_0 nan value=nan"));
}

TEST(FrameTest, every_kind_of_number_is_read) {
  PlantedRun run;
  run.step(0)
      .tensor<uint8_t>("bool", DType::boolean, {}, {1})
      .tensor<int64_t>("int64", DType::int64, {1, 1}, {-5})
      .tensor<uint16_t>("half", DType::float16, {1}, {0x3E00})
      .tensor<uint16_t>("bfloat16", DType::bfloat16, {}, {0x4040});
  EXPECT_THAT(table(run), ElementsAre("0 worker_0 bfloat16 value=3", "0 worker_0 bool value=1",
                                      "0 worker_0 half value=1.5", "0 worker_0 int64 value=-5"));
}

TEST(FrameTest, single_numbers_of_rank_eight_with_long_names_are_found) {
  PlantedRun run;
  const std::string name(500, 'n');
  run.step(0).tensor<float>(name, DType::float32, {1, 1, 1, 1, 1, 1, 1, 1}, {3});
  EXPECT_THAT(table(run), ElementsAre("0 worker_0 " + name + " value=3"));
}

TEST(FrameTest, small_batches_join_to_the_same_table) {
  PlantedRun run;
  for (Step step = 0; step < 40; ++step) {
    run.step(step)
        .scalar("a", static_cast<double>(step))
        .reduction("w", "min", 1)
        .floats("v", {1, 2});
  }
  const Frame frame = frame_of(run);
  const auto whole = table(frame);
  EXPECT_THAT(whole, SizeIs(80));
  EXPECT_EQ(table(frame, 1), whole);
  EXPECT_EQ(table(frame, 7), whole);

  // Two steps: a vector counts as a row before it is read.
  FrameReader reader(frame, 6);
  EXPECT_EQ((**reader.next()).rows(), 4);
}

TEST(FrameTest, many_layouts_are_read_right) {
  PlantedRun run;
  std::vector<std::string> expected;
  for (Step step = 0; step < 150; ++step) {
    const std::string name = "x" + std::string(static_cast<size_t>(step), 'y');
    run.step(step).scalar(name, static_cast<double>(step));
    expected.push_back(std::to_string(step) + " worker_0 " + name +
                       " value=" + std::to_string(step));
  }
  EXPECT_EQ(table(run), expected);
}

TEST(FrameTest, a_frame_shows_what_was_known_when_it_was_made) {
  PlantedRun run;
  run.step(0).scalar("a", 1);
  const auto trial = run.trial();
  const auto frame = Frame::create(trial, {});
  run.step(1).scalar("b", 1);
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_THAT(table(*frame), SizeIs(1));
  EXPECT_THAT(table(*Frame::create(trial, {})), SizeIs(2));
}

TEST(FrameTest, wrong_names_are_told_with_the_nearest) {
  PlantedRun run;
  run.step(0).scalar("a", 1);
  const auto error = [&](FrameOptions options) {
    auto frame = Frame::create(run.trial(), std::move(options));
    EXPECT_FALSE(frame.ok());
    return frame.ok() ? Error{} : frame.error();
  };
  EXPECT_THAT(error({.reductions = {"meann"}}).message, HasSubstr("'mean'"));
  EXPECT_THAT(error({.worker = "worker_9"}).message, HasSubstr("Did you mean 'worker_0'?"));
  EXPECT_THAT(error({.tensors = std::vector<uint32_t>{5}}).message, HasSubstr("number 5"));
  EXPECT_THAT(error({.tensors = std::vector<uint32_t>{0, 0}}).message, HasSubstr("'a'"));
  EXPECT_EQ(error({.worker = "w"}).code, ErrorCode::invalid_argument);
}

TEST(FrameTest, a_missing_file_is_an_error_and_the_rows_before_it_are_not_lost) {
  PlantedRun run;
  run.step(0).scalar("a", 1);
  run.step(1).scalar("a", 2);
  const Frame frame = frame_of(run);
  const std::string file = format::event_file_name(1, "worker_0");
  ASSERT_TRUE(run.storage->remove(file).ok());
  FrameReader reader(frame, 1);
  EXPECT_TRUE(reader.next().ok());
  const auto failed = reader.next();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr(file));
}

}  // namespace
}  // namespace smd
