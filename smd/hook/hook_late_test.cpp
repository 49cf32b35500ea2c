// Tensors whose statistics and elements are still on their way when their step is over.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <limits>
#include <optional>

#include "smd/base/json.h"
#include "smd/hook/hook.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

// Comes when the test says so, or never.
class Parcel final : public LateTensor, public LateMemory {
 public:
  explicit Parcel(float value, NonFinite nonfinite = {}) : values(4, value) {
    results_.nonfinite = nonfinite;
    for (const char* name : {"min", "max"}) {
      results_.reductions.values.emplace_back(*parse_reduction(name),
                                              Number::real(DType::float32, value));
    }
  }
  void arrive() { arrived_.count_down(); }
  void fail() {
    failed_ = true;
    arrive();
  }

  bool has_results() const override { return taken_; }
  bool is_ready() const override { return arrived_.try_wait(); }
  size_t size_bytes() const override { return 100; }
  Result<const LateResults*> results() override {
    arrived_.wait();
    if (failed_) return Error{ErrorCode::unsupported, "The device is gone."};
    taken_ = true;
    return &results_;
  }
  Status wait() override {
    arrived_.wait();
    return failed_ ? Status(Error{ErrorCode::unsupported, "The device is gone."}) : Status();
  }

  void count(Histogram histogram) { results_.reductions.histogram = std::move(histogram); }

  std::vector<float> values;

 private:
  std::latch arrived_{1};
  std::atomic<bool> taken_{false};
  std::atomic<bool> failed_{false};
  LateResults results_;
};

// Notes the histograms that it is told of.
class ShownHistograms final : public Output {
 public:
  explicit ShownHistograms(std::vector<std::string>& lines) : lines_(lines) {}
  Status scalar(const StepInfo&, const SavedScalar&) override { return {}; }
  Status end_step() override { return {}; }
  Status close() override { return {}; }
  Status histogram(const StepInfo& step, const SavedHistogram& saved) override {
    lines_.push_back(fmt::format("{} {} {}", step.step, saved.name, saved.histogram.counts[0]));
    return {};
  }

 private:
  std::vector<std::string>& lines_;
};

class HookLateTest : public testing::Test {
 protected:
  HookOptions options() const {
    HookOptions o;
    o.log = log;
    o.environment = Environment();
    o.storage = storage;
    o.config.save_all = true;
    o.config.save_config = *SaveConfig::broadcast({.save_interval = 1});
    o.config.reduction_config = *ReductionConfig::create({.reductions = {"min", "max"}});
    return o;
  }
  static std::unique_ptr<Hook> make(HookOptions o) {
    auto hook = Hook::create(std::move(o));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  static std::shared_ptr<Parcel> save(Hook& hook, std::string_view name, float value,
                                      NonFinite nonfinite = {}) {
    auto parcel = std::make_shared<Parcel>(value, nonfinite);
    EXPECT_TRUE(hook.save_late(name, parcel).ok());
    return parcel;
  }
  std::vector<float> reductions(Step step, const std::string& name) const {
    return RecordedRun(storage).values<float>(step, name);
  }
  std::string bad_tensor_file() const {
    const auto files = storage->list("findings", "");
    if (!files.ok() || files->empty()) return {};
    return std::string(as_text(*storage::read_all(*storage, files->front().path)));
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<Lines> log = std::make_shared<Lines>();
};

TEST_F(HookLateTest, the_training_goes_on_and_every_step_gets_its_own_values) {
  auto hook = make(options());
  std::vector<std::shared_ptr<Parcel>> parcels;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    parcels.push_back(save(*hook, "w", static_cast<float>(i)));
  }
  ASSERT_TRUE(hook->end_step().ok());
  EXPECT_EQ(hook->committed_steps(), 0);  // nothing has come, and nobody has waited
  for (const auto& parcel : parcels) parcel->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(RecordedRun(storage).steps(), ElementsAre(0, 1, 2));
  for (Step step = 0; step < 3; ++step) {
    EXPECT_THAT(reductions(step, "smdebug/reductions/min/w"),
                ElementsAre(static_cast<float>(step)));
  }
}

TEST_F(HookLateTest, a_device_that_fails_costs_its_step_and_no_other) {
  auto hook = make(options());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    auto parcel = save(*hook, "w", 1);
    if (i == 1) {
      parcel->fail();
    } else {
      parcel->arrive();
    }
  }
  const Status closed = hook->close();
  ASSERT_FALSE(closed.ok());
  EXPECT_THAT(closed.error().message, HasSubstr("The device is gone."));
  EXPECT_THAT(RecordedRun(storage).steps(), ElementsAre(0, 2));
}

TEST_F(HookLateTest, a_bad_tensor_is_found_when_its_counts_come) {
  auto hook = make(options());
  ASSERT_TRUE(hook->begin_step().ok());
  auto good = save(*hook, "w", 1);
  ASSERT_TRUE(hook->begin_step().ok());
  auto bad = save(*hook, "w", 1, {.nan = 3});
  auto after = save(*hook, "v", 1, {.positive_inf = 1});
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_FALSE(hook->first_bad_tensor().has_value());
  auto next = save(*hook, "u", 1, {.nan = 1});
  for (const auto& parcel : {good, bad, after, next}) parcel->arrive();
  ASSERT_TRUE(hook->close().ok());
  const std::string found = bad_tensor_file();
  EXPECT_THAT(found, HasSubstr("\"w\""));
  EXPECT_THAT(found, HasSubstr("\"v\""));
  EXPECT_THAT(found, Not(HasSubstr("\"u\"")));  // of a later step
}

TEST_F(HookLateTest, masks_of_the_first_step_are_no_bad_tensors_although_they_come_late) {
  auto hook = make(options());
  ASSERT_TRUE(hook->begin_step().ok());
  auto first = save(*hook, "mask", 0, {.negative_inf = 2});
  ASSERT_TRUE(hook->begin_step().ok());
  auto second = save(*hook, "mask", 0, {.negative_inf = 2});
  first->arrive();
  second->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(bad_tensor_file(), "");
}

TEST_F(HookLateTest, a_nan_that_is_waited_for_starts_saving_with_the_next_step) {
  HookOptions o = options();
  o.config.save_config =
      *SaveConfig::broadcast({.save_interval = 100, .start_step = 100, .when_nan = {"w"}});
  auto hook = make(std::move(o));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    auto parcel = save(*hook, "w", 1, {.nan = i >= 1 ? 1 : 0});
    parcel->arrive();
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(RecordedRun(storage).steps(), ElementsAre(2));
  EXPECT_THAT(log->lines, Contains(HasSubstr("saving starts with the next step")));
}

TEST_F(HookLateTest, a_histogram_is_shown_when_it_comes) {
  std::vector<std::string> shown;
  HookOptions o = options();
  const std::string board = testing::TempDir() + "/smd_late_" + std::to_string(getpid());
  o.config.tensorboard_dir = board;
  o.outputs.emplace_back([&](const OutputPlace&) -> Result<std::unique_ptr<Output>> {
    return std::unique_ptr<Output>(std::make_unique<ShownHistograms>(shown));
  });
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    ASSERT_FALSE(hook->late_wish("w", Kind::automatic)->now);
    auto parcel = std::make_shared<Parcel>(static_cast<float>(i));
    // Nothing but NaN has none.
    if (i != 1) parcel->count({.limits = {-1, 1}, .counts = {static_cast<double>(4 + i)}});
    ASSERT_TRUE(hook->save_late("w", parcel).ok());
    parcel->arrive();
  }
  ASSERT_TRUE(hook->close().ok());
  std::filesystem::remove_all(board);
  EXPECT_THAT(shown, ElementsAre("0 all/w 4", "2 all/w 6"));
  EXPECT_THAT(RecordedRun(storage).steps(), ElementsAre(0, 1, 2));
}

TEST_F(HookLateTest, elements_are_waited_for_by_the_writer) {
  HookOptions o = options();
  o.config.reduction_config = ReductionConfig::raw_only();
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  const auto wish = hook->late_wish("w", Kind::automatic);
  ASSERT_TRUE(wish.ok());
  EXPECT_TRUE(wish->raw);
  EXPECT_FALSE(wish->now);
  auto parcel = std::make_shared<Parcel>(0);
  const OwnedTensor tensor{
      .owner = parcel, .data = parcel->values.data(), .dtype = DType::float32, .shape = {4}};
  ASSERT_TRUE(hook->save_late_values("w", tensor, parcel).ok());
  ASSERT_TRUE(hook->end_step().ok());
  parcel->values = {1, 2, 3, 4};  // the copy is done only now; the memory stays where it is
  parcel->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(reductions(0, "w"), ElementsAre(1, 2, 3, 4));
}

TEST_F(HookLateTest, elements_that_are_watched_are_needed_at_once) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1, .when_nan = {"w"}});
  auto hook = make(std::move(o));
  ASSERT_TRUE(hook->begin_step().ok());
  EXPECT_TRUE(hook->late_wish("w", Kind::automatic)->now);
  EXPECT_FALSE(hook->late_wish("v", Kind::automatic)->now);
  ASSERT_TRUE(hook->close().ok());
}

}  // namespace
}  // namespace smd
