#include "smd/types/mode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "smd/base/nearest.h"

namespace smd {
namespace {
constexpr std::array<std::string_view, 4> kNames = {"TRAIN", "EVAL", "PREDICT", "GLOBAL"};
}  // namespace

std::string_view name_of(Mode mode) { return kNames[index_of(mode)]; }

Result<Mode> parse_mode(std::string_view name) {
  auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (Mode mode : kModes) {
    const std::string_view known = name_of(mode);
    if (std::equal(name.begin(), name.end(), known.begin(), known.end(), same)) return mode;
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is not a mode; expected TRAIN, EVAL, PREDICT or GLOBAL.{}", name,
                           did_you_mean(name, kNames))};
}

}  // namespace smd
