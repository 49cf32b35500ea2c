#pragma once

// The JSON files by which a training job tells where something is to lie: {"LocalPath": folder}.
// Pure functions but for the file they read.

#include <optional>
#include <string>

#include "smd/base/result.h"

namespace smd {

struct NamedFolder {
  // nullopt: the file has no such key, or an empty or null one.
  std::optional<std::string> folder;
};

// nullopt: there is no such file. An error: there is one, but it cannot be understood.
Result<std::optional<NamedFolder>> read_named_folder(const std::string& path);

}  // namespace smd
