#pragma once

// What a rule found in a run, over all steps: the hits of one rule merged. Plain value.

#include <cstdint>
#include <string>
#include <vector>

#include "smd/rules/hit.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules {

struct Finding {
  struct TensorHits {
    std::string tensor;
    Step first_step = 0;
    uint64_t hits = 0;
  };

  const RuleKind* kind = nullptr;
  Severity severity = Severity::info;  // the highest of the hits
  Json parameters;
  uint64_t hit_count = 0;
  uint64_t violation_count = 0;
  StepInfo first_step;
  StepInfo last_step;
  // Those with the earliest first hit come first, then those with the most hits, then by name.
  std::vector<TensorHits> tensors;
  std::vector<std::string> workers;  // sorted
  Hit first_hit;                     // the evidence: the first of the highest severity
  // The rule whose finding is probably why this one was made; empty: none. See ranking.h.
  std::string explained_by;

  Json to_json() const;
};

}  // namespace smd::rules
