#pragma once

// The text of the kernels, and NVIDIA's run-time compiler for it (NVRTC), which comes with the CUDA
// libraries of a framework. Immutable, thread-safe.

#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/gpu/shared_library.h"
#include "smd/tensor/dtype.h"

namespace smd::gpu {

// survey_kernel.h, as it was when this was built.
std::string_view kernel_source();

// What SMD_ELEMENT is for elements of this type, which can_survey() accepts.
std::string_view element_name(DType dtype);

class Compiler final {
 public:
  // Looks among the loaded libraries, beside them, where packages of a Python environment have it,
  // and where the loader looks. not_found: it is nowhere.
  static Result<Compiler> find();
  // At this path.
  static Result<Compiler> open(const std::string& path);

  // "12.9".
  const std::string& version() const { return version_; }

  // The kernels for one element type and a device of this compute capability, such as 90: machine
  // code, or for a device newer than the compiler an intermediate form that drivers translate.
  Result<Bytes> compile(DType dtype, int capability) const;

 private:
  using Program = void*;

  explicit Compiler(SharedLibrary library) : library_(std::move(library)) {}
  Status load();
  Result<Bytes> compile(const std::vector<std::string>& options, bool machine_code) const;
  Status check(int result, const char* what, Program program) const;

  SharedLibrary library_;
  std::string version_;
  std::vector<int> capabilities_;
  const char* (*error_text_)(int) = nullptr;
  int (*create_)(Program*, const char*, const char*, int, const char* const*,
                 const char* const*) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*compile_)(Program, int, const char* const*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*code_size_)(Program, size_t*) = nullptr;
  int (*code_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
};

// Where find() looks, given the paths of loaded libraries: paths and names, best first.
std::vector<std::string> compiler_candidates(const std::vector<std::string>& loaded);

}  // namespace smd::gpu
