#pragma once

// "Did you mean …": the choice that is closest to what somebody typed. Pure function.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace smd {

// The closest of `choices` by edit distance, ignoring case; empty when none is reasonably close.
std::string_view nearest(std::string_view typed, std::span<const std::string_view> choices);
std::string_view nearest(std::string_view typed, const std::vector<std::string>& choices);

// " Did you mean 'x'?" or "".
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> choices);
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& choices);

}  // namespace smd
