#include "smd/writer/outputs/number_feed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "smd/base/bytes.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr StepInfo kStep{.step = 4, .mode = Mode::train, .mode_step = 3};

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }
std::chrono::steady_clock::time_point later() { return now() + std::chrono::seconds(60); }

class NumberFeedTest : public testing::Test {
 protected:
  std::shared_ptr<NumberFeed> feed =
      std::make_shared<NumberFeed>(NumberFeedOptions{.reductions = {"mean"}, .max_steps = 2});
  std::unique_ptr<Output> output = feed_output(feed, "worker_1");

  void save(const StepInfo& step) const {
    ASSERT_TRUE(output->scalar(step, {.name = "loss", .value = 0.5, .wall_secs = 9}).ok());
    ASSERT_TRUE(output->end_step().ok());
  }
};

TEST_F(NumberFeedTest, gives_what_was_saved) {
  ASSERT_TRUE(output->scalar(kStep, {.name = "loss", .value = 0.5, .wall_secs = 9}).ok());
  ASSERT_TRUE(output->scalar(kStep, {.name = "many", .value = 1, .is_mean = true}).ok());
  StoredReduction mean{.name = "mean", .dtype = DType::float32};
  store_le(mean.bits.data(), 2.5f);
  StoredReduction max{.name = "max", .dtype = DType::float32};
  const StoredReduction both[] = {mean, max};
  ASSERT_TRUE(output->reductions(kStep, {.tensor = "w", .wall_secs = 9, .values = both}).ok());
  EXPECT_EQ(feed->take(now()), std::nullopt) << "the step is not over";
  ASSERT_TRUE(output->end_step().ok());
  const auto step = feed->take(now());
  ASSERT_TRUE(step.has_value());
  EXPECT_EQ(step->step, kStep);
  EXPECT_EQ(step->worker, "worker_1");
  EXPECT_EQ(step->wall_secs, 9);
  EXPECT_THAT(step->scalars, ElementsAre(Pair("loss", 0.5)));
  ASSERT_EQ(step->reductions.size(), 1u);
  EXPECT_EQ(step->reductions[0].tensor, "w");
  EXPECT_EQ(step->reductions[0].reduction, "mean");
  EXPECT_EQ(step->reductions[0].value, 2.5);
}

TEST_F(NumberFeedTest, drops_the_oldest_when_nobody_takes_them) {
  for (Step step = 0; step < 5; ++step) save({.step = step});
  EXPECT_EQ(feed->dropped_steps(), 3);
  EXPECT_EQ(feed->take(now())->step.step, 3);
}

TEST_F(NumberFeedTest, ends_when_the_writer_does) {
  save(kStep);
  ASSERT_TRUE(output->close().ok());
  EXPECT_FALSE(feed->ended()) << "there is a step to take";
  EXPECT_TRUE(feed->take(later()).has_value());
  EXPECT_TRUE(feed->ended());
  EXPECT_EQ(feed->take(later()), std::nullopt);
}

TEST_F(NumberFeedTest, wakes_who_waits) {
  std::optional<FedStep> taken;
  std::thread taker([&] { taken = feed->take(later()); });
  save(kStep);
  taker.join();
  ASSERT_TRUE(taken.has_value());
  std::thread waiter([&] { taken = feed->take(later()); });
  output.reset();
  waiter.join();
  EXPECT_EQ(taken, std::nullopt);
}

TEST_F(NumberFeedTest, every_type_of_reduction_is_a_number) {
  const auto number = [&](auto value, DType dtype) {
    StoredReduction mean{.name = "mean", .dtype = dtype};
    store_le(mean.bits.data(), value);
    EXPECT_TRUE(output->reductions(kStep, {.tensor = "w", .values = {&mean, 1}}).ok());
    EXPECT_TRUE(output->end_step().ok());
    return feed->take(now())->reductions.at(0).value;
  };
  EXPECT_EQ(number(-1.5, DType::float64), -1.5);
  EXPECT_EQ(number(int8_t{-3}, DType::int8), -3);
  EXPECT_EQ(number(int16_t{-3}, DType::int16), -3);
  EXPECT_EQ(number(int32_t{-3}, DType::int32), -3);
  EXPECT_EQ(number(int64_t{-3}, DType::int64), -3);
  EXPECT_EQ(number(uint8_t{200}, DType::uint8), 200);
  EXPECT_EQ(number(uint16_t{60000}, DType::uint16), 60000);
  EXPECT_EQ(number(uint32_t{4000000000}, DType::uint32), 4000000000);
  EXPECT_EQ(number(uint64_t{1} << 63, DType::uint64), 9223372036854775808.0);
}

}  // namespace
}  // namespace smd
