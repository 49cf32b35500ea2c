#include "smd/hook/named_folder.h"

#include <fmt/format.h>

#include "smd/base/json.h"
#include "smd/config/json_value.h"
#include "smd/storage/storage.h"

namespace smd {

Result<std::optional<NamedFolder>> read_named_folder(const std::string& path) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 20;
  const size_t slash = path.rfind('/');
  const std::string parent = slash == std::string::npos ? "."
                             : slash == 0               ? "/"
                                                        : path.substr(0, slash);
  const auto bytes = storage::read_all(*storage::local_storage(parent),
                                       std::string_view(path).substr(slash + 1), kMostBytes);
  if (!bytes.ok()) {
    if (bytes.error().code == ErrorCode::not_found) return std::optional<NamedFolder>();
    return bytes.error();
  }
  SMD_TRY(const Json json, parse_json(as_text(*bytes), path));
  if (!json.is_object()) {
    return Error{ErrorCode::corrupt,
                 fmt::format("Expected an object with the key LocalPath: {}", path)};
  }
  NamedFolder named;
  if (const Json* value = json_member(json, "LocalPath")) {
    SMD_TRY(std::string folder, json_string(*value, "LocalPath"));
    if (!folder.empty()) named.folder = std::move(folder);
  }
  return std::optional(std::move(named));
}

}  // namespace smd
