#include "smd/hook/flight_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/reduce/number.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StoredReduction number(double value) {
  const Number n = Number::real(DType::float64, value);
  return {.name = "min", .dtype = n.dtype, .bits = n.bits};
}

void step(FlightRecorder& recorder, Step at, double value = 0) {
  recorder.begin_step({.step = at, .mode = Mode::train, .mode_step = at});
  const StoredReduction values[] = {number(value)};
  recorder.add("w", 1, values);
}

std::vector<Step> unsaved(const FlightRecorder& recorder) {
  std::vector<Step> out;
  for (const StepInfo& info : recorder.unsaved()) out.push_back(info.step);
  return out;
}

TEST(FlightRecorder, keeps_the_last_steps_that_are_not_saved) {
  FlightRecorder recorder({.steps = 3});
  for (Step at = 0; at < 10; ++at) {
    step(recorder, at);
    if (at == 8) recorder.mark_saved();
  }
  EXPECT_THAT(unsaved(recorder), ElementsAre(7, 9));
  recorder.clear();
  EXPECT_THAT(unsaved(recorder), IsEmpty());
  EXPECT_EQ(recorder.bytes(), 0u);
  step(recorder, 10);
  EXPECT_THAT(unsaved(recorder), ElementsAre(10));
}

TEST(FlightRecorder, steps_that_were_written_are_not_written_again) {
  FlightRecorder recorder({.steps = 3});
  for (Step at = 0; at < 3; ++at) step(recorder, at);
  recorder.mark_saved_before(2);
  EXPECT_THAT(unsaved(recorder), ElementsAre(2));
  step(recorder, 3);
  EXPECT_THAT(unsaved(recorder), ElementsAre(2, 3));
}

TEST(FlightRecorder, tells_the_past_of_a_tensor) {
  FlightRecorder recorder({.steps = 2});
  for (Step at = 0; at < 3; ++at) step(recorder, at, static_cast<double>(at) / 2);
  const auto past = recorder.history("w");
  ASSERT_EQ(past.size(), 2u);
  EXPECT_EQ(past[0].step.step, 1);
  EXPECT_EQ((Number{.dtype = past[1].values[0].dtype, .bits = past[1].values[0].bits}.to_double()),
            1.0);
  EXPECT_THAT(recorder.history("unknown"), IsEmpty());
}

TEST(FlightRecorder, does_not_grow_with_the_number_of_steps) {
  FlightRecorder recorder({.steps = 4});
  for (Step at = 0; at < 4; ++at) step(recorder, at);
  const size_t full = recorder.bytes();
  for (Step at = 4; at < 1000; ++at) step(recorder, at);
  EXPECT_EQ(recorder.bytes(), full);
  EXPECT_FALSE(recorder.was_full());
}

TEST(FlightRecorder, drops_values_before_steps_to_stay_within_its_bytes) {
  FlightRecorder recorder({.steps = 4, .raw = true, .max_bytes = 2500});
  const std::vector<float> values(200);
  const int64_t shape[] = {200};
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
  for (Step at = 0; at < 4; ++at) {
    step(recorder, at);
    recorder.add_raw("w", view, 1);
    EXPECT_LE(recorder.bytes(), 2500u);
  }
  EXPECT_TRUE(recorder.was_full());
  EXPECT_THAT(unsaved(recorder), ElementsAre(0, 1, 2, 3));
  FlightRecorder small({.steps = 100, .max_bytes = 300});
  for (Step at = 0; at < 100; ++at) step(small, at);
  EXPECT_LE(small.bytes(), 300u);
  EXPECT_EQ(unsaved(small).back(), 99);
}

TEST(FlightRecorder, takes_nothing_before_the_first_step) {
  FlightRecorder recorder({.steps = 2});
  const StoredReduction values[] = {number(1)};
  recorder.add("w", 1, values);
  recorder.mark_saved();
  EXPECT_THAT(unsaved(recorder), IsEmpty());
}

}  // namespace
}  // namespace smd
