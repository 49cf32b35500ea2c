#include "smd/rules/folded_name.h"

#include <cctype>

namespace smd::rules {

std::string folded_name(std::string_view name) {
  std::string out;
  for (unsigned char c : name) {
    if (c != '_') out.push_back(static_cast<char>(std::tolower(c)));
  }
  return out;
}

}  // namespace smd::rules
