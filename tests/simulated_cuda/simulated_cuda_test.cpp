// That the double notices what it is there to notice, and does things in CUDA's order.

#include "tests/simulated_cuda/simulated_cuda.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <future>
#include <string>

extern "C" {
int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags);
int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream);
int cuModuleLoadData(void** module, const void* image);
int cuModuleGetFunction(void** function, void* module, const char* name);
int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   void* stream, void** arguments, void** extra);
int cuStreamIsCapturing(void* stream, int* status);
int cuThreadExchangeStreamCaptureMode(int* mode);
int nvrtcCreateProgram(void** program, const char* source, const char* name, int,
                       const char* const*, const char* const*);
int nvrtcCompileProgram(void* program, int count, const char* const* options);
int nvrtcDestroyProgram(void** program);
}

namespace {

using Address = unsigned long long;

constexpr int kInvalidValue = 1;
constexpr int kInvalidContext = 201;
constexpr int kInvalidHandle = 400;
constexpr int kNotReady = 600;
constexpr int kIllegalAddress = 700;
constexpr int kLaunchFailed = 719;
constexpr int kCaptureUnsupported = 900;
constexpr size_t kBytes = 1000;

class SimulatedCuda : public testing::Test {
 protected:
  SimulatedCuda() {
    EXPECT_EQ(cuInit(0), 0);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(cuDevicePrimaryCtxRetain(&contexts_[i], i), 0);
    EXPECT_EQ(cuCtxPushCurrent_v2(contexts_[0]), 0);
    simulated_cuda_forget_violations();
  }
  ~SimulatedCuda() override {
    void* popped = nullptr;
    for (int i = 0; i < 2; ++i) simulated_cuda_repair(i);
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), 0);
  }

  void use(int device) {
    void* popped = nullptr;
    ASSERT_EQ(cuCtxPopCurrent_v2(&popped), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(contexts_[device]), 0);
  }
  static void* new_stream() {
    void* stream = nullptr;
    EXPECT_EQ(cuStreamCreate(&stream, 1), 0);
    return stream;
  }
  static void* new_event() {
    void* event = nullptr;
    EXPECT_EQ(cuEventCreate(&event, 2), 0);
    return event;
  }
  static Address allocate() {
    Address memory = 0;
    EXPECT_EQ(cuMemAlloc_v2(&memory, kBytes), 0);
    std::memset(reinterpret_cast<void*>(memory), 1, kBytes);
    return memory;
  }
  static char* locked() {
    void* memory = nullptr;
    EXPECT_EQ(cuMemHostAlloc(&memory, kBytes, 3), 0);
    std::memset(memory, 0, kBytes);
    return static_cast<char*>(memory);
  }
  // Holds the stream until the promise is kept.
  void hold(void* stream) {
    const auto wait = [](void* until) {
      static_cast<std::promise<void>*>(until)->get_future().wait();
    };
    EXPECT_EQ(cuLaunchHostFunc(stream, wait, &promise_), 0);
  }
  void let_go() { promise_.set_value(); }
  // The newest of one more violation.
  static std::string violation() {
    EXPECT_EQ(simulated_cuda_violations(), 1);
    std::string out = simulated_cuda_last_violation();
    simulated_cuda_forget_violations();
    return out;
  }

  void* contexts_[2];
  std::promise<void> promise_;
};

// ---- order

TEST_F(SimulatedCuda, streams_go_their_own_ways_until_one_waits_for_an_event_of_the_other) {
  void* const slow = new_stream();
  void* const fast = new_stream();
  void* const event = new_event();
  const Address from = allocate();
  char* const to = locked();
  char* const later = locked();
  hold(slow);
  ASSERT_EQ(cuEventRecord(event, slow), 0);
  EXPECT_EQ(cuEventQuery(event), kNotReady);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, fast), 0);
  ASSERT_EQ(cuStreamSynchronize(fast), 0);
  EXPECT_EQ(to[kBytes - 1], 1);
  ASSERT_EQ(cuStreamWaitEvent(fast, event, 0), 0);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(later, from, kBytes, fast), 0);
  void* const after = new_event();
  ASSERT_EQ(cuEventRecord(after, fast), 0);
  EXPECT_EQ(cuEventQuery(after), kNotReady);
  let_go();
  EXPECT_EQ(cuEventSynchronize(after), 0);
  EXPECT_EQ(cuEventQuery(event), 0);
  EXPECT_EQ(later[kBytes - 1], 1);
  EXPECT_EQ(simulated_cuda_violations(), 0);
}

TEST_F(SimulatedCuda, who_waits_for_an_event_waits_for_its_record_of_that_time) {
  void* const slow = new_stream();
  void* const fast = new_stream();
  void* const event = new_event();
  EXPECT_EQ(cuEventQuery(event), 0);  // never recorded
  ASSERT_EQ(cuEventRecord(event, fast), 0);
  ASSERT_EQ(cuStreamWaitEvent(fast, event, 0), 0);
  hold(slow);
  ASSERT_EQ(cuEventRecord(event, slow), 0);
  EXPECT_EQ(cuStreamSynchronize(fast), 0);
  EXPECT_EQ(cuEventQuery(event), kNotReady);
  let_go();
  EXPECT_EQ(cuEventSynchronize(event), 0);
}

TEST_F(SimulatedCuda, the_null_stream_is_that_of_the_current_device) {
  hold(nullptr);
  use(1);
  EXPECT_EQ(cuStreamSynchronize(nullptr), 0);
  let_go();
}

// ---- violations

TEST_F(SimulatedCuda, a_call_without_a_current_context_is_a_violation) {
  void* stream = nullptr;
  const int code = std::async(std::launch::async, [&] { return cuStreamCreate(&stream, 1); }).get();
  EXPECT_EQ(code, kInvalidContext);
  EXPECT_EQ(violation(), "cuStreamCreate without a current context: CUDA_ERROR_INVALID_CONTEXT");
}

TEST_F(SimulatedCuda, an_event_of_another_device_is_not_recorded) {
  void* const event = new_event();
  use(1);
  EXPECT_EQ(cuEventRecord(event, nullptr), kInvalidHandle);
  EXPECT_EQ(violation(),
            "cuEventRecord: event and stream of two devices: CUDA_ERROR_INVALID_HANDLE");
  EXPECT_EQ(cuEventQuery(event), 0);  // is allowed
  EXPECT_EQ(cuEventRecord(&promise_, nullptr), kInvalidHandle);
  EXPECT_EQ(violation(), "cuEventRecord: event: CUDA_ERROR_INVALID_HANDLE");
}

TEST_F(SimulatedCuda, a_kernel_is_launched_on_its_own_device_alone) {
  const char code[] = "simulated code for Float32";
  void* module = nullptr;
  void* function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, code), 0);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "unknown"), 500);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "smd_survey_few"), 0);
  void* const stream = new_stream();
  char argument[256] = {};
  void* arguments[] = {argument};
  use(1);
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr),
            kInvalidHandle);
  EXPECT_EQ(violation(),
            "cuLaunchKernel: function and stream of two devices: CUDA_ERROR_INVALID_HANDLE");
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr),
            kInvalidHandle);
  EXPECT_EQ(simulated_cuda_violations(), 1);
  EXPECT_EQ(cuModuleLoadData(&module,
                             "\x7f"
                             "ELF"),
            200);
}

TEST_F(SimulatedCuda, a_kernel_that_reads_what_is_not_there_breaks_its_device) {
  void* module = nullptr;
  void* function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, "simulated code for Float32"), 0);
  ASSERT_EQ(cuModuleGetFunction(&function, module, "smd_survey_few"), 0);
  char argument[256] = {};
  void* arguments[] = {argument};
  EXPECT_EQ(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr), 0);
  EXPECT_EQ(cuStreamSynchronize(nullptr), kIllegalAddress);
  EXPECT_EQ(violation(),
            "smd_survey_few on device 0 uses memory that is not its own: "
            "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(SimulatedCuda, copies_stay_within_the_memory_of_their_device) {
  const Address from = allocate();
  char* const to = locked();
  char plain[kBytes];
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to, from + 1, kBytes, nullptr), kInvalidValue);
  EXPECT_EQ(violation(),
            "cuMemcpyDtoHAsync on device 0 with an address that is not its own: "
            "CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(plain, from, kBytes, nullptr), kInvalidValue);
  EXPECT_EQ(violation(),
            "cuMemcpyDtoHAsync to memory that is not locked: CUDA_ERROR_INVALID_VALUE");
  use(1);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, nullptr), kInvalidValue);
  EXPECT_EQ(simulated_cuda_violations(), 1);
  simulated_cuda_register(plain, kBytes, 1);
  std::memset(plain, 3, kBytes);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to, reinterpret_cast<Address>(plain), kBytes, nullptr), 0);
  EXPECT_EQ(cuStreamSynchronize(nullptr), 0);
  EXPECT_EQ(to[kBytes - 1], 3);
}

TEST_F(SimulatedCuda, nobody_is_given_memory_of_no_bytes) {
  Address memory = 0;
  EXPECT_EQ(cuMemAlloc_v2(&memory, 0), kInvalidValue);
  EXPECT_EQ(violation(), "cuMemAlloc of no bytes: CUDA_ERROR_INVALID_VALUE");
  void* locked = nullptr;
  EXPECT_EQ(cuMemHostAlloc(&locked, 0, 3), kInvalidValue);
  EXPECT_EQ(violation(), "cuMemHostAlloc of no bytes: CUDA_ERROR_INVALID_VALUE");
}

TEST_F(SimulatedCuda, who_reads_freed_memory_too_late_is_noticed) {
  void* const stream = new_stream();
  const Address from = allocate();
  char* const to = locked();
  hold(stream);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, stream), 0);
  ASSERT_EQ(cuMemFreeAsync(from, nullptr), 0);
  ASSERT_EQ(cuStreamSynchronize(nullptr), 0);
  let_go();
  EXPECT_EQ(cuStreamSynchronize(stream), kIllegalAddress);
  EXPECT_EQ(simulated_cuda_violations(), 1);
}

TEST_F(SimulatedCuda, a_captured_stream_takes_no_work_and_ends_by_calls_of_others) {
  void* const stream = new_stream();
  void* const event = new_event();
  simulated_cuda_set_capturing(stream, 1);
  int status = 0;
  EXPECT_EQ(cuStreamIsCapturing(stream, &status), 0);
  EXPECT_EQ(status, 1);
  EXPECT_EQ(cuEventRecord(event, stream), kCaptureUnsupported);
  EXPECT_EQ(violation(),
            "cuEventRecord on a captured stream: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  EXPECT_EQ(cuEventQuery(event), kCaptureUnsupported);
  EXPECT_EQ(violation(), "cuEventQuery ends a capture: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED");
  int mode = 2;
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), 0);
  EXPECT_EQ(cuEventQuery(event), 0);
  EXPECT_EQ(cuThreadExchangeStreamCaptureMode(&mode), 0);
  EXPECT_EQ(mode, 2);
  simulated_cuda_set_capturing(stream, 0);
  EXPECT_EQ(cuEventQuery(event), 0);
}

// ---- failures

TEST_F(SimulatedCuda, a_device_fails_when_it_is_told_to_and_the_other_does_not) {
  const Address from = allocate();
  char* const to = locked();
  simulated_cuda_fail(0, 1);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, nullptr), 0);
  ASSERT_EQ(cuStreamSynchronize(nullptr), 0);
  std::memset(to, 0, kBytes);
  ASSERT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, nullptr), 0);
  EXPECT_EQ(cuStreamSynchronize(nullptr), kLaunchFailed);
  EXPECT_EQ(to[0], 0);
  EXPECT_EQ(cuMemcpyDtoHAsync_v2(to, from, kBytes, nullptr), kLaunchFailed);
  use(1);
  EXPECT_EQ(cuStreamSynchronize(nullptr), 0);
  EXPECT_EQ(simulated_cuda_violations(), 0);
}

// ---- the compiler

TEST_F(SimulatedCuda, only_the_kernels_are_compiled_and_only_for_elements_that_they_have) {
  const auto compile = [](const char* source, const char* element) {
    void* program = nullptr;
    EXPECT_EQ(nvrtcCreateProgram(&program, source, "x", 0, nullptr, nullptr), 0);
    const char* const options[] = {"--gpu-architecture=sm_90", element};
    const int code = nvrtcCompileProgram(program, 2, options);
    EXPECT_EQ(nvrtcDestroyProgram(&program), 0);
    return code;
  };
  EXPECT_EQ(compile("smd_survey", "-DSMD_ELEMENT=Bfloat16"), 0);
  EXPECT_EQ(compile("smd_survey", "-DSMD_ELEMENT=Float7"), 6);
  EXPECT_EQ(compile("int main() {}", "-DSMD_ELEMENT=Float32"), 6);
  EXPECT_EQ(compile("smd_survey", "--unknown"), 5);
}

}  // namespace
