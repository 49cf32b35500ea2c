#include "smd/summary/tag.h"

#include <algorithm>

#include "smd/base/result.h"
#include "smd/collection/pattern.h"

namespace smd {
namespace {

bool is_plain(char c) {
  const bool alphanumeric =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric || c == '-' || c == '/' || c == '_' || c == '.';
}

constexpr unsigned kAscii = 0x80;
bool is_ascii(char c) { return static_cast<unsigned char>(c) < kAscii; }
// Bytes of a character after its first one.
bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == kAscii; }

bool is_word(std::string_view character) {
  static const Pattern kWord = [] {
    auto word = Pattern::compile(R"(^\w$)");
    SMD_CHECK(word.ok());
    return *word;
  }();
  return kWord.found_in(character);
}

}  // namespace

std::string summary_tag(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
  std::string tag;
  tag.reserve(name.size());
  for (size_t i = 0; i < name.size();) {
    size_t end = i + 1;
    while (end < name.size() && continues(name[end])) ++end;
    const std::string_view character = name.substr(i, end - i);
    const bool kept =
        character.size() == 1 && is_ascii(name[i]) ? is_plain(name[i]) : is_word(character);
    tag += kept ? character : "_";
    i = end;
  }
  return tag;
}

}  // namespace smd
