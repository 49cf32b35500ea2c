#pragma once

// How rules are compared by name: "VanishingGradient", "vanishing_gradient" and "vanishinggradient"
// are one. Pure function.

#include <string>
#include <string_view>

namespace smd::rules {

// In lower case and without underscores.
std::string folded_name(std::string_view name);

}  // namespace smd::rules
