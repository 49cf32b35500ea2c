#pragma once

// The bytes of a field, as protozero gives them, as text.

#include <protozero/data_view.hpp>
#include <string_view>

namespace smd::format::internal {

inline std::string_view text_of(protozero::data_view view) { return {view.data(), view.size()}; }

}  // namespace smd::format::internal
