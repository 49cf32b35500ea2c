#include "smd/gpu/driver.h"

#include <fmt/format.h>

#include "smd/gpu/shared_library.h"

namespace smd::gpu {
namespace {

constexpr int kRelaxedCapture = 2;

struct Loaded {
  Driver driver{};
  Status status;
};

Status load(Driver& driver) {
  SMD_TRY(const SharedLibrary library, SharedLibrary::open("libcuda.so.1"));
  DriverResult (*init)(unsigned flags) = nullptr;
  SMD_RETURN_IF_ERROR(library.find("cuInit", init));
  SMD_RETURN_IF_ERROR(library.find("cuGetErrorName", driver.error_name));
  SMD_RETURN_IF_ERROR(library.find("cuDeviceGet", driver.device_get));
  SMD_RETURN_IF_ERROR(library.find("cuDeviceGetAttribute", driver.device_attribute));
  SMD_RETURN_IF_ERROR(library.find("cuDeviceTotalMem_v2", driver.total_memory));
  SMD_RETURN_IF_ERROR(library.find("cuDevicePrimaryCtxRetain", driver.retain_context));
  SMD_RETURN_IF_ERROR(library.find("cuCtxPushCurrent_v2", driver.push_context));
  SMD_RETURN_IF_ERROR(library.find("cuCtxPopCurrent_v2", driver.pop_context));
  SMD_RETURN_IF_ERROR(library.find("cuCtxGetCurrent", driver.current_context));
  SMD_RETURN_IF_ERROR(library.find("cuModuleLoadData", driver.load_module));
  SMD_RETURN_IF_ERROR(library.find("cuModuleGetFunction", driver.find_function));
  SMD_RETURN_IF_ERROR(library.find("cuLaunchKernel", driver.launch));
  SMD_RETURN_IF_ERROR(library.find("cuMemHostAlloc", driver.allocate_host));
  SMD_RETURN_IF_ERROR(library.find("cuMemHostGetDevicePointer_v2", driver.device_address));
  SMD_RETURN_IF_ERROR(library.find("cuMemAlloc_v2", driver.allocate));
  SMD_RETURN_IF_ERROR(library.find("cuMemcpyDtoDAsync_v2", driver.copy_on_device));
  SMD_RETURN_IF_ERROR(library.find("cuMemcpyDtoHAsync_v2", driver.copy_to_host));
  SMD_RETURN_IF_ERROR(library.find("cuPointerGetAttribute", driver.pointer_attribute));
  SMD_RETURN_IF_ERROR(library.find("cuStreamCreate", driver.create_stream));
  SMD_RETURN_IF_ERROR(library.find("cuStreamWaitEvent", driver.make_stream_wait));
  SMD_RETURN_IF_ERROR(library.find("cuEventCreate", driver.create_event));
  SMD_RETURN_IF_ERROR(library.find("cuEventRecord", driver.record_event));
  SMD_RETURN_IF_ERROR(library.find("cuEventQuery", driver.query_event));
  SMD_RETURN_IF_ERROR(library.find("cuEventSynchronize", driver.wait_for_event));
  SMD_RETURN_IF_ERROR(library.find("cuStreamIsCapturing", driver.is_capturing));
  if (!library.find("cuStreamGetId", driver.stream_id).ok()) driver.stream_id = nullptr;
  SMD_RETURN_IF_ERROR(
      library.find("cuThreadExchangeStreamCaptureMode", driver.exchange_capture_mode));
  return driver.check(init(0), "start the CUDA driver");
}

}  // namespace

Result<const Driver*> Driver::get() {
  static const Loaded loaded = [] {
    Loaded out;
    out.status = load(out.driver);
    return out;
  }();
  if (!loaded.status.ok()) return loaded.status.error();
  return &loaded.driver;
}

Result<int> Driver::device_of(const void* memory) const {
  constexpr int kOrdinal = 9;
  int ordinal = -1;
  SMD_RETURN_IF_ERROR(
      check(pointer_attribute(&ordinal, kOrdinal, reinterpret_cast<Address>(memory)),
            "ask which device has this memory"));
  return ordinal;
}

Status Driver::check_uncaptured(Stream stream) const {
  constexpr DriverResult kImplicitlyCaptured = 906;  // the null stream, while another one is
  int capturing = 0;
  const DriverResult result = is_capturing(stream, &capturing);
  if (result == kImplicitlyCaptured || (result == 0 && capturing != 0)) {
    return Error{ErrorCode::unsupported, "A CUDA graph is being captured."};
  }
  return check(result, "ask whether a graph is being captured");
}

Status Driver::check(DriverResult result, const char* what) const {
  if (result == 0) return {};
  const char* name = nullptr;
  (void)error_name(result, &name);
  return Error{ErrorCode::unsupported,
               fmt::format("Could not {}: {}.", what, name != nullptr ? name : "unknown error")};
}

ContextScope::ContextScope(const Driver& driver, Context context)
    : driver_(driver), capture_mode_(kRelaxedCapture) {
  status_ = driver_.check(driver_.push_context(context), "use the device");
  (void)driver_.exchange_capture_mode(&capture_mode_);
}

ContextScope::~ContextScope() {
  (void)driver_.exchange_capture_mode(&capture_mode_);
  Context popped = nullptr;
  if (status_.ok()) (void)driver_.pop_context(&popped);
}

}  // namespace smd::gpu
