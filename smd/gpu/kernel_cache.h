#pragma once

// Compiled kernels in files, so that they are compiled once per user and not once per process. A
// file that is broken, or of other kernels, is as good as none. Thread-safe; processes may share
// it.

#include <optional>
#include <string>
#include <string_view>

#include "smd/base/bytes.h"

namespace smd::gpu {

class KernelCache final {
 public:
  // Empty: there is no cache.
  explicit KernelCache(std::string folder) : folder_(std::move(folder)) {}

  // `key` says everything that the code depends on; `name` begins the file's name.
  std::optional<Bytes> find(std::string_view name, std::string_view key) const;
  // Does nothing where that is not possible: the code is compiled again then.
  void store(std::string_view name, std::string_view key, ByteSpan code) const;

 private:
  std::string path_of(std::string_view name, std::string_view key) const;

  const std::string folder_;
};

}  // namespace smd::gpu
