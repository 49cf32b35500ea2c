#include "smd/gpu/compiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "smd/gpu/survey.h"

namespace smd::gpu {
namespace {

namespace fs = std::filesystem;

TEST(Compiler, looks_beside_the_libraries_of_the_framework_before_the_loader_does) {
  const fs::path packages =
      fs::temp_directory_path() / ("smd_packages_" + std::to_string(getpid()));
  const auto place = [&](const char* path) {
    fs::create_directories((packages / path).parent_path());
    std::ofstream(packages / path) << "";
    return (packages / path).string();
  };
  const std::string compiler = place("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
  place("nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.9");
  const std::string runtime = place("nvidia/cuda_runtime/lib/libcudart.so.12");
  const std::string framework = place("framework/lib/libframework_cuda.so");
  const std::string beside = place("toolkit/deep/cuda/lib64/libnvrtc.so.11.2");
  const std::string blas = place("toolkit/deep/cuda/lib64/libcublas.so.11");
  const auto of = [](std::vector<std::string> loaded) { return compiler_candidates(loaded); };
  const auto loader = std::vector<std::string>(
      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"});
  const auto before_loader = [&](std::vector<std::string> first) {
    first.insert(first.end(), loader.begin(), loader.end());
    return first;
  };
  EXPECT_EQ(of({"/lib/libc.so.6"}), loader);
  EXPECT_EQ(of({"/lib/libc.so.6", runtime}), before_loader({compiler}));
  EXPECT_EQ(of({framework}), before_loader({compiler}));
  EXPECT_EQ(of({blas}), before_loader({beside}));
  EXPECT_EQ(of({blas, framework, compiler}), before_loader({compiler, beside}));
  fs::remove_all(packages);
}

TEST(Compiler, a_file_that_is_no_library_is_said_to_be_none) {
  EXPECT_EQ(Compiler::open("/etc/hostname").error().code, ErrorCode::not_found);
  // Every program has this one, and it compiles nothing.
  EXPECT_EQ(Compiler::open("libc.so.6").error().code, ErrorCode::unsupported);
}

TEST(Compiler, every_element_type_has_kernels) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (!can_survey(dtype)) continue;
    EXPECT_TRUE(names.insert(element_name(dtype)).second) << name_of(dtype);
    const std::string name(element_name(dtype));
    EXPECT_TRUE(kernel_source().find("struct " + name + " ") != std::string_view::npos ||
                kernel_source().find("using " + name + " ") != std::string_view::npos)
        << name;
  }
}

}  // namespace
}  // namespace smd::gpu
