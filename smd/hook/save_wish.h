#pragma once

// What somebody besides the user wants saved, such as a rule: numbers about the tensors of a
// collection, or their values. Wishes add to what the user configured and change nothing of it: a
// tensor whose values the user saves at a step anyway gets no further numbers. Plain value and pure
// functions.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/collection/collection_set.h"
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

// Makes the collections of wishes, with patterns for those that have none. invalid_argument: not a
// pattern.
Status give_patterns(const std::vector<SaveWish>& wishes, CollectionSet& collections);

// Decides when wishes without a save_config are due. `by_default`: how the hook saves; `is_told`:
// the user said so. Users may change collections until the first step, so not before it.
void settle(std::vector<SaveWish>& wishes, const CollectionSet& collections,
            const SaveConfig& by_default, bool is_told);

// Every step of one mode from `first` on, `count` of them, and none of other modes.
Result<SaveConfig> next_steps(Mode mode, Step first, int64_t count);

}  // namespace smd
