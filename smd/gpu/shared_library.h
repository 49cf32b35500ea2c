#pragma once

// Libraries that are found when the program runs, and that it must not need. Never unloaded: what
// they started may outlive us. Immutable, thread-safe.

#include <string>
#include <vector>

#include "smd/base/result.h"

namespace smd::gpu {

class SharedLibrary final {
 public:
  // By path, or by name as the loader finds it. not_found: the loader's own words.
  static Result<SharedLibrary> open(const std::string& path);

  // Sets `out` to the function. unsupported: the library has no such function.
  template <typename F>
  Status find(const char* name, F*& out) const {
    SMD_TRY(void* const found, find_symbol(name));
    out = reinterpret_cast<F*>(found);
    return {};
  }

 private:
  SharedLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  Result<void*> find_symbol(const char* name) const;

  void* handle_;
  std::string path_;
};

// Paths of the libraries that this process has loaded.
std::vector<std::string> loaded_libraries();

}  // namespace smd::gpu
