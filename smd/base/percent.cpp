#include "smd/base/percent.h"

#include <charconv>

namespace smd {
namespace {

constexpr std::string_view kPlain = "-._~";
constexpr std::string_view kDigits = "0123456789ABCDEF";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

std::optional<char> byte_of(std::string_view digits) {
  unsigned char byte = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
  if (error != std::errc() || stop != end || digits.size() != 2) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace

std::string percent_encoded(std::string_view text, std::string_view also_plain) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_letter_or_digit(c) || kPlain.find(c) != std::string_view::npos ||
        also_plain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out;
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      const auto byte = byte_of(text.substr(i + 1, 2));
      if (!byte) return std::nullopt;
      out += *byte;
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_blank ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace smd
