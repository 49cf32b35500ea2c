#pragma once

// Names as TensorBoard takes them. Pure function.

#include <string>
#include <string_view>

namespace smd {

// What is neither a letter, a digit nor one of `-/_.` becomes `_`; slashes in front are dropped.
std::string summary_tag(std::string_view name);

}  // namespace smd
