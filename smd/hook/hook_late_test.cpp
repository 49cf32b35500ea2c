// Tensors whose statistics and elements are still on their way when their step is over.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <latch>
#include <limits>
#include <optional>
#include <thread>

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

// Tensors with one value each, that come when the test says so, or never.
class Parcel final : public LateList, public LateMemory {
 public:
  explicit Parcel(std::vector<float> tensors, NonFinite nonfinite = {}, int64_t count = 4)
      : values(std::move(tensors)), nonfinite_(nonfinite), count_(count) {}
  void arrive() { arrived_.count_down(); }
  void fail() {
    failed_ = true;
    arrive();
  }
  // Somebody has found out that it is not to be saved.
  void discard() {
    wanted_ = false;
    arrive();
  }

  bool is_ready() const override { return arrived_.try_wait(); }
  size_t size_bytes() const override { return 100; }
  Result<bool> wait() override {
    arrived_.wait();
    if (failed_) return Error{ErrorCode::unsupported, "The device is gone."};
    return wanted_.load();
  }
  Status find(size_t index, const ReductionRequest& request, LateResults& out) override {
    ++searches;
    out.nonfinite = nonfinite_;
    out.count = count_;
    if (request.histogram) out.reductions.histogram = histogram_;
    request.reductions.for_each([&](Reduction reduction) {
      out.reductions.values.emplace_back(reduction, Number::real(DType::float32, values.at(index)));
    });
    return {};
  }

  void count(Histogram histogram) { histogram_ = std::move(histogram); }

  std::vector<float> values;
  std::atomic<int> searches{0};

 private:
  std::latch arrived_{1};
  std::atomic<bool> failed_{false};
  std::atomic<bool> wanted_{true};
  const NonFinite nonfinite_;
  const int64_t count_;
  Histogram histogram_;
};

// Notes the histograms and the numbers that it is told of.
class Shown final : public Output {
 public:
  explicit Shown(std::vector<std::string>& lines) : lines_(lines) {}
  Status scalar(const StepInfo& step, const SavedScalar& saved) override {
    lines_.push_back(fmt::format("{} {} {}{}{}", step.step, saved.name, saved.value,
                                 saved.is_mean ? " mean" : "", saved.is_metric ? " metric" : ""));
    return {};
  }
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
  static void save(Hook& hook, std::string name, const std::shared_ptr<Parcel>& parcel,
                   Kind kind = Kind::automatic) {
    Ticket ticket(std::move(name), kind);
    (void)hook.wanted(ticket);  // whoever reads a tensor has asked
    const Hook::LateListed listed{.ticket = &ticket, .index = 0};
    EXPECT_TRUE(hook.save_late({&listed, 1}, parcel).ok());
  }
  static std::shared_ptr<Parcel> save(Hook& hook, std::string name, float value,
                                      NonFinite nonfinite = {}) {
    auto parcel = std::make_shared<Parcel>(std::vector{value}, nonfinite);
    save(hook, std::move(name), parcel);
    return parcel;
  }
  static OwnedTensor elements_of(const std::shared_ptr<Parcel>& parcel) {
    return {.owner = parcel,
            .data = parcel->values.data(),
            .dtype = DType::float32,
            .shape = {static_cast<int64_t>(parcel->values.size())}};
  }
  static void show(HookOptions& o, std::vector<std::string>& lines) {
    o.outputs.emplace_back([&](const OutputPlace&) -> Result<std::unique_ptr<Output>> {
      return std::unique_ptr<Output>(std::make_unique<Shown>(lines));
    });
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
  show(o, shown);
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    auto parcel = std::make_shared<Parcel>(std::vector{static_cast<float>(i)});
    // Nothing but NaN has none.
    if (i != 1) parcel->count({.limits = {-1, 1}, .counts = {static_cast<double>(4 + i)}});
    save(*hook, "w", parcel);
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
  Ticket w("w");
  EXPECT_TRUE(hook->wanted(w).raw);
  auto parcel = std::make_shared<Parcel>(std::vector<float>(4));
  ASSERT_TRUE(hook->save_late_values(w, elements_of(parcel), parcel).ok());
  ASSERT_TRUE(hook->end_step().ok());
  parcel->values = {1, 2, 3, 4};  // the copy is done only now; the memory stays where it is
  parcel->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(reductions(0, "w"), ElementsAre(1, 2, 3, 4));
}

TEST_F(HookLateTest, tensors_of_a_list_are_found_once_and_get_their_own_values) {
  auto hook = make(options());
  std::array<Ticket, 3> tickets{Ticket("u"), Ticket("v"), Ticket("w")};
  const std::array<Hook::LateListed, 3> listed{
      {{&tickets[0], 2}, {&tickets[1], 0}, {&tickets[2], 1}}};
  auto parcel = std::make_shared<Parcel>(std::vector<float>{10, 20, 30});
  ASSERT_TRUE(hook->begin_step().ok());
  ASSERT_TRUE(hook->save_late(listed, parcel).ok());
  parcel->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(reductions(0, "smdebug/reductions/min/u"), ElementsAre(30));
  EXPECT_THAT(reductions(0, "smdebug/reductions/min/v"), ElementsAre(10));
  EXPECT_THAT(reductions(0, "smdebug/reductions/max/w"), ElementsAre(20));
  EXPECT_EQ(parcel->searches, 3);  // for the writer and for the look at bad values alike
}

TEST_F(HookLateTest, a_list_that_is_not_to_be_saved_leaves_the_rest_of_its_step) {
  auto hook = make(options());
  Ticket raw("raw");
  ASSERT_TRUE(hook->begin_step().ok());
  auto parcel = save(*hook, "w", 1, {.nan = 1});
  auto elements = std::make_shared<Parcel>(std::vector<float>(4));
  ASSERT_TRUE(hook->save_late_values(raw, elements_of(elements), elements).ok());
  auto other = save(*hook, "v", 2);
  parcel->discard();
  elements->discard();
  other->arrive();
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(RecordedRun(storage).steps(), ElementsAre(0));
  EXPECT_THAT(reductions(0, "smdebug/reductions/min/v"), ElementsAre(2));
  EXPECT_THAT(RecordedRun(storage).names(0), Not(Contains(HasSubstr("w"))));
  EXPECT_EQ(bad_tensor_file(), "");  // nobody is to know of its NaN
}

TEST_F(HookLateTest, a_loss_is_shown_when_it_comes) {
  std::vector<std::string> shown;
  HookOptions o = options();
  show(o, shown);
  auto hook = make(std::move(o));
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    const bool several = i == 2;
    auto loss = std::make_shared<Parcel>(std::vector{0.5F + static_cast<float>(i)},
                                         NonFinite{.nan = i == 1 ? 1 : 0}, several ? 8 : 1);
    if (i == 1) loss->values = {std::numeric_limits<float>::quiet_NaN()};
    save(*hook, "loss", loss, Kind::loss);
    loss->arrive();
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(shown, ElementsAre("0 loss 0.5 metric", "1 loss nan", "2 loss 2.5 mean metric"));
  EXPECT_THAT(log->lines, Contains(HasSubstr("The metric 'loss' is NaN and not passed on")));
}

TEST_F(HookLateTest, the_flight_recorder_keeps_elements_that_come_late) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1000});
  o.config.flight_recorder = 8;
  o.config.flight_recorder_raw = true;
  auto hook = make(std::move(o));
  std::vector<std::shared_ptr<Parcel>> parcels;
  Ticket w("w");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(hook->begin_step().ok());
    EXPECT_TRUE(hook->wanted(w).raw);
    auto parcel = std::make_shared<Parcel>(std::vector{static_cast<float>(i), 7.F});
    ASSERT_TRUE(hook->save_late_values(w, elements_of(parcel), parcel).ok());
    parcels.push_back(parcel);
  }
  ASSERT_TRUE(hook->dump_flight_recorder("to see them").ok());
  for (const auto& parcel : parcels) parcel->arrive();
  ASSERT_TRUE(hook->end_step().ok());
  ASSERT_TRUE(hook->close().ok());
  EXPECT_THAT(reductions(1, "w"), ElementsAre(1, 7));
  EXPECT_THAT(reductions(2, "w"), ElementsAre(2, 7));
}

// Values of 8 MiB that are saved beside their statistics, a queue that takes two of them with its
// last part left to statistics, and a device that holds up the writer.
class FullQueueTest : public HookLateTest {
 protected:
  static constexpr size_t kElements = 2 << 20;
  static constexpr size_t kBytes = kElements * sizeof(float);

  std::unique_ptr<Hook> start(Overflow overflow) {
    HookOptions o = options();
    o.config.reduction_config =
        *ReductionConfig::create({.reductions = {"max"}, .save_raw_tensor = true});
    o.config.overflow = overflow;
    o.writer.max_queue_bytes = 32 << 20;
    auto hook = make(std::move(o));
    EXPECT_TRUE(hook->begin_step().ok());
    gate = save(*hook, "gate", 1);
    EXPECT_TRUE(hook->end_step().ok());
    return hook;
  }
  static void save_step(Hook& hook, float value) {
    static constexpr int64_t kOne[] = {1};
    static constexpr int64_t shape[] = {kElements};
    const std::vector<float> values(kElements, value);
    ASSERT_TRUE(hook.begin_step().ok());
    ASSERT_TRUE(
        hook.save("w", {.data = values.data(), .dtype = DType::float32, .shape = shape}).ok());
    ASSERT_TRUE(
        hook.save("loss", {.data = values.data(), .dtype = DType::float32, .shape = kOne}).ok());
    ASSERT_TRUE(hook.end_step().ok());
  }

  std::shared_ptr<Parcel> gate;
};

TEST_F(FullQueueTest, values_that_find_no_room_are_left_out_and_counted) {
  auto hook = start(Overflow::drop);
  for (int step = 1; step < 6; ++step) save_step(*hook, static_cast<float>(step));
  EXPECT_EQ(hook->bill().left_out, 3);
  EXPECT_EQ(hook->bill().left_out_bytes, 3 * kBytes);
  gate->arrive();
  ASSERT_TRUE(hook->wait_until_written(std::chrono::seconds(30)));
  save_step(*hook, 6);  // there is room again
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(hook->bill().left_out, 3);
  for (Step step = 1; step < 7; ++step) {
    const bool is_left_out = step > 2 && step < 6;
    EXPECT_EQ(std::ranges::count(RecordedRun(storage).names(step), "w"), is_left_out ? 0 : 1);
    EXPECT_THAT(reductions(step, "smdebug/reductions/max/w"), ElementsAre(step)) << step;
    EXPECT_THAT(reductions(step, "loss"), ElementsAre(step)) << "of the last part";
  }
  EXPECT_THAT(log->lines, Contains(HasSubstr("The values of 'w' at step 3, 8388608 bytes, found no "
                                             "room in the queue, which takes 33554432")));
  EXPECT_THAT(log->lines, Contains(HasSubstr("The values of 3 tensors, 24.0 MiB, found no room")));
}

TEST_F(FullQueueTest, values_wait_for_room_unless_told_otherwise) {
  auto hook = start(Overflow::block);
  const std::jthread device([&] { gate->arrive(); });
  for (int step = 1; step < 6; ++step) save_step(*hook, static_cast<float>(step));
  ASSERT_TRUE(hook->close().ok());
  EXPECT_EQ(hook->bill().left_out, 0);
  for (Step step = 1; step < 6; ++step) EXPECT_EQ(reductions(step, "w").size(), kElements);
}

}  // namespace
}  // namespace smd
