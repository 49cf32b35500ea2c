#pragma once

// Text as it stands in addresses. Pure functions.

#include <optional>
#include <string>
#include <string_view>

namespace smd {

// Every byte but letters, digits, -._~ and those in `also_plain` as %XX.
std::string percent_encoded(std::string_view text, std::string_view also_plain = {});
// The reverse. Nothing if a '%' has no two hexadecimal digits behind it.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_blank);

}  // namespace smd
