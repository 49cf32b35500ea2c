// What the packed sink writes, the trial reads: whole, growing, torn and with files lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_log.h"
#include "smd/trial/trial.h"
#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {
namespace {

using storage::Put;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class PackedRunTest : public testing::Test {
 protected:
  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::unique_ptr<Sink> sink = make({});

  std::unique_ptr<Sink> make(PackedSinkOptions options, std::string worker = "worker_0") const {
    options.storage = storage;
    options.worker = std::move(worker);
    return packed_sink(std::move(options));
  }
  static Status save(Sink& to, Step step, float number) {
    SMD_RETURN_IF_ERROR(to.begin_step({.step = step, .mode = Mode::train, .mode_step = step}));
    StoredReduction min{.name = "min", .dtype = DType::float32};
    std::memcpy(min.bits.data(), &number, sizeof number);
    StoredReduction max{.name = "abs_max", .dtype = DType::float64};
    const double wide = double{number} * 2;
    std::memcpy(max.bits.data(), &wide, sizeof wide);
    SMD_RETURN_IF_ERROR(to.reductions("w", 3.5, {{min, max}}));
    const Shape none;
    const Shape many = {3};
    SMD_RETURN_IF_ERROR(to.tensor({.name = "loss", .shape = none, .wall_secs = 3.5},
                                  std::as_bytes(std::span(&number, 1))));
    const float raw[] = {number, 2, 3};
    SMD_RETURN_IF_ERROR(
        to.tensor({.name = "raw", .shape = many, .wall_secs = 3.5}, std::as_bytes(std::span(raw))));
    SMD_RETURN_IF_ERROR(to.shape("only_shape", "original", many));
    return to.end_step();
  }
  Status save(Step step, float number) const { return save(*sink, step, number); }

  std::unique_ptr<Trial> open(TrialOptions options = {}) const {
    auto trial = Trial::open(storage, std::move(options));
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    return std::move(*trial);
  }
  std::vector<Step> steps(TrialOptions options = {}) const {
    return open(std::move(options))->snapshot()->steps(Mode::global, true);
  }
  std::string path(std::string_view folder, size_t i = 0) const {
    return storage->list(folder, "")->at(i).path;
  }
  std::string text(const std::string& file) const {
    return std::string(as_text(*storage::read_all(*storage, file)));
  }
  void put(const std::string& file, std::string_view content) const {
    ASSERT_TRUE(storage->put(file, as_bytes(content), Put::always, {}).ok());
  }
  static void expect_values(Trial& trial, Step step, float number) {
    const auto loss = trial.value("loss", {.step = step});
    ASSERT_TRUE(loss.ok()) << loss.error().message;
    EXPECT_EQ(loss->shape, Shape{});
    EXPECT_EQ(load_le<float>(loss->elements.data()), number);
    EXPECT_EQ(trial.reduction("w", "min", {.step = step})->to_double(), double{number});
    EXPECT_EQ(trial.reduction("w", "abs_max", {.step = step})->to_double(), 2 * double{number});
    const auto raw = trial.value("raw", {.step = step});
    ASSERT_TRUE(raw.ok()) << raw.error().message;
    EXPECT_EQ(raw->shape, Shape{3});
    EXPECT_EQ(load_le<float>(raw->elements.data()), number);
    EXPECT_EQ(raw->wall_secs, 3.5);
  }
};

TEST_F(PackedRunTest, everything_that_was_saved_is_read) {
  for (Step step = 0; step < 3; ++step) ASSERT_TRUE(save(step, static_cast<float>(step)).ok());
  for (bool check : {false, true}) {
    auto trial = open({.check = check});
    for (Step step = 0; step < 3; ++step) expect_values(*trial, step, static_cast<float>(step));
    const auto series = trial->series("w", {.reduction = "abs_max", .incomplete = true});
    ASSERT_TRUE(series.ok());
    EXPECT_THAT(series->values, ElementsAre(0, 2, 4));
    const auto now = trial->snapshot();
    const auto* shape = now->find_shape(now->row(0), *now->find_tensor("only_shape"), std::nullopt);
    ASSERT_NE(shape, nullptr);
    EXPECT_EQ(shape->original_name, "original");
    EXPECT_EQ(shape->shape, Shape{3});
  }
}

TEST_F(PackedRunTest, tensors_are_described_wherever_their_step_begins) {
  const std::vector<float> many(10'000);
  const Shape shape = {100, 100};
  for (Step step = 0; step < 2; ++step) {
    ASSERT_TRUE(sink->begin_step({.step = step, .mode = Mode::train, .mode_step = step}).ok());
    ASSERT_TRUE(sink->tensor({.name = "large", .shape = shape, .wall_secs = 3.5},
                             std::as_bytes(std::span(many)))
                    .ok());
    ASSERT_TRUE(sink->end_step().ok());
  }
  const auto trial = open();
  const auto now = trial->snapshot();
  for (Step step = 0; step < 2; ++step) {
    const auto at = now->find(now->row(step), *now->find_tensor("large"), Slot::value(), {});
    const auto large = trial->describe(*now, *at);
    ASSERT_TRUE(large.ok()) << large.error().message;
    EXPECT_EQ(large->shape, shape);
    EXPECT_EQ(large->wall_secs, 3.5);
  }
}

TEST_F(PackedRunTest, equal_steps_share_a_layout) {
  for (Step step = 0; step < 9; ++step) ASSERT_TRUE(save(step, 1).ok());
  const auto now = open()->snapshot();
  for (uint32_t i = 2; i < now->part_count(); ++i) {
    EXPECT_EQ(&now->layout_of(now->part(i)), &now->layout_of(now->part(1)));
  }
}

TEST_F(PackedRunTest, a_growing_run_is_followed) {
  auto trial = open();  // nothing tells the layout yet
  EXPECT_TRUE(trial->refresh().ok());
  ASSERT_TRUE(save(0, 5).ok());
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 0, 5);
  ASSERT_TRUE(save(1, 6).ok());
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 1, 6);
  ASSERT_TRUE(sink->close().ok());
  sink = make({});
  ASSERT_TRUE(save(2, 7).ok());
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 2, 7);
}

TEST_F(PackedRunTest, a_log_that_is_cut_anywhere_holds_its_whole_steps) {
  std::vector<size_t> ends;
  for (Step step = 0; step < 3; ++step) {
    ASSERT_TRUE(save(step, 1).ok());
    ends.push_back(text(path("v2/log")).size());
  }
  const std::string log = path("v2/log");
  const std::string whole = text(log);
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    put(log, std::string_view(whole).substr(0, cut));
    const auto expected =
        std::count_if(ends.begin(), ends.end(), [&](size_t e) { return e <= cut; });
    ASSERT_EQ(std::ssize(steps()), expected) << cut;
  }
}

TEST_F(PackedRunTest, a_torn_tail_is_read_when_it_is_whole) {
  ASSERT_TRUE(save(0, 1).ok());
  ASSERT_TRUE(save(1, 2).ok());
  const std::string log = path("v2/log");
  const std::string whole = text(log);
  put(log, std::string_view(whole).substr(0, whole.size() - 1));
  auto trial = open();
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(0));
  put(log, whole);
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 1, 2);
}

TEST_F(PackedRunTest, a_segment_explains_itself_when_its_log_is_lost) {
  for (Step step = 0; step < 3; ++step) ASSERT_TRUE(save(step, static_cast<float>(step)).ok());
  const std::string open_segment = text(path("v2/seg"));
  ASSERT_TRUE(sink->close().ok());
  ASSERT_TRUE(storage->remove(path("v2/log")).ok());
  auto by_footer = open();
  for (Step step = 0; step < 3; ++step) expect_values(*by_footer, step, static_cast<float>(step));
  // The footer is lost, too, and the last step is torn.
  put(path("v2/seg"), std::string_view(open_segment).substr(0, open_segment.size() - 1));
  auto by_scan = open({.check = true});
  EXPECT_THAT(by_scan->snapshot()->steps(Mode::global, true), ElementsAre(0, 1));
  for (Step step = 0; step < 2; ++step) expect_values(*by_scan, step, static_cast<float>(step));
}

TEST_F(PackedRunTest, a_damaged_log_is_replaced_by_the_segment) {
  for (Step step = 0; step < 3; ++step) ASSERT_TRUE(save(step, static_cast<float>(step)).ok());
  const std::string log = path("v2/log");
  std::string damaged = text(log);
  damaged[damaged.size() / 2] ^= 1;
  put(log, damaged);
  EXPECT_THAT(steps(), ElementsAre(0, 1, 2));
}

TEST_F(PackedRunTest, checks_find_changed_numbers_and_records) {
  ASSERT_TRUE(save(0, 1234.5F).ok());
  const std::string segment = path("v2/seg");
  const std::string whole = text(segment);
  const float number = 1234.5F;
  const std::string_view bits(reinterpret_cast<const char*>(&number), sizeof number);
  std::string damaged = whole;
  damaged[whole.find(bits)] ^= 1;  // of the raw tensor, which comes first
  put(segment, damaged);
  EXPECT_TRUE(open()->value("raw", {.step = 0}).ok());
  const auto raw = open({.check = true})->value("raw", {.step = 0});
  ASSERT_FALSE(raw.ok());
  EXPECT_THAT(raw.error().message, HasSubstr("checksum"));
  damaged = whole;
  damaged[whole.rfind(bits)] ^= 1;
  put(segment, damaged);
  EXPECT_TRUE(open()->value("loss", {.step = 0}).ok());
  for (const auto& name : {"loss"}) {
    const auto value = open({.check = true})->value(name, {.step = 0});
    ASSERT_FALSE(value.ok());
    EXPECT_THAT(value.error().message, HasSubstr("The numbers of step 0"));
  }
  EXPECT_FALSE(open({.check = true})->series("w", {.reduction = "min", .incomplete = true}).ok());
}

TEST_F(PackedRunTest, the_later_life_of_a_worker_counts) {
  ASSERT_TRUE(save(0, 1).ok());
  ASSERT_TRUE(save(1, 1).ok());
  auto trial = open();
  auto later = make({});
  ASSERT_TRUE(save(*later, 1, 9).ok());
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 0, 1);
  expect_values(*trial, 1, 9);
  // The earlier one is not dead yet.
  ASSERT_TRUE(save(1, 2).ok());
  ASSERT_TRUE(trial->refresh().ok());
  expect_values(*trial, 1, 9);
  expect_values(*open(), 1, 9);
}

TEST_F(PackedRunTest, rolled_segments_are_one_run) {
  sink = make({.max_tensor_segment_bytes = 1500});
  for (Step step = 0; step < 10; ++step) ASSERT_TRUE(save(step, static_cast<float>(step)).ok());
  EXPECT_GT(storage->list("v2/seg", "")->size(), 2u);
  auto trial = open({.check = true});
  for (Step step = 0; step < 10; ++step) expect_values(*trial, step, static_cast<float>(step));
}

TEST_F(PackedRunTest, many_writers_are_one_run) {
  for (int i = 0; i < 40; ++i) {
    auto one = make({}, "worker_" + std::to_string(i));
    ASSERT_TRUE(save(*one, 0, static_cast<float>(i)).ok());
  }
  auto trial = open();
  const auto value = trial->value("loss", {.step = 0, .worker = "worker_33"});
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(load_le<float>(value->elements.data()), 33);
  EXPECT_EQ(trial->snapshot()->row(0).part_count, 40u);
}

TEST_F(PackedRunTest, a_directory_with_both_layouts_is_explained) {
  ASSERT_TRUE(save(0, 1).ok());
  auto original = original_sink({.storage = storage, .worker = "worker_0"});
  ASSERT_TRUE(save(*original, 0, 1).ok());
  const auto trial = Trial::open(storage, {});
  ASSERT_FALSE(trial.ok());
  EXPECT_THAT(trial.error().message, HasSubstr("two runs"));
}

TEST_F(PackedRunTest, a_run_of_a_later_release_is_explained) {
  const std::string writer = format::writer_name("worker_0", format::incarnation_text(1, 2));
  std::string log;
  format::append_log_entry(log, format::PackedHeader{.version = 2});
  put(format::log_file_name(writer, 0), log);
  const auto trial = Trial::open(storage, {});
  ASSERT_FALSE(trial.ok());
  EXPECT_EQ(trial.error().code, ErrorCode::unsupported);
  EXPECT_THAT(trial.error().message, HasSubstr("later release"));
}

}  // namespace
}  // namespace smd
