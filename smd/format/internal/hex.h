#pragma once

// Bytes from the hex dumps in the format's documentation, for tests.

#include <cctype>
#include <string>
#include <string_view>

namespace smd::format::internal {

inline std::string from_hex(std::string_view text) {
  std::string out;
  std::string digits;
  for (char c : text) {
    if (isxdigit(c) == 0) continue;
    digits += c;
    if (digits.size() == 2) {
      out += static_cast<char>(std::stoi(digits, nullptr, 16));
      digits.clear();
    }
  }
  return out;
}

}  // namespace smd::format::internal
