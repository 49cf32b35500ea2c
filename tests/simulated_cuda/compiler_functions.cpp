// The functions of NVRTC that smd/gpu/compiler.cpp looks up. The text of the kernels is only looked
// at: the library has them already, built for the host.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "tests/simulated_cuda/code.h"
#include "tests/simulated_cuda/kernel.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace simulated_cuda {
namespace {

// As NVRTC numbers them; zero is success there, too.
constexpr int kInvalidInput = 3;
constexpr int kInvalidOption = 5;
constexpr int kCompilation = 6;

constexpr int kCapabilities[] = {70, 80, 90};

struct Program {
  std::string source;
  std::string code;
  std::string log;
};

Program& program_of(void* handle) { return *static_cast<Program*>(handle); }

int fail(Program& program, int result, std::string why) {
  program.log = std::move(why);
  return result;
}

bool take(std::string_view option, std::string_view name, std::string_view& value) {
  if (!option.starts_with(name)) return false;
  value = option.substr(name.size());
  return true;
}

int give(const std::string& text, char* to) {
  std::memcpy(to, text.data(), text.size());
  return kSuccess;
}

}  // namespace
}  // namespace simulated_cuda

using namespace simulated_cuda;  // NOLINT: below are the functions of another language

// No real one has this version: what it made is not taken for theirs, should it be kept in a cache.
SIMULATED_CUDA_EXPORT int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = 1;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kCapabilities));
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcGetSupportedArchs(int* capabilities) {
  std::copy(std::begin(kCapabilities), std::end(kCapabilities), capabilities);
  return kSuccess;
}

SIMULATED_CUDA_EXPORT const char* nvrtcGetErrorString(int result) {
  switch (result) {
    case kSuccess: return "NVRTC_SUCCESS";
    case kInvalidInput: return "NVRTC_ERROR_INVALID_INPUT";
    case kInvalidOption: return "NVRTC_ERROR_INVALID_OPTION";
    case kCompilation: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR unknown";
  }
}

SIMULATED_CUDA_EXPORT int nvrtcCreateProgram(void** program, const char* source, const char*, int,
                                             const char* const*, const char* const*) {
  if (source == nullptr) return kInvalidInput;
  *program = new Program{.source = source, .code = {}, .log = {}};
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcCompileProgram(void* handle, int count, const char* const* options) {
  Program& program = program_of(handle);
  std::string_view element, architecture, rest;
  for (const std::string_view option : std::span(options, static_cast<size_t>(count))) {
    if (take(option, "-DSMD_ELEMENT=", element)) continue;
    if (take(option, "--gpu-architecture=", architecture)) continue;
    if (take(option, "--std=", rest) || take(option, "--fmad=", rest)) continue;
    return fail(program, kInvalidOption, "unknown option " + std::string(option));
  }
  if (architecture != "sm_90") {
    return fail(program, kInvalidOption, "no device is " + std::string(architecture));
  }
  if (program.source.find("smd_survey") == std::string::npos) {
    return fail(program, kCompilation, "the program is not that of survey_kernel.h");
  }
  program.code = code_for(element);
  if (program.code.empty()) {
    return fail(program, kCompilation, "no element is called '" + std::string(element) + "'");
  }
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcGetProgramLogSize(void* program, size_t* bytes) {
  *bytes = program_of(program).log.size() + 1;
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcGetProgramLog(void* program, char* log) {
  return give(program_of(program).log + '\0', log);
}

SIMULATED_CUDA_EXPORT int nvrtcGetCUBINSize(void* program, size_t* bytes) {
  *bytes = program_of(program).code.size();
  return kSuccess;
}

SIMULATED_CUDA_EXPORT int nvrtcGetCUBIN(void* program, char* code) {
  return give(program_of(program).code, code);
}

// Only machine code is made, as the devices are among those that it knows.
SIMULATED_CUDA_EXPORT int nvrtcGetPTXSize(void*, size_t*) { return kInvalidInput; }

SIMULATED_CUDA_EXPORT int nvrtcGetPTX(void*, char*) { return kInvalidInput; }
