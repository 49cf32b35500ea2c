#include "smd/gpu/compiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

extern "C" {
extern const char smd_embedded_survey_kernel[];
extern const char smd_embedded_survey_kernel_end[];
}

namespace smd::gpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStem = "libnvrtc.so";
// A library with one of these in its name may have the compiler beside it.
constexpr std::string_view kNeighbours[] = {"cuda", "cublas", "cudnn", "nvrtc"};
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                  "libnvrtc.so"};

bool is_compiler(const fs::path& path) { return path.filename().string().starts_with(kStem); }

void add(std::vector<std::string>& out, const std::string& path) {
  if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(path);
}

void add_from(std::vector<std::string>& out, const fs::path& folder) {
  std::error_code failed;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (is_compiler(entry.path())) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end(), std::greater<>());  // the newest first
  for (const std::string& path : found) add(out, path);
}

// site-packages/nvidia/<part>/lib, from the folder that holds `nvidia`.
void add_from_packages(std::vector<std::string>& out, const fs::path& packages) {
  std::error_code failed;
  std::vector<fs::path> parts;
  for (const auto& entry : fs::directory_iterator(packages / "nvidia", failed)) {
    parts.push_back(entry.path() / "lib");
  }
  std::sort(parts.begin(), parts.end(), std::greater<>());
  for (const fs::path& part : parts) add_from(out, part);
}

}  // namespace

std::string_view kernel_source() {
  return {smd_embedded_survey_kernel,
          static_cast<size_t>(smd_embedded_survey_kernel_end - smd_embedded_survey_kernel)};
}

std::string_view element_name(DType dtype) {
  switch (dtype) {
    case DType::float16: return "Float16";
    case DType::float32: return "Float32";
    case DType::float64: return "Float64";
    case DType::bfloat16: return "Bfloat16";
    case DType::float8_e4m3fn: return "Float8E4m3fn";
    case DType::float8_e5m2: return "Float8E5m2";
    case DType::int8: return "Int8";
    case DType::int16: return "Int16";
    case DType::int32: return "Int32";
    case DType::int64: return "Int64";
    case DType::uint8: return "Uint8";
    case DType::uint16: return "Uint16";
    case DType::uint32: return "Uint32";
    case DType::uint64: return "Uint64";
    default: return "Boolean";
  }
}

std::vector<std::string> compiler_candidates(const std::vector<std::string>& loaded) {
  std::vector<std::string> out;
  for (const std::string& path : loaded) {
    if (is_compiler(path)) add(out, path);
  }
  for (const std::string& path : loaded) {
    const fs::path file(path);
    const std::string name = file.filename().string();
    const bool near =
        std::any_of(std::begin(kNeighbours), std::end(kNeighbours),
                    [&](std::string_view part) { return name.find(part) != std::string::npos; });
    if (!near) continue;
    add_from(out, file.parent_path());
    // The packages nvidia/<part>/lib and <framework>/lib lie side by side.
    const fs::path above = file.parent_path().parent_path();
    add_from_packages(out, above.parent_path());
    add_from_packages(out, above.parent_path().parent_path());
  }
  for (const char* name : kNames) add(out, name);
  return out;
}

Result<Compiler> Compiler::find() {
  for (const std::string& path : compiler_candidates(loaded_libraries())) {
    if (auto found = open(path); found.ok()) return found;
  }
  return Error{ErrorCode::not_found,
               "NVIDIA's run-time compiler (libnvrtc) is neither among the loaded libraries nor "
               "beside them nor where the loader looks."};
}

Result<Compiler> Compiler::open(const std::string& path) {
  SMD_TRY(SharedLibrary library, SharedLibrary::open(path));
  Compiler out(std::move(library));
  SMD_RETURN_IF_ERROR(out.load());
  return out;
}

Status Compiler::load() {
  int (*version)(int*, int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*capabilities)(int*) = nullptr;
  SMD_RETURN_IF_ERROR(library_.find("nvrtcVersion", version));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetNumSupportedArchs", count));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetSupportedArchs", capabilities));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetErrorString", error_text_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcCreateProgram", create_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcDestroyProgram", destroy_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcCompileProgram", compile_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetProgramLogSize", log_size_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetProgramLog", log_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetCUBINSize", code_size_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetCUBIN", code_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetPTXSize", ptx_size_));
  SMD_RETURN_IF_ERROR(library_.find("nvrtcGetPTX", ptx_));
  int major = 0, minor = 0, known = 0;
  SMD_RETURN_IF_ERROR(check(version(&major, &minor), "tell its version", nullptr));
  SMD_RETURN_IF_ERROR(check(count(&known), "tell the devices that it knows", nullptr));
  capabilities_.resize(static_cast<size_t>(std::max(known, 0)));
  SMD_RETURN_IF_ERROR(
      check(capabilities(capabilities_.data()), "tell the devices that it knows", nullptr));
  if (capabilities_.empty()) return Error{ErrorCode::unsupported, "NVRTC knows no device."};
  version_ = fmt::format("{}.{}", major, minor);
  return {};
}

Result<Bytes> Compiler::compile(DType dtype, int capability) const {
  const bool known =
      std::find(capabilities_.begin(), capabilities_.end(), capability) != capabilities_.end();
  const int newest = *std::max_element(capabilities_.begin(), capabilities_.end());
  if (!known && capability < newest) {
    return Error{ErrorCode::unsupported,
                 fmt::format("NVRTC {} does not know devices of compute capability {}.{}.",
                             version_, capability / 10, capability % 10)};
  }
  return compile({known ? fmt::format("--gpu-architecture=sm_{}", capability)
                        : fmt::format("--gpu-architecture=compute_{}", newest),
                  fmt::format("-DSMD_ELEMENT={}", element_name(dtype)), "--std=c++17",
                  // Sums are the same on every device, and those of the host's build.
                  "--fmad=false"},
                 known);
}

Result<Bytes> Compiler::compile(const std::vector<std::string>& options, bool machine_code) const {
  const std::string source(kernel_source());
  Program program = nullptr;
  SMD_RETURN_IF_ERROR(check(
      create_(&program, source.c_str(), "survey_kernel.h", 0, nullptr, nullptr), "read", nullptr));
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  Bytes code;
  size_t size = 0;
  Status status = check(compile_(program, static_cast<int>(arguments.size()), arguments.data()),
                        "compile the kernels", program);
  if (status.ok()) {
    status = check((machine_code ? code_size_ : ptx_size_)(program, &size), "give code", program);
  }
  if (status.ok()) {
    code.resize(size);
    status = check((machine_code ? code_ : ptx_)(program, reinterpret_cast<char*>(code.data())),
                   "give code", program);
  }
  (void)destroy_(&program);
  if (!status.ok()) return status.error();
  return code;
}

Status Compiler::check(int result, const char* what, Program program) const {
  if (result == 0) return {};
  std::string log;
  size_t size = 0;
  if (program != nullptr && log_size_(program, &size) == 0 && size > 1) {
    log.resize(size);
    (void)log_(program, log.data());
    log.resize(std::min(log.find('\n'), size - 1));
  }
  return Error{ErrorCode::unsupported, fmt::format("NVRTC {} could not {}: {}. {}", version_, what,
                                                   error_text_(result), log)};
}

}  // namespace smd::gpu
