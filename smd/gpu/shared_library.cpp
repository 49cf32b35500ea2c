#include "smd/gpu/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

namespace smd::gpu {

Result<SharedLibrary> SharedLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return SharedLibrary(handle, path);
  const char* reason = dlerror();
  return Error{ErrorCode::not_found, reason != nullptr ? reason : "It cannot be loaded: " + path};
}

Result<void*> SharedLibrary::find_symbol(const char* name) const {
  if (void* found = dlsym(handle_, name); found != nullptr) return found;
  return Error{ErrorCode::unsupported, fmt::format("The library has no {}: {}", name, path_)};
}

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* found) {
        if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
          static_cast<std::vector<std::string>*>(found)->emplace_back(info->dlpi_name);
        }
        return 0;
      },
      &out);
  return out;
}

}  // namespace smd::gpu
