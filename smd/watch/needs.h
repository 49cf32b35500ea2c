#pragma once

// What rules need to be saved, as wishes for a hook: numbers where they are enough, values where
// not. Pure functions.

#include <cstdint>
#include <optional>
#include <vector>

#include "smd/base/result.h"
#include "smd/hook/save_wish.h"
#include "smd/rules/runner.h"

namespace smd::watch {

// The fewest stored reductions from which all of these follow. nullopt: some of them need the
// values.
std::optional<ReductionSet> reductions_for(rules::StatisticSet statistics);

// Of one rule. Collections that it names are asked for, and its patterns get a collection of their
// own, "rule_<name of the rule>". A selection without either looks at what is saved anyway and asks
// for nothing. `save_interval`: nullopt, when the hook saves these collections anyway.
// invalid_argument: an interval below 1.
Result<std::vector<SaveWish>> needs_of(const rules::Evaluation& evaluation,
                                       std::optional<int64_t> save_interval);

}  // namespace smd::watch
