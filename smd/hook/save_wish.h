#pragma once

// What somebody besides the user wants saved, such as a rule: numbers about the tensors of a
// collection, or their values. Wishes add to what the user configured and change nothing of it: a
// tensor whose values the user saves at a step anyway gets no further numbers. Plain value.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "smd/config/save_config.h"
#include "smd/reduce/reduction.h"

namespace smd {

struct SaveWish {
  std::string collection;
  // Patterns that the collection gets, if it has neither patterns nor names of its own.
  std::vector<std::string> include_regex{};
  std::vector<std::string> exclude_regex{};
  // When. Without it, as the collection or else the hook was told to save; if nobody told, every
  // `default_interval` steps; without that, as the hook does by default.
  std::optional<SaveConfig> save_config{};
  std::optional<int64_t> default_interval{};
  bool raw = false;
  ReductionSet reductions{};
};

}  // namespace smd
