// The functions of CUDA's driver that smd/gpu/driver.cpp looks up, and those of simulated_cuda.h.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "tests/simulated_cuda/code.h"
#include "tests/simulated_cuda/device.h"
#include "tests/simulated_cuda/event.h"
#include "tests/simulated_cuda/kernel.h"
#include "tests/simulated_cuda/memory.h"
#include "tests/simulated_cuda/registry.h"
#include "tests/simulated_cuda/simulated_cuda.h"
#include "tests/simulated_cuda/stream.h"

namespace simulated_cuda {
namespace {

constexpr int kGlobalCapture = 0;
constexpr size_t kMemoryBytes = size_t{16} << 30;

std::atomic<bool> is_started = false;
std::atomic<bool> has_stream_ids = true;
thread_local int capture_mode = kGlobalCapture;

// Calls what a function does with the device whose context is current.
template <class F>
Code on_current(const char* function, F&& act) {
  if (!is_started) return violation(kNotInitialized, function);
  Device* const device = Device::current();
  if (device == nullptr) {
    return violation(kInvalidContext, std::string(function) + " without a current context");
  }
  if (device->failure() != kSuccess) return device->failure();
  return act(*device);
}

// The same for functions that would end the captures of other threads.
template <class F>
Code on_current_outside_of_capture(const char* function, F&& act) {
  return on_current(function, [&](Device& device) {
    if (Stream::is_any_capturing() && capture_mode == kGlobalCapture) {
      return violation(kCaptureUnsupported, std::string(function) + " ends a capture");
    }
    return act(device);
  });
}

// The same with a stream, of any device unless it is the null stream.
template <class F>
Code on_stream(const char* function, void* handle, F&& act) {
  return on_current(function, [&](Device& device) {
    Stream* const stream =
        handle == nullptr ? &device.null_stream() : Registry<Stream>::all().find(handle);
    if (stream == nullptr) return violation(kInvalidHandle, std::string(function) + ": stream");
    if (stream->device().failure() != kSuccess) return stream->device().failure();
    return act(*stream);
  });
}

// The same with a stream on which something is queued.
template <class F>
Code queue_on(const char* function, void* handle, F&& act) {
  return on_stream(function, handle, [&](Stream& stream) {
    if (stream.is_capturing()) {
      return violation(kCaptureUnsupported, std::string(function) + " on a captured stream");
    }
    return act(stream);
  });
}

template <class F>
Code with_event(const char* function, void* handle, F&& act) {
  return on_current(function, [&](Device&) {
    Event* const event = Registry<Event>::all().find(handle);
    if (event == nullptr) return violation(kInvalidHandle, std::string(function) + ": event");
    return act(*event);
  });
}

Code check_reached(const char* function, const Stream& stream, uint64_t address, size_t bytes) {
  const int device = stream.device().ordinal();
  if (Memory::all().is_reached(address, bytes, device)) return kSuccess;
  return violation(kInvalidValue, std::string(function) + " on device " + std::to_string(device) +
                                      " with an address that is not its own");
}

// Where addresses are looked at when the copy is queued, and again when it is done.
template <class Check>
Code queue_copy(Stream& stream, void* to, uint64_t from, size_t bytes, Check check) {
  if (const Code code = check(); code != kSuccess) return code;
  stream.do_work([=] {
    if (check() != kSuccess) return kIllegalAddress;
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
    return kSuccess;
  });
  return kSuccess;
}

}  // namespace
}  // namespace simulated_cuda

using namespace simulated_cuda;  // NOLINT: below are the functions of another language

// ---- the driver and its devices

int cuInit(unsigned) {
  is_started = true;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int cuGetErrorName(int code, const char** name) {
  *name = name_of(code);
  return *name != nullptr ? kSuccess : kInvalidValue;
}

int cuDeviceGet(int* device, int ordinal) {
  if (!is_started) return violation(kNotInitialized, "cuDeviceGet");
  if (Device::find(ordinal) == nullptr) return kInvalidDevice;
  *device = ordinal;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  constexpr int kMajor = 75;
  constexpr int kMinor = 76;
  if (Device::find(device) == nullptr) return violation(kInvalidDevice, "cuDeviceGetAttribute");
  if (attribute != kMajor && attribute != kMinor) return kInvalidValue;
  *value = attribute == kMajor ? 9 : 0;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (Device::find(device) == nullptr) return violation(kInvalidDevice, "cuDeviceTotalMem");
  *bytes = kMemoryBytes;
  return kSuccess;
}

// ---- contexts

int cuDevicePrimaryCtxRetain(void** context, int device) {
  Device* const found = Device::find(device);
  if (found == nullptr) return violation(kInvalidDevice, "cuDevicePrimaryCtxRetain");
  *context = found->retain_context();
  return kSuccess;
}

int cuCtxPushCurrent_v2(void* context) {
  Device* const device = Device::find(context);
  if (device == nullptr) return violation(kInvalidContext, "cuCtxPushCurrent");
  Device::context_stack().push_back(device);
  return kSuccess;
}

int cuCtxPopCurrent_v2(void** context) {
  if (Device::current() == nullptr) return violation(kInvalidContext, "cuCtxPopCurrent");
  *context = Device::current();
  Device::context_stack().pop_back();
  return kSuccess;
}

int cuCtxGetCurrent(void** context) {
  *context = Device::current();
  return kSuccess;
}

int cuCtxSynchronize() {
  return on_current_outside_of_capture("cuCtxSynchronize", [](Device& device) {
    for (const auto& moment : device.mark_all()) moment->wait();
    return device.failure();
  });
}

// ---- kernels

SIMULATED_CUDA_EXPORT int cuModuleLoadData(void** module, const void* image) {
  return on_current_outside_of_capture("cuModuleLoadData", [&](Device& device) {
    const Element* const element = Module::read(static_cast<const char*>(image));
    if (element == nullptr) return kInvalidImage;
    *module = Registry<Module>::all().add(new Module(device, *element));
    return kSuccess;
  });
}

SIMULATED_CUDA_EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  return on_current("cuModuleGetFunction", [&](Device&) {
    const Module* const found = Registry<Module>::all().find(module);
    if (found == nullptr) return violation(kInvalidHandle, "cuModuleGetFunction: module");
    const Kernel* const kernel = Function::find(name);
    if (kernel == nullptr) return kNotFound;
    *function = Registry<Function>::all().add(new Function(*found, *kernel));
    return kSuccess;
  });
}

SIMULATED_CUDA_EXPORT int cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y,
                                         unsigned grid_z, unsigned block_x, unsigned block_y,
                                         unsigned block_z, unsigned, void* handle, void** arguments,
                                         void**) {
  constexpr unsigned kThreads = 256;  // what the kernels are written for
  return queue_on("cuLaunchKernel", handle, [&](Stream& stream) {
    const Function* const found = Registry<Function>::all().find(function);
    if (found == nullptr) return violation(kInvalidHandle, "cuLaunchKernel: function");
    if (&found->device() != &stream.device() || &stream.device() != Device::current()) {
      return violation(kInvalidHandle, "cuLaunchKernel: function and stream of two devices");
    }
    const bool is_flat = grid_y == 1 && grid_z == 1 && block_y == 1 && block_z == 1;
    if (!is_flat || grid_x == 0 || block_x != kThreads) {
      return violation(kInvalidValue, "cuLaunchKernel: shape of the launch");
    }
    stream.do_work(found->launch(grid_x, arguments[0]));
    return kSuccess;
  });
}

int cuLaunchHostFunc(void* handle, void (*function)(void*), void* argument) {
  return queue_on("cuLaunchHostFunc", handle, [&](Stream& stream) {
    stream.call([=] { function(argument); });
    return kSuccess;
  });
}

// ---- memory

SIMULATED_CUDA_EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  return on_current_outside_of_capture("cuMemHostAlloc", [&](Device&) {
    if (bytes == 0) return violation(kInvalidValue, "cuMemHostAlloc of no bytes");
    *memory = Memory::all().allocate(bytes, Memory::kHost);
    return *memory != nullptr ? kSuccess : kOutOfMemory;
  });
}

SIMULATED_CUDA_EXPORT int cuMemHostGetDevicePointer_v2(unsigned long long* address, void* memory,
                                                       unsigned) {
  return on_current("cuMemHostGetDevicePointer", [&](Device&) {
    if (!Memory::all().is_locked(memory, 1)) {
      return violation(kInvalidValue, "cuMemHostGetDevicePointer of memory that is not locked");
    }
    *address = reinterpret_cast<uint64_t>(memory);
    return kSuccess;
  });
}

int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  return on_current_outside_of_capture("cuMemAlloc", [&](Device& device) {
    if (bytes == 0) return violation(kInvalidValue, "cuMemAlloc of no bytes");
    void* const allocated = Memory::all().allocate(bytes, device.ordinal());
    *memory = reinterpret_cast<uint64_t>(allocated);
    return allocated != nullptr ? kSuccess : kOutOfMemory;
  });
}

int cuMemFreeAsync(unsigned long long memory, void* handle) {
  return queue_on("cuMemFreeAsync", handle, [&](Stream& stream) {
    const int device = stream.device().ordinal();
    stream.call([=] {
      if (!Memory::all().free(reinterpret_cast<void*>(memory), device)) {
        (void)violation(kInvalidValue, "cuMemFreeAsync of memory that was not allocated");
      }
    });
    return kSuccess;
  });
}

// Of whatever context is current.
SIMULATED_CUDA_EXPORT int cuPointerGetAttribute(void* value, int attribute,
                                                unsigned long long address) {
  constexpr int kDeviceOrdinal = 9;
  const int device = Memory::all().device_of(address);
  if (attribute != kDeviceOrdinal || device == Memory::kHost) return kInvalidValue;
  *static_cast<int*>(value) = device;
  return kSuccess;
}

int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                         void* handle) {
  return queue_on("cuMemcpyDtoDAsync", handle, [&](Stream& stream) {
    return queue_copy(stream, reinterpret_cast<void*>(to), from, bytes, [=, &stream] {
      const Code code = check_reached("cuMemcpyDtoDAsync", stream, to, bytes);
      return code != kSuccess ? code : check_reached("cuMemcpyDtoDAsync", stream, from, bytes);
    });
  });
}

SIMULATED_CUDA_EXPORT int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes,
                                               void* handle) {
  return queue_on("cuMemcpyDtoHAsync", handle, [&](Stream& stream) {
    return queue_copy(stream, to, from, bytes, [=, &stream] {
      if (!Memory::all().is_locked(to, bytes)) {
        return violation(kInvalidValue, "cuMemcpyDtoHAsync to memory that is not locked");
      }
      return check_reached("cuMemcpyDtoHAsync", stream, from, bytes);
    });
  });
}

// ---- streams

int cuStreamCreate(void** stream, unsigned) {
  return on_current("cuStreamCreate", [&](Device& device) {
    *stream = &device.new_stream();
    return kSuccess;
  });
}

int cuStreamSynchronize(void* handle) {
  return queue_on("cuStreamSynchronize", handle, [](Stream& stream) {
    stream.mark()->wait();
    return stream.device().failure();
  });
}

int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  return queue_on("cuStreamWaitEvent", handle, [&](Stream& stream) {
    return with_event("cuStreamWaitEvent", event, [&](Event& found) {
      if (auto moment = found.moment()) stream.wait_for(std::move(moment));
      return kSuccess;
    });
  });
}

// A stream that is not the null stream says so in any context, and in none.
SIMULATED_CUDA_EXPORT int cuStreamIsCapturing(void* handle, int* status) {
  if (const Stream* const stream = Registry<Stream>::all().find(handle);
      stream != nullptr && stream->device().failure() == kSuccess) {
    *status = stream->is_capturing() ? 1 : 0;
    return kSuccess;
  }
  return on_stream("cuStreamIsCapturing", handle, [&](Stream& stream) {
    *status = stream.is_capturing() ? 1 : 0;
    return kSuccess;
  });
}

SIMULATED_CUDA_EXPORT int cuStreamGetId(void* handle, unsigned long long* id) {
  return on_stream("cuStreamGetId", handle, [&](Stream& stream) {
    if (!has_stream_ids) return kNotSupported;
    *id = stream.id();
    return kSuccess;
  });
}

SIMULATED_CUDA_EXPORT int cuThreadExchangeStreamCaptureMode(int* mode) {
  std::swap(capture_mode, *mode);
  return kSuccess;
}

// ---- events

int cuEventCreate(void** event, unsigned) {
  return on_current("cuEventCreate", [&](Device& device) {
    *event = Registry<Event>::all().add(new Event(device));
    return kSuccess;
  });
}

int cuEventRecord(void* event, void* handle) {
  return queue_on("cuEventRecord", handle, [&](Stream& stream) {
    return with_event("cuEventRecord", event, [&](Event& found) {
      if (&found.device() != &stream.device()) {
        return violation(kInvalidHandle, "cuEventRecord: event and stream of two devices");
      }
      found.record(stream.mark());
      return kSuccess;
    });
  });
}

int cuEventQuery(void* event) {
  return on_current_outside_of_capture("cuEventQuery", [&](Device&) {
    return with_event("cuEventQuery", event, [](Event& found) {
      const auto moment = found.moment();
      const bool has_come = moment == nullptr || moment->has_come();
      if (found.device().failure() != kSuccess) return found.device().failure();
      return has_come ? kSuccess : kNotReady;
    });
  });
}

int cuEventSynchronize(void* event) {
  return on_current_outside_of_capture("cuEventSynchronize", [&](Device&) {
    return with_event("cuEventSynchronize", event, [](Event& found) {
      if (const auto moment = found.moment()) moment->wait();
      return found.device().failure();
    });
  });
}

// ---- what tests say

void simulated_cuda_set_capturing(void* handle, int capturing) {
  (void)on_stream("simulated_cuda_set_capturing", handle, [&](Stream& stream) {
    stream.set_capturing(capturing != 0);
    return kSuccess;
  });
}

void simulated_cuda_fill(unsigned long long to, const void* from, size_t bytes, void*) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
}

void simulated_cuda_read(void* to, unsigned long long from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
}

void simulated_cuda_set_stream_ids(int known) { has_stream_ids = known != 0; }
