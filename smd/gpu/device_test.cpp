// Devices behind the simulated driver of tests/simulated_cuda: several of them, each with streams
// whose work is done later, by threads of their own. The test plays the training program, which
// queues what makes its tensors and what overwrites them.

#include "smd/gpu/device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <future>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "smd/gpu/survey.h"
#include "smd/reduce/oracle_case.h"
#include "tests/simulated_cuda/device_program.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace smd::gpu {
namespace {

constexpr int kDevices = 3;
constexpr int kSpareDevice = kDevices;

template <class T>
std::string message_of(const T& result) {
  return result.ok() ? "none" : result.error().message;
}

struct Found {
  double least = 0, most = 0, sum = 0;
  bool operator==(const Found&) const = default;
};

void PrintTo(const Found& found, std::ostream* out) {
  *out << found.least << " to " << found.most << ", sum " << found.sum;
}

Found all(float value, size_t count = kCount) {
  return {value, value, static_cast<double>(value) * static_cast<double>(count)};
}

// What was found in a tensor of a survey, which is waited for.
Found found_in(const LateSurvey& survey, size_t tensor = 0) {
  const Status status = survey.wait();
  EXPECT_TRUE(status.ok()) << status.error().message;
  ReductionSet wanted;
  for (const char* name : {"min", "max", "sum"}) wanted.add(*parse_reduction(name));
  ReductionResult result;
  finish_survey(DType::float32, survey.partials(tensor), {.reductions = wanted}, result);
  const auto value = [&](const char* name) {
    return result.find(*parse_reduction(name))->to_double();
  };
  return {value("min"), value("max"), value("sum")};
}

Found found_in(const LateCopy& copy, size_t tensor = 0) {
  const Status status = copy.wait();
  EXPECT_TRUE(status.ok()) << status.error().message;
  std::vector<float> values(copy.bytes(tensor).size() / sizeof(float));
  std::memcpy(values.data(), copy.bytes(tensor).data(), copy.bytes(tensor).size());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  Found out{*least, *most, 0};
  for (const float value : values) out.sum += value;
  return out;
}

class DeviceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("SIMULATED_CUDA_DEVICES", std::to_string(kDevices + 1).c_str(), 1);
    ASSERT_TRUE(Driver::get().ok()) << Driver::get().error().message;
  }
  DeviceTest() {
    simulated_cuda_forget_violations();
    for (int ordinal = 0; ordinal < kDevices; ++ordinal) programs_.emplace_back(ordinal);
  }
  ~DeviceTest() override {
    for (DeviceProgram& program : programs_) program.open_gates();
    programs_.clear();
    simulated_cuda_set_delay(0, 1);
    simulated_cuda_set_stream_ids(1);
    EXPECT_EQ(simulated_cuda_violations(), 0) << simulated_cuda_last_violation();
  }

  // As long as a few operations take by far, if nothing holds them.
  void let_time_pass() {
    DeviceProgram program(kSpareDevice);
    float* const memory = program.allocate();
    const Stream stream = program.new_stream();
    program.fill(memory, 1, stream);
    for (int i = 0; i < 200; ++i) EXPECT_EQ(found_in(*program.survey(memory, stream)), all(1));
  }

  std::deque<DeviceProgram> programs_;
};

// ---- several devices

TEST_F(DeviceTest, each_device_reads_its_own_memory) {
  std::vector<Survey> surveys;
  std::vector<Copy> copies;
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    DeviceProgram& program = programs_[ordinal];
    float* const memory = program.allocate();
    program.fill(memory, static_cast<float>(ordinal + 1), nullptr);
    surveys.push_back(program.survey(memory, nullptr));
    copies.push_back(program.copy(memory, nullptr));
  }
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    EXPECT_EQ(found_in(*surveys[ordinal]), all(static_cast<float>(ordinal + 1)));
    EXPECT_EQ(found_in(*copies[ordinal]), all(static_cast<float>(ordinal + 1)));
  }
}

TEST_F(DeviceTest, the_program_may_use_another_device_meanwhile) {
  for (const Context current : {programs_[0].context(), programs_[1].context()}) {
    ASSERT_EQ(cuCtxPushCurrent_v2(current), 0);
    for (DeviceProgram& program : {std::ref(programs_[0]), std::ref(programs_[1])}) {
      for (const Stream stream : {Stream{nullptr}, program.new_stream()}) {
        float* const memory = program.allocate();
        program.fill(memory, 3, stream);
        const Survey survey = program.survey(memory, stream);
        const Copy copy = program.copy(memory, stream);
        const Survey beside = program.beside(memory, stream);
        EXPECT_TRUE(program.device().wait_for(*beside, stream).ok());
        EXPECT_TRUE(program.device().own_stream().ok());
        EXPECT_EQ(found_in(*survey), all(3));
        EXPECT_EQ(found_in(*copy), all(3));
        EXPECT_EQ(found_in(*beside), all(3));
        EXPECT_TRUE(survey->is_ready());
        EXPECT_TRUE(copy->is_ready());
        Context now = nullptr;
        EXPECT_EQ(cuCtxGetCurrent(&now), 0);
        EXPECT_EQ(now, current);
      }
    }
    Context popped = nullptr;
    ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  }
  Context left = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&left), 0);
  EXPECT_EQ(left, nullptr);
}

TEST_F(DeviceTest, a_device_that_stands_still_does_not_hold_up_another) {
  float* const held = programs_[0].allocate();
  float* const free = programs_[1].allocate();
  programs_[0].fill(held, 1, nullptr);
  programs_[1].fill(free, 2, nullptr);
  Gate& gate = programs_[0].hold(nullptr);
  const Survey late = programs_[0].survey(held, nullptr);
  const Copy late_copy = programs_[0].copy(held, nullptr);
  EXPECT_EQ(found_in(*programs_[1].survey(free, nullptr)), all(2));
  EXPECT_EQ(found_in(*programs_[1].copy(free, nullptr)), all(2));
  EXPECT_FALSE(late->is_ready());
  EXPECT_FALSE(late_copy->is_ready());
  gate.open();
  EXPECT_EQ(found_in(*late), all(1));
  EXPECT_EQ(found_in(*late_copy), all(1));
}

TEST_F(DeviceTest, a_device_that_is_not_there_is_missed) {
  EXPECT_EQ(message_of(Device::open({.ordinal = kDevices + 1})),
            "Could not find the device: CUDA_ERROR_INVALID_DEVICE.");
}

// ---- the moment

TEST_F(DeviceTest, values_are_those_of_the_moment_on_every_stream) {
  struct Late {
    Gate* gate;
    float value;
    Survey survey;
    Copy copy, large_copy;
  };
  constexpr size_t kLarge = kRingBytes;  // in floats: there is no room in the ring
  std::vector<Late> late;
  float value = 0;
  for (DeviceProgram& program : programs_) {
    for (const Stream stream : {Stream{nullptr}, program.new_stream(), program.new_stream()}) {
      float* const memory = program.allocate(kLarge);
      Gate& gate = program.hold(stream);
      for (int time = 0; time < 3; ++time) {
        program.fill(memory, ++value, stream, kLarge);
        late.push_back({&gate, value, program.survey(memory, stream), program.copy(memory, stream),
                        program.copy(memory, stream, kLarge)});
      }
      program.fill(memory, -1, stream, kLarge);
    }
  }
  for (const Late& one : late) {
    EXPECT_FALSE(one.survey->is_ready());
    EXPECT_FALSE(one.copy->is_ready());
  }
  for (auto one = late.rbegin(); one != late.rend(); ++one) one->gate->open();
  for (const Late& one : late) {
    EXPECT_EQ(found_in(*one.survey), all(one.value));
    EXPECT_EQ(found_in(*one.copy), all(one.value));
    EXPECT_EQ(found_in(*one.large_copy), all(one.value, kLarge));
  }
}

TEST_F(DeviceTest, memory_may_be_freed_right_after_the_call) {
  for (DeviceProgram& program : programs_) {
    for (const Stream stream : {Stream{nullptr}, program.new_stream()}) {
      float* const memory = program.allocate();
      Gate& gate = program.hold(stream);
      program.fill(memory, 7, stream);
      const Survey survey = program.survey(memory, stream);
      const Copy copy = program.copy(memory, stream);
      program.free(memory, stream);
      gate.open();
      EXPECT_EQ(found_in(*survey), all(7));
      EXPECT_EQ(found_in(*copy), all(7));
    }
  }
}

TEST_F(DeviceTest, what_a_stream_waits_for_on_another_device_is_seen) {
  const Stream maker = programs_[0].new_stream();
  const Stream reader = programs_[1].new_stream();
  float* const memory = programs_[1].allocate();
  Gate& gate = programs_[0].hold(maker);
  programs_[0].fill(memory, 4, maker);  // as a copy from device to device does
  const Event made = programs_[0].mark(maker);
  EXPECT_EQ(programs_[1].with_context([&] { return cuStreamWaitEvent(reader, made, 0); }), 0);
  const Survey survey = programs_[1].survey(memory, reader);
  const Copy copy = programs_[1].copy(memory, reader);
  EXPECT_FALSE(survey->is_ready());
  gate.open();
  EXPECT_EQ(found_in(*survey), all(4));
  EXPECT_EQ(found_in(*copy), all(4));
}

// ---- several threads

// What a thread of the program does on a stream of its own: tensors are made, offered and
// overwritten, some results are thrown away unread, and others are read much later.
void train(DeviceProgram& program, Stream stream, int number) {
  constexpr int kRounds = 80;
  constexpr size_t kSizes[] = {10, 1000, 5000, 20000};  // the last does not fit into the ring
  struct Late {
    Survey survey;
    Copy copy;
    Found expected;
  };
  std::deque<Late> late;
  std::vector<float*> tensors;
  for (const size_t size : kSizes) tensors.push_back(program.allocate(size));
  for (int round = 0; round < kRounds; ++round) {
    const auto which = static_cast<size_t>(round) % std::size(kSizes);
    const size_t size = kSizes[which];
    const auto value = static_cast<float>(1000 * number + round);
    program.fill(tensors[which], value, stream, size);
    late.push_back({program.survey(tensors[which], stream, size),
                    program.copy(tensors[which], stream, size), all(value, size)});
    program.fill(tensors[which], -1, stream, size);
    if (round % 5 == 0) late.pop_back();
    if (late.size() < 8 && round + 1 < kRounds) continue;
    for (; late.size() > (round + 1 < kRounds ? 4U : 0U); late.pop_front()) {
      EXPECT_EQ(found_in(*late.front().survey), late.front().expected) << "round " << round;
      EXPECT_EQ(found_in(*late.front().copy), late.front().expected) << "round " << round;
    }
  }
}

class Delayed : public DeviceTest, public testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  Delayed() {
    simulated_cuda_set_delay(150, static_cast<unsigned>(std::get<0>(GetParam())));
    simulated_cuda_set_stream_ids(std::get<1>(GetParam()) ? 1 : 0);
  }
};

// Two threads for each of two devices.
TEST_P(Delayed, each_thread_gets_the_values_of_its_own_stream) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    DeviceProgram& program = programs_[i % 2];
    const Stream stream = i < 2 ? nullptr : program.new_stream();
    threads.emplace_back([&program, stream, i] { train(program, stream, i); });
  }
  for (std::thread& thread : threads) thread.join();
}

INSTANTIATE_TEST_SUITE_P(Seeds, Delayed,
                         testing::Combine(testing::Values(1, 2, 3), testing::Bool()),
                         [](const auto& test) {
                           return "seed_" + std::to_string(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) ? "" : "_without_ids_of_streams");
                         });

// ---- memory that is used again

class Slots : public DeviceTest, public testing::WithParamInterface<bool> {
 protected:
  Slots() { simulated_cuda_set_stream_ids(GetParam() ? 1 : 0); }
};

TEST_P(Slots, a_slot_is_used_again_when_the_device_is_done_with_it) {
  DeviceProgram& program = programs_[1];
  float* const memory = program.allocate();
  program.fill(memory, 1, nullptr);
  Survey survey = program.survey(memory, nullptr);
  const Partial* const first = survey->partials(0).data();
  EXPECT_EQ(found_in(*survey), all(1));
  survey.reset();
  EXPECT_EQ(program.survey(memory, nullptr)->partials(0).data(), first);
}

TEST_P(Slots, a_slot_is_not_used_again_before_the_device_is_done_with_it) {
  DeviceProgram& program = programs_[1];
  const Stream slow = program.new_stream();
  const Stream fast = program.new_stream();
  float* const old = program.allocate();
  float* const young = program.allocate();
  Gate& gate = program.hold(slow);
  program.fill(old, 1, slow);
  const Survey before = program.survey(old, slow);
  Survey dropped = program.survey(old, slow);
  const Partial* const place = dropped->partials(0).data();
  dropped.reset();
  program.fill(young, 2, fast);
  const Survey survey = program.survey(young, fast);
  EXPECT_NE(survey->partials(0).data(), place);
  EXPECT_EQ(found_in(*survey), all(2));
  gate.open();
  program.finish(slow);
  EXPECT_EQ(found_in(*survey), all(2));
  EXPECT_EQ(found_in(*before), all(1));
  EXPECT_EQ(program.survey(young, fast)->partials(0).data(), place);
}

// Who waits for one survey of a stream knows that those before it are done, and no more than that.
TEST_P(Slots, a_slot_is_not_used_again_because_an_earlier_survey_is_done) {
  DeviceProgram& program = programs_[0];
  float* const memory = program.allocate();
  program.fill(memory, 1, nullptr);
  const Survey first = program.survey(memory, nullptr);
  EXPECT_EQ(found_in(*first), all(1));
  Gate& gate = program.hold(nullptr);
  program.fill(memory, 2, nullptr);
  Survey second = program.survey(memory, nullptr);
  const Partial* const place = second->partials(0).data();
  EXPECT_TRUE(first->is_ready());
  EXPECT_FALSE(second->is_ready());
  second.reset();
  const Stream other = program.new_stream();
  float* const young = program.allocate();
  program.fill(young, 3, other);
  const Survey third = program.survey(young, other);
  EXPECT_NE(third->partials(0).data(), place);
  EXPECT_EQ(found_in(*third), all(3));
  gate.open();
  program.finish(nullptr);
  EXPECT_EQ(found_in(*third), all(3));
}

TEST_P(Slots, memory_of_copies_is_not_filled_again_before_the_device_is_done_with_it) {
  constexpr size_t kLarge = kRingBytes;  // in floats: straight to the host
  DeviceProgram& program = programs_[2];
  for (const size_t count : {kCount, kLarge}) {
    const Stream slow = program.new_stream();
    const Stream fast = program.new_stream();
    float* const old = program.allocate(count);
    float* const young = program.allocate(count);
    Gate& gate = program.hold(slow);
    program.fill(old, 1, slow, count);
    Copy dropped = program.copy(old, slow, count);
    const std::byte* const place = dropped->bytes(0).data();
    dropped.reset();
    program.fill(young, 2, fast, count);
    const Copy copy = program.copy(young, fast, count);
    EXPECT_NE(copy->bytes(0).data(), place);
    program.fill(young, -1, fast, count);
    gate.open();
    program.finish(slow);
    EXPECT_EQ(found_in(*copy), all(2, count));
  }
}

INSTANTIATE_TEST_SUITE_P(Ids, Slots, testing::Bool(), [](const auto& test) {
  return test.param ? "with_ids_of_streams" : "without_ids_of_streams";
});

// The first of two tensors is on its way to a block when the second is refused.
TEST_F(DeviceTest, a_list_that_fails_halfway_overwrites_no_later_copy) {
  constexpr size_t kLarge = kRingBytes;  // in floats: straight to the host
  DeviceProgram& program = programs_[0];
  const Stream slow = program.new_stream();
  const Stream fast = program.new_stream();
  float* const old = program.allocate(kLarge);
  float* const young = program.allocate(kLarge);
  float* const of_another = programs_[1].allocate(kLarge);
  program.fill(old, 1, slow, kLarge);
  EXPECT_EQ(found_in(*program.copy(old, slow, kLarge)), all(1, kLarge));  // its block is free now
  Gate& gate = program.hold(slow);
  constexpr size_t kHalf = kLarge * sizeof(float) / 2;
  const CopySource sources[] = {{reinterpret_cast<Address>(old), kHalf},
                                {reinterpret_cast<Address>(of_another), kHalf}};
  EXPECT_EQ(message_of(program.device().copier().copy(sources, slow)),
            "Could not copy a tensor: CUDA_ERROR_INVALID_VALUE.");
  EXPECT_EQ(simulated_cuda_violations(), 1);
  simulated_cuda_forget_violations();
  program.fill(young, 2, fast, kLarge);
  const Copy copy = program.copy(young, fast, kLarge);
  EXPECT_EQ(found_in(*copy), all(2, kLarge));
  gate.open();
  program.finish(slow);
  EXPECT_EQ(found_in(*copy), all(2, kLarge));
}

// ---- beside the program

TEST_F(DeviceTest, reading_beside_sees_what_was_made_before_and_lets_the_stream_go_on) {
  for (DeviceProgram& program : programs_) {
    const Stream stream = program.new_stream();
    const Stream own = value_of(program.device().own_stream());
    float* const memory = program.allocate();
    float* const other = program.allocate();
    Gate& before = program.hold(stream);
    Gate& reading = program.hold(own);
    program.fill(memory, 5, stream);
    const Survey survey = program.beside(memory, stream);
    program.fill(other, 1, stream);
    reading.open();
    let_time_pass();
    EXPECT_FALSE(survey->is_ready());
    before.open();
    EXPECT_EQ(found_in(*survey), all(5));

    Gate& again = program.hold(own);
    const Survey late = program.beside(memory, stream);
    program.fill(other, 2, stream);
    program.finish(stream);
    EXPECT_EQ(other[0], 2);
    EXPECT_FALSE(late->is_ready());
    again.open();
    EXPECT_EQ(found_in(*late), all(5));
  }
}

TEST_F(DeviceTest, a_stream_that_waits_for_the_reading_does_not_overwrite_what_is_read) {
  DeviceProgram& program = programs_[1];
  const Stream stream = program.new_stream();
  const Stream own = value_of(program.device().own_stream());
  float* const memory = program.allocate();
  program.fill(memory, 5, stream);
  Gate& reading = program.hold(own);
  const Survey survey = program.beside(memory, stream);
  const Event before = program.mark(stream);
  ASSERT_TRUE(program.device().wait_for(*survey, stream).ok());
  program.fill(memory, 6, stream);
  const Event after = program.mark(stream);
  EXPECT_EQ(program.with_context([&] { return cuEventSynchronize(before); }), 0);
  let_time_pass();
  EXPECT_FALSE(program.is_done(after));
  reading.open();
  EXPECT_EQ(found_in(*survey), all(5));
  program.finish(stream);
  EXPECT_EQ(memory[0], 6);
}

// ---- captures and failures

TEST_F(DeviceTest, a_captured_stream_refuses_and_the_others_do_not) {
  DeviceProgram& program = programs_[0];
  const Stream captured = program.new_stream();
  const Stream other = program.new_stream();
  float* const memory = program.allocate();
  program.fill(memory, 1, other);
  program.set_capturing(captured, true);
  EXPECT_TRUE(program.device().is_capturing(captured));
  EXPECT_FALSE(program.device().is_capturing(other));
  for (const std::string& refused : {message_of(program.try_survey(memory, captured)),
                                     message_of(program.try_beside(memory, captured)),
                                     message_of(program.try_copy(memory, captured))}) {
    EXPECT_EQ(refused, "A CUDA graph is being captured.");
  }
  // Neither queueing nor waiting ends the capture.
  const Survey survey = program.survey(memory, other);
  const Copy copy = program.copy(memory, other);
  const Survey beside = program.beside(memory, other);
  EXPECT_EQ(found_in(*survey), all(1));
  EXPECT_EQ(found_in(*copy), all(1));
  EXPECT_EQ(found_in(*beside), all(1));
  EXPECT_TRUE(copy->is_ready());
  program.set_capturing(captured, false);
  EXPECT_EQ(found_in(*program.survey(memory, captured)), all(1));
}

// CUDA has no graphs of null streams, but its answer may be that of a capture elsewhere.
TEST_F(DeviceTest, the_null_stream_is_asked_on_its_own_device_whether_it_is_captured) {
  float* const memory = programs_[1].allocate();
  programs_[1].fill(memory, 1, nullptr);
  for (DeviceProgram& current : {std::ref(programs_[0]), std::ref(programs_[1])}) {
    for (DeviceProgram& captured : {std::ref(programs_[0]), std::ref(programs_[1])}) {
      captured.set_capturing(nullptr, true);
      const bool refuses = current.with_context([&] {
        EXPECT_EQ(programs_[1].device().is_capturing(nullptr), &captured == &programs_[1]);
        return !programs_[1].try_survey(memory, nullptr).ok() &&
               !programs_[1].try_copy(memory, nullptr).ok();
      });
      EXPECT_EQ(refuses, &captured == &programs_[1]);
      captured.set_capturing(nullptr, false);
    }
  }
}

TEST_F(DeviceTest, memory_says_which_device_it_is_of) {
  const Driver& driver = *value_of(Driver::get());
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    const float* const memory = programs_[ordinal].allocate();
    EXPECT_EQ(value_of(driver.device_of(memory)), ordinal);
    EXPECT_EQ(value_of(driver.device_of(memory + kCount - 1)), ordinal);
  }
  const float of_the_host = 0;
  EXPECT_EQ(message_of(driver.device_of(&of_the_host)),
            "Could not ask which device has this memory: CUDA_ERROR_INVALID_VALUE.");
}

TEST_F(DeviceTest, a_device_that_fails_says_so_and_the_other_goes_on) {
  DeviceProgram& good = programs_[0];
  DeviceProgram& bad = programs_[1];
  float* const fine = good.allocate();
  float* const lost = bad.allocate();
  good.fill(fine, 1, nullptr);
  bad.fill(lost, 2, nullptr);
  EXPECT_EQ(found_in(*bad.survey(lost, nullptr)), all(2));
  Gate& gate = bad.hold(nullptr);
  const Survey survey = bad.survey(lost, nullptr);
  const Copy copy = bad.copy(lost, nullptr);
  simulated_cuda_fail(1, 0);
  auto waiting = std::async(std::launch::async, [&] { return survey->wait(); });
  gate.open();
  const char* const reason = "Could not wait for the device: CUDA_ERROR_LAUNCH_FAILED.";
  EXPECT_EQ(message_of(waiting.get()), reason);
  EXPECT_EQ(message_of(survey->wait()), reason);
  EXPECT_EQ(message_of(copy->wait()), reason);
  EXPECT_TRUE(survey->is_ready());
  EXPECT_TRUE(copy->is_ready());
  for (const std::string& refused :
       {message_of(bad.try_survey(lost, nullptr)), message_of(bad.try_beside(lost, nullptr)),
        message_of(bad.try_copy(lost, nullptr))}) {
    EXPECT_NE(refused.find("CUDA_ERROR_LAUNCH_FAILED"), std::string::npos) << refused;
  }
  EXPECT_EQ(found_in(*good.survey(fine, nullptr)), all(1));
  EXPECT_EQ(found_in(*good.copy(fine, nullptr)), all(1));
}

// ---- kernels

TEST_F(DeviceTest, every_element_type_is_compiled_and_read_on_each_device) {
  oracle::Elements elements(11);
  for (const DType dtype : oracle::numeric_types()) {
    if (!can_survey(dtype)) continue;
    SCOPED_TRACE(name_of(dtype));
    Bytes bytes(kCount * size_of(dtype));
    elements.fill(dtype, oracle::Flavour::ordinary, bytes);
    ReductionSet wanted;
    all_reductions().for_each([&](Reduction r) {
      ReductionSet one;
      one.add(r);
      if (can_survey(one)) wanted.add(r);
    });
    const int64_t shape[] = {static_cast<int64_t>(kCount)};
    for (DeviceProgram& program : {std::ref(programs_[0]), std::ref(programs_[1])}) {
      void* const memory = program.allocate_bytes(bytes.size());
      program.queue(nullptr, [&] { std::memcpy(memory, bytes.data(), bytes.size()); });
      const TensorView view{.data = memory, .dtype = dtype, .shape = shape};
      ASSERT_TRUE(program.device().prepare(dtype).ok());
      EXPECT_TRUE(program.device().is_prepared(dtype));
      const Survey late = value_of(
          program.device().survey({&view, 1}, {.stream = nullptr, .absolute_deviations = true}));
      ASSERT_TRUE(late->wait().ok());
      ReductionResult result;
      finish_survey(dtype, late->partials(0), {.reductions = wanted}, result);
      EXPECT_EQ(static_cast<int>(result.values.size()), wanted.size());
      oracle::Case expected(dtype, bytes);
      expected.check_values(result);
      expected.check_counts(result);
    }
  }
}

// With gaps and without, of two element types, of several chunks and of none.
TEST_F(DeviceTest, each_tensor_of_a_long_list_has_its_own_values) {
  constexpr size_t kTensors = 2 * kMostItems + 7;
  std::vector<std::vector<int64_t>> shapes(kTensors), strides(kTensors);
  std::vector<std::vector<TensorView>> views(kDevices);
  std::vector<Survey> surveys;
  const auto element_of = [](int ordinal, size_t i) {
    return static_cast<float>(1000 * ordinal) + static_cast<float>(i);
  };
  const auto length_of = [](size_t i) {
    return i % 13 == 12 ? size_t{0} : i == 20 ? size_t{40000} : 1 + i * 7 % 300;
  };
  for (size_t i = 0; i < kTensors; ++i) {
    shapes[i] = {static_cast<int64_t>(length_of(i))};
    if (i % 9 == 4) strides[i] = {2 * sizeof(float)};
  }
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    DeviceProgram& program = programs_[ordinal];
    for (size_t i = 0; i < kTensors; ++i) {
      const size_t length = length_of(i);
      const int64_t step = strides[i].empty() ? 1 : 2;
      float* const memory = program.allocate(2 * length + 1);
      const float value = element_of(ordinal, i);
      program.queue(nullptr, [=] {
        std::fill_n(memory, 2 * length + 1, -1.0f);
        for (size_t k = 0; k < length; ++k) memory[static_cast<int64_t>(k) * step] = value;
      });
      views[ordinal].push_back({.data = memory, .shape = shapes[i], .strides_bytes = strides[i]});
    }
    surveys.push_back(value_of(program.device().survey(views[ordinal], {.stream = nullptr})));
  }
  for (int ordinal = 0; ordinal < kDevices; ++ordinal) {
    ASSERT_TRUE(surveys[ordinal]->wait().ok());
    for (size_t i = 0; i < kTensors; ++i) {
      if (length_of(i) == 0) {
        EXPECT_TRUE(surveys[ordinal]->partials(i).empty());
        continue;
      }
      EXPECT_EQ(found_in(*surveys[ordinal], i), all(element_of(ordinal, i), length_of(i)))
          << "device " << ordinal << ", tensor " << i;
    }
  }
}

}  // namespace
}  // namespace smd::gpu
