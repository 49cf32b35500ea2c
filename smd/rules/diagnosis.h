#pragma once

// Looks at a recorded run with many rules: what `smdebug diagnose`, `smdebug watch` and reports
// show. Plain values and functions, which any thread may call.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/rules/finding.h"
#include "smd/rules/runner.h"
#include "smd/rules/trial_feed.h"
#include "smd/trial/trial.h"

namespace smd::rules {

struct DiagnosisOptions {
  // Names of rules; empty: all, without those that write files or need parameters nobody gave.
  std::vector<std::string> rules{};
  // Parameters by the name of a rule, as objects.
  std::map<std::string, Json> parameters{};
  StepRange steps{};
  RuleContext context{};
};

struct Diagnosis {
  // A rule about which there is only a sentence.
  struct Note {
    const RuleKind* kind = nullptr;
    std::string message;
  };

  std::string run;
  uint64_t step_count = 0;
  std::vector<Finding> findings;        // ranked
  std::vector<const RuleKind*> silent;  // judged something and found nothing
  std::vector<Note> not_evaluated;      // nothing to judge, or parameters are missing
  std::vector<Note> failed;
  std::vector<Note> remarks;  // of rules that did something, such as writing a file
  uint64_t unreadable_steps = 0;
  std::string first_problem;  // of these

  // Whether a finding is at least that severe.
  bool has_finding(Severity least) const;
  Json to_json() const;
};

// Adds the rules of the options to a runner that has none; the answer tells of those that were left
// out. invalid_argument and not_found: of names and parameters.
Result<std::vector<Diagnosis::Note>> add_rules(const DiagnosisOptions& options, Runner& runner);

// What a runner has found so far. `left_out`: by add_rules().
Diagnosis conclude(std::string run, const Runner& runner, const TrialFeed& feed,
                   std::vector<Diagnosis::Note> left_out);

// Of all steps that the trial knows now. invalid_argument and not_found: of names and parameters.
// Other errors: the run cannot be read.
Result<Diagnosis> diagnose(const std::shared_ptr<Trial>& trial, const DiagnosisOptions& options);

}  // namespace smd::rules
