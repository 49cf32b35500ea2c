#include "tests/simulated_cuda/code.h"

#include <mutex>

#include "tests/simulated_cuda/simulated_cuda.h"

namespace simulated_cuda {
namespace {

struct Violations {
  std::mutex mutex;  // guards everything below
  long count = 0;
  std::string last;
};

Violations& violations() {
  static auto& all = *new Violations;
  return all;
}

}  // namespace

const char* name_of(Code code) {
  switch (code) {
    case kSuccess: return "CUDA_SUCCESS";
    case kInvalidValue: return "CUDA_ERROR_INVALID_VALUE";
    case kOutOfMemory: return "CUDA_ERROR_OUT_OF_MEMORY";
    case kNotInitialized: return "CUDA_ERROR_NOT_INITIALIZED";
    case kInvalidDevice: return "CUDA_ERROR_INVALID_DEVICE";
    case kInvalidImage: return "CUDA_ERROR_INVALID_IMAGE";
    case kInvalidContext: return "CUDA_ERROR_INVALID_CONTEXT";
    case kInvalidHandle: return "CUDA_ERROR_INVALID_HANDLE";
    case kNotFound: return "CUDA_ERROR_NOT_FOUND";
    case kNotReady: return "CUDA_ERROR_NOT_READY";
    case kIllegalAddress: return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case kLaunchFailed: return "CUDA_ERROR_LAUNCH_FAILED";
    case kNotSupported: return "CUDA_ERROR_NOT_SUPPORTED";
    case kCaptureUnsupported: return "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
    default: return nullptr;
  }
}

Code violation(Code code, const std::string& what) {
  Violations& all = violations();
  const std::lock_guard lock(all.mutex);
  ++all.count;
  all.last = what + ": " + name_of(code);
  return code;
}

}  // namespace simulated_cuda

using simulated_cuda::violations;

long simulated_cuda_violations() {
  const std::lock_guard lock(violations().mutex);
  return violations().count;
}

const char* simulated_cuda_last_violation() {
  thread_local std::string copy;
  const std::lock_guard lock(violations().mutex);
  copy = violations().last;
  return copy.c_str();
}

void simulated_cuda_forget_violations() {
  const std::lock_guard lock(violations().mutex);
  violations().count = 0;
  violations().last.clear();
}
