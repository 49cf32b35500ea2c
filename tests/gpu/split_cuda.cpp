// A driver of CUDA that makes two devices of the first real one, which has a context for each: its
// primary one and one of its own. For tests of several devices where there is one. Handles and
// memory of one context are refused in the other by the real driver, as between two devices.
//
// It is found as libcuda.so.1; SPLIT_CUDA_REAL names the real one. Errors that the real one returns
// are counted as the simulated driver's violations are (tests/simulated_cuda/simulated_cuda.h), so
// that the same tests run with both. Copies on a device begin up to SPLIT_CUDA_DELAY_US late.

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kDevices = 2;
constexpr int kInvalidDevice = 101;
constexpr int kNotReady = 600;

std::atomic<long> violations = 0;
std::mutex mutex;  // guards everything below
std::string last_violation;
void* contexts[kDevices];
std::mt19937 random_numbers(1);

void* real(const char* name) {
  static void* const library = dlopen(std::getenv("SPLIT_CUDA_REAL"), RTLD_NOW | RTLD_LOCAL);
  void* const found = library != nullptr ? dlsym(library, name) : nullptr;
  if (found == nullptr) {
    std::fprintf(stderr, "split_cuda: %s\n", dlerror());
    std::abort();
  }
  return found;
}

int checked(const char* name, int code) {
  if (code != 0 && code != kNotReady) {
    const std::lock_guard lock(mutex);
    ++violations;
    last_violation = std::string(name) + ": " + std::to_string(code);
  }
  return code;
}

template <class... Arguments>
int call(const char* name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(real(name));
  return checked(name, function(arguments...));
}

void sleep_a_while(void* microseconds) {
  usleep(static_cast<useconds_t>(reinterpret_cast<size_t>(microseconds)));
}

}  // namespace

#define FORWARD(name, parameters, ...) \
  EXPORT int name parameters { return call(#name __VA_OPT__(, ) __VA_ARGS__); }

using Address = unsigned long long;

FORWARD(cuInit, (unsigned flags), flags)
FORWARD(cuGetExportTable, (const void** table, const void* id), table, id)  // NVRTC asks for it
FORWARD(cuGetErrorName, (int code, const char** name), code, name)
FORWARD(cuCtxPushCurrent_v2, (void* context), context)
FORWARD(cuCtxPopCurrent_v2, (void** context), context)
FORWARD(cuCtxGetCurrent, (void** context), context)
FORWARD(cuCtxSynchronize, ())
FORWARD(cuModuleLoadData, (void** module, const void* image), module, image)
FORWARD(cuModuleGetFunction, (void** function, void* module, const char* name), function, module,
        name)
FORWARD(cuLaunchKernel,
        (void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
         unsigned block_y, unsigned block_z, unsigned shared, void* stream, void** arguments,
         void** extra),
        function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared, stream, arguments,
        extra)
FORWARD(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags), memory, bytes, flags)
FORWARD(cuMemHostGetDevicePointer_v2, (Address * address, void* memory, unsigned flags), address,
        memory, flags)
FORWARD(cuMemAlloc_v2, (Address * memory, size_t bytes), memory, bytes)
FORWARD(cuMemFreeAsync, (Address memory, void* stream), memory, stream)
FORWARD(cuMemcpyDtoHAsync_v2, (void* to, Address from, size_t bytes, void* stream), to, from, bytes,
        stream)
FORWARD(cuStreamCreate, (void** stream, unsigned flags), stream, flags)
FORWARD(cuStreamWaitEvent, (void* stream, void* event, unsigned flags), stream, event, flags)
FORWARD(cuStreamIsCapturing, (void* stream, int* status), stream, status)
FORWARD(cuStreamGetId, (void* stream, Address* id), stream, id)
FORWARD(cuThreadExchangeStreamCaptureMode, (int* mode), mode)
FORWARD(cuEventCreate, (void** event, unsigned flags), event, flags)
FORWARD(cuEventRecord, (void* event, void* stream), event, stream)
FORWARD(cuEventQuery, (void* event), event)
FORWARD(cuEventSynchronize, (void* event), event)

// ---- what differs

EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= kDevices) return kInvalidDevice;
  *device = ordinal;
  return 0;
}

EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  return call("cuDeviceGetAttribute", value, attribute, 0);
}

EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int) { return call("cuDeviceTotalMem_v2", bytes, 0); }

EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  int code = 0;
  {
    const std::lock_guard lock(mutex);
    if (contexts[device] == nullptr) {
      if (device == 0) {
        using Retain = int (*)(void**, int);
        code = reinterpret_cast<Retain>(real("cuDevicePrimaryCtxRetain"))(&contexts[device], 0);
      } else {
        using Create = int (*)(void**, unsigned, int);
        using Pop = int (*)(void**);
        void* created = nullptr;
        code = reinterpret_cast<Create>(real("cuCtxCreate_v2"))(&contexts[device], 0, 0);
        if (code == 0) {  // it is the current one now
          code = reinterpret_cast<Pop>(real("cuCtxPopCurrent_v2"))(&created);
        }
      }
    }
    *context = contexts[device];
  }
  return checked("cuDevicePrimaryCtxRetain", code);
}

EXPORT int cuPointerGetAttribute(void* value, int attribute, Address address) {
  constexpr int kContext = 1;
  constexpr int kOrdinal = 9;
  if (attribute != kOrdinal) return call("cuPointerGetAttribute", value, attribute, address);
  void* context = nullptr;
  const int code = call("cuPointerGetAttribute", static_cast<void*>(&context), kContext, address);
  const std::lock_guard lock(mutex);
  *static_cast<int*>(value) = context == contexts[1] ? 1 : 0;
  return code;
}

EXPORT int cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
  static const char* const most = std::getenv("SPLIT_CUDA_DELAY_US");
  if (most != nullptr) {
    std::unique_lock lock(mutex);
    const size_t microseconds = random_numbers() % (std::strtoul(most, nullptr, 10) + 1);
    lock.unlock();
    if (const int code =
            call("cuLaunchHostFunc", stream, &sleep_a_while, reinterpret_cast<void*>(microseconds));
        code != 0) {
      return code;
    }
  }
  return call("cuMemcpyDtoDAsync_v2", to, from, bytes, stream);
}

// ---- what tests say

EXPORT long simulated_cuda_violations() { return violations; }

EXPORT const char* simulated_cuda_last_violation() {
  static thread_local std::string out;
  const std::lock_guard lock(mutex);
  out = last_violation;
  return out.c_str();
}

EXPORT void simulated_cuda_fill(Address to, const void* from, size_t bytes, void* stream) {
  (void)call("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
}

EXPORT void simulated_cuda_read(void* to, Address from, size_t bytes) {
  (void)call("cuMemcpyDtoH_v2", to, from, bytes);
}
