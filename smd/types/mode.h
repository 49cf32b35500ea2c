#pragma once

// The phase of a training job. Values and upper-case names are what the files on disk hold.

#include <array>
#include <cstdint>
#include <string_view>

#include "smd/base/result.h"

namespace smd {

enum class Mode : uint8_t { train = 1, eval = 2, predict = 3, global = 4 };

inline constexpr std::array<Mode, 4> kModes = {Mode::train, Mode::eval, Mode::predict,
                                               Mode::global};

// 0…3, for arrays with one slot per mode.
constexpr size_t index_of(Mode mode) { return static_cast<size_t>(mode) - 1; }

// "TRAIN", "EVAL", "PREDICT", "GLOBAL".
std::string_view name_of(Mode mode);

// From a name in any case; the error names the nearest choice.
Result<Mode> parse_mode(std::string_view name);

}  // namespace smd
