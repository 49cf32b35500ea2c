#include "smd/collection/internal/python_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace smd {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class Translator final {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  Result<std::string> translate() {
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        SMD_RETURN_IF_ERROR(escape(false));
      } else if (c == '[') {
        SMD_RETURN_IF_ERROR(character_class());
      } else if (c == '(') {
        SMD_RETURN_IF_ERROR(group());
      } else if (c == '{') {
        repeat();
      } else {
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(at_); }
  char peek(size_t ahead) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void copy(size_t count) {
    out_ += pattern_.substr(at_, count);
    at_ = std::min(at_ + count, pattern_.size());
  }
  void replace(size_t count, std::string_view text) {
    out_ += text;
    at_ += count;
  }
  Error unsupported(std::string_view construct, std::string_view why) const {
    return {ErrorCode::unsupported,
            fmt::format("The pattern '{}' uses '{}', {}.", pattern_, construct, why)};
  }

  // The character with the code of `digits` digits to `base`, which start `skip` after the cursor.
  Status code_point(size_t skip, size_t digits, int base) {
    const std::string_view text = rest().substr(std::min(skip, rest().size())).substr(0, digits);
    uint32_t code = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, base);
    const bool complete =
        text.size() == digits && end == text.data() + digits && error == std::errc();
    if (!complete) return unsupported(rest().substr(0, skip + text.size()), "an incomplete escape");
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) || (base == 8 && code > 0377)) {
      return unsupported(rest().substr(0, skip + digits), "which is not a character");
    }
    replace(skip + digits, fmt::format("\\x{{{:x}}}", code));
    return {};
  }

  // A backslash and a digit: a group or a character by its octal number.
  Status number(bool in_class) {
    size_t octal = 0;
    while (octal < 3 && is_octal(peek(1 + octal))) ++octal;
    if (peek(1) == '0' || octal == 3 || (in_class && octal > 0)) return code_point(1, octal, 8);
    if (in_class) return unsupported(rest().substr(0, 2), "which Python does not know");
    const size_t digits = is_digit(peek(2)) ? 2 : 1;
    replace(1 + digits, fmt::format("\\g{{{}}}", pattern_.substr(at_ + 1, digits)));
    return {};
  }

  Status escape(bool in_class) {
    const char c = peek(1);
    const std::string_view same = in_class ? "abdDfnrsStwW" : "AabBdDfnrsStwW";
    if (is_digit(c)) return number(in_class);
    if (!is_letter(c) || same.find(c) != std::string_view::npos) {
      copy(2);  // a lone backslash at the end is for PCRE2 to report
      return {};
    }
    switch (c) {
      case 'x': return code_point(2, 2, 16);
      case 'u': return code_point(2, 4, 16);
      case 'U': return code_point(2, 8, 16);
      case 'v': replace(2, "\\x0b"); return {};
      case 'N': return unsupported("\\N", "a character by its name; write it as \\uXXXX");
      default: break;
    }
    if (c == 'Z' && !in_class) {
      replace(2, "\\z");
      return {};
    }
    return unsupported(rest().substr(0, 2), "an escape that Python does not know");
  }

  Status character_class() {
    copy(1);
    if (peek(0) == '^') copy(1);
    if (peek(0) == ']') replace(1, "\\]");
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (pattern_[at_] == '\\') {
        SMD_RETURN_IF_ERROR(escape(true));
      } else if (pattern_[at_] == '[') {
        replace(1, "\\[");  // "[:alpha:]" has no meaning in Python
      } else {
        copy(1);
      }
    }
    copy(1);
    return {};
  }

  // {,n} means {0,n}; anything else is the same on both sides, also the literal brace.
  void repeat() {
    if (peek(1) != ',') return copy(1);
    size_t end = 2;
    while (is_digit(peek(end))) ++end;
    if (peek(end) != '}') return copy(1);
    out_ += "{0,";
    at_ += 2;
    copy(end - 1);
  }

  Status group() {
    if (peek(1) == '*') return unsupported("(*", "which is an error in Python");
    if (peek(1) != '?') {
      copy(1);
      return {};
    }
    const std::string_view text = rest();
    for (std::string_view same : {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!", "(?P<", "(?P="}) {
      if (text.starts_with(same)) {
        copy(same.size());
        return {};
      }
    }
    if (text.starts_with("(?#")) {
      copy(std::min(text.find(')'), text.size() - 1) + 1);
      return {};
    }
    if (text.starts_with("(?(")) return condition();
    return flags();
  }

  Status condition() {
    const size_t end = rest().find(')');
    if (end == std::string_view::npos) {
      copy(3);
      return {};
    }
    const std::string_view name = rest().substr(3, end - 3);
    if (name.empty() || name.front() == '?' || name.front() == '<' || name.front() == '\'') {
      return unsupported(rest().substr(0, end + 1), "a condition that Python does not know");
    }
    const bool by_number = std::all_of(name.begin(), name.end(), is_digit);
    replace(end + 1, by_number ? fmt::format("(?({})", name) : fmt::format("(?(<{}>)", name));
    return {};
  }

  // (?flags), (?flags:…) and (?flags-flags:…).
  Status flags() {
    const size_t end = rest().find_first_of(":)");
    const std::string_view whole = rest().substr(0, end == std::string_view::npos ? end : end + 1);
    std::string kept;
    for (char c : whole.substr(2, whole.size() - 3)) {
      switch (c) {
        case 'i':
        case 'm':
        case 's':
        case '-': kept += c; break;
        case 'u': break;  // Unicode is what patterns mean anyway
        case 'a':
        case 'L': return unsupported(whole, "which limits a pattern to ASCII or a locale");
        case 'x': return unsupported(whole, "the verbose form; write the pattern without spaces");
        default: return unsupported(whole, "a group that Python does not know");
      }
    }
    if (end == std::string_view::npos) return unsupported(whole, "an incomplete group");
    if (whole.back() == ')') {
      if (at_ != flags_end_) {
        return unsupported(whole, "but flags for a whole pattern must stand at its start");
      }
      if (kept.find('-') != std::string::npos) {
        return unsupported(whole, "but flags can be switched off only inside of a group");
      }
    }
    const bool drops_out = kept.empty() && whole.back() == ')';
    const std::string group = drops_out ? "" : fmt::format("(?{}{}", kept, whole.back());
    replace(whole.size(), group);
    if (whole.back() == ')') flags_end_ = at_;
    return {};
  }

  std::string_view pattern_;  // outlives this object, which lives for one call
  size_t at_ = 0;
  size_t flags_end_ = 0;  // of the flags at the start
  std::string out_;
};

}  // namespace

Result<std::string> pcre_from_python(std::string_view pattern) {
  return Translator(pattern).translate();
}

}  // namespace smd
