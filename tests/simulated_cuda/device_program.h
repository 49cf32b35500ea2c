#pragma once

// What a training program does with a simulated device, for tests: it makes tensors on streams,
// offers them to smd/gpu, and overwrites them. Everything but the offers is queued.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "smd/base/result.h"
#include "smd/gpu/device.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace smd::gpu {

using Survey = std::shared_ptr<LateSurvey>;
using Copy = std::shared_ptr<LateCopy>;

// Elements of a tensor, unless a test says so.
inline constexpr size_t kCount = 1000;
inline constexpr size_t kRingBytes = 64 << 10;

// Holds a stream: what is queued after it waits.
class Gate final {
 public:
  void open() {
    if (!std::exchange(is_open_, true)) promise_.set_value();
  }
  void pass() { opened_.wait(); }

 private:
  bool is_open_ = false;
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

// A test that goes on without it would only crash.
template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

// A program with one device, whose context it sets for each call. Tensors are of floats. Threads
// may share it, but for gates.
class DeviceProgram final {
 public:
  explicit DeviceProgram(int ordinal) : ordinal_(ordinal) {
    int device = 0;
    EXPECT_EQ(cuDeviceGet(&device, ordinal), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context_, device), 0);
    device_ = value_of(Device::open({.ordinal = ordinal, .ring_bytes = kRingBytes}));
  }
  // Everything that was queued is done.
  ~DeviceProgram() {
    open_gates();
    simulated_cuda_repair(ordinal_);
  }
  DeviceProgram(const DeviceProgram&) = delete;
  DeviceProgram& operator=(const DeviceProgram&) = delete;

  Device& device() { return *device_; }
  Context context() const { return context_; }

  // Calls something with the context of the device as the current one.
  template <class F>
  auto with_context(F&& act) {
    Context popped = nullptr;
    EXPECT_EQ(cuCtxPushCurrent_v2(context_), 0);
    auto out = act();
    EXPECT_EQ(cuCtxPopCurrent_v2(&popped), 0);
    return out;
  }
  Stream new_stream() {
    Stream stream = nullptr;
    EXPECT_EQ(with_context([&] { return cuStreamCreate(&stream, 1); }), 0);
    return stream;
  }
  void* allocate_bytes(size_t bytes) {
    Address memory = 0;
    EXPECT_EQ(with_context([&] { return cuMemAlloc_v2(&memory, bytes); }), 0);
    return reinterpret_cast<void*>(memory);
  }
  float* allocate(size_t count = kCount) {
    return static_cast<float*>(allocate_bytes(count * sizeof(float)));
  }
  void free(const float* memory, Stream stream) {
    const auto address = reinterpret_cast<Address>(memory);
    EXPECT_EQ(with_context([&] { return cuMemFreeAsync(address, stream); }), 0);
  }
  void queue(Stream stream, std::function<void()> act) {
    const auto call = [](void* queued) { (*static_cast<std::function<void()>*>(queued))(); };
    void* queued = nullptr;
    {
      const std::lock_guard lock(mutex_);
      queued = &queued_.emplace_back(std::move(act));
    }
    EXPECT_EQ(with_context([&] { return cuLaunchHostFunc(stream, call, queued); }), 0);
  }
  void fill(float* memory, float value, Stream stream, size_t count = kCount) {
    queue(stream, [=] { std::fill_n(memory, count, value); });
  }
  Gate& hold(Stream stream) {
    Gate& gate = gates_.emplace_back();
    queue(stream, [&gate] { gate.pass(); });
    return gate;
  }
  void open_gates() {
    for (Gate& gate : gates_) gate.open();
  }
  // Waits until the stream has come to what is queued now.
  void finish(Stream stream) {
    EXPECT_EQ(with_context([&] { return cuStreamSynchronize(stream); }), 0);
  }
  // An event at the end of what is queued now.
  Event mark(Stream stream) {
    Event event = nullptr;
    EXPECT_EQ(with_context([&] { return cuEventCreate(&event, 2); }), 0);
    EXPECT_EQ(with_context([&] { return cuEventRecord(event, stream); }), 0);
    return event;
  }
  bool is_done(Event event) {
    return with_context([&] { return cuEventQuery(event); }) == 0;
  }
  void set_capturing(Stream stream, bool capturing) {
    with_context([&] { return simulated_cuda_set_capturing(stream, capturing ? 1 : 0), 0; });
  }

  Result<Survey> try_survey(const float* memory, Stream stream, size_t count = kCount) {
    const int64_t shape[] = {static_cast<int64_t>(count)};
    const TensorView view{.data = memory, .shape = shape};
    return device_->survey({&view, 1}, {.stream = stream});
  }
  Survey survey(const float* memory, Stream stream, size_t count = kCount) {
    return value_of(try_survey(memory, stream, count));
  }
  Survey beside(const float* memory, Stream stream) { return value_of(try_beside(memory, stream)); }
  Result<Survey> try_beside(const float* memory, Stream stream) {
    const int64_t shape[] = {static_cast<int64_t>(kCount)};
    const TensorView view{.data = memory, .shape = shape};
    return device_->survey_beside({&view, 1}, {.stream = stream});
  }
  Result<Copy> try_copy(const float* memory, Stream stream, size_t count = kCount) {
    const CopySource source{reinterpret_cast<Address>(memory), count * sizeof(float)};
    return device_->copier().copy({&source, 1}, stream);
  }
  Copy copy(const float* memory, Stream stream, size_t count = kCount) {
    return value_of(try_copy(memory, stream, count));
  }

 private:
  const int ordinal_;
  Context context_ = nullptr;
  std::unique_ptr<Device> device_;
  std::deque<Gate> gates_;

  std::mutex mutex_;  // guards what is below
  std::deque<std::function<void()>> queued_;
};

}  // namespace smd::gpu
