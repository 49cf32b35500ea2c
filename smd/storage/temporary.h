#pragma once

// How the names of files end before they are published: nobody lists or reports such files.

#include <string_view>

namespace smd::storage {

inline constexpr std::string_view kTemporary = ".tmp";

inline bool is_temporary(std::string_view path) { return path.ends_with(kTemporary); }

}  // namespace smd::storage
