#pragma once

// How files look before they are published: nobody lists or reports them.

#include <string_view>

namespace smd::storage::internal {

inline constexpr std::string_view kTemporary = ".tmp";

}  // namespace smd::storage::internal
