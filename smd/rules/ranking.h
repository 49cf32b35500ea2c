#pragma once

// Which finding of a run comes first: the one that explains the others. Pure functions over one
// immutable table, thread-safe.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "smd/rules/finding.h"

namespace smd::rules {

// Where in the chain of cause and effect a rule looks; each explains those after it.
enum class CauseStage : uint8_t {
  given,      // what the training was given: data, labels, initial weights, settings
  loop,       // how steps are made: ranks, optimizer, gradients that are reset
  growth,     // numbers on their way out of their type
  nonfinite,  // NaN and infinity
  layer,      // a layer that passes nothing on
  gradient,   // gradients that are too small or too large
  update,     // weights that do not move as they should
  outcome,    // losses, metrics, the whole job
};

struct CauseRow {
  std::string_view rule;
  CauseStage stage = CauseStage::outcome;
  std::string_view reason;  // why it stands there
};

// Of one stage, the more precise rule comes first.
std::span<const CauseRow> cause_table();

// nullopt: the table does not know the rule, so that it explains nothing and nothing explains it.
std::optional<CauseStage> cause_stage(std::string_view rule);

// Whether `a` may be why `b` was found: it looks at an earlier stage, was met no later, is no less
// severe, and no hint (RuleKind::is_hint_unasked). What was given was there from the beginning,
// whenever somebody saw it.
bool explains(const Finding& a, const Finding& b);

// Causes before what they explain. Findings that do not explain each other stand by severity, hints
// last, then those about tensors before those about the run or its outcome, then by the first step
// unless it was given, then as in the table, then by name. Sets Finding::explained_by to the first
// one that explains it.
void rank(std::vector<Finding>& findings);

}  // namespace smd::rules
