#pragma once

// What rules say of a run that may still grow: a runner that is fed step by step, and what it has
// found so far as values that others may read.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/rules/diagnosis.h"
#include "smd/rules/progress_meter.h"
#include "smd/trial/trial.h"

namespace smd::server {

// Immutable.
struct Verdict {
  enum class State : uint8_t { pending, live, final };

  State state = State::pending;
  uint64_t number = 0;               // grows with every verdict about a run
  uint64_t steps = 0;                // that the rules have seen
  std::array<uint64_t, 3> counts{};  // of findings, by severity
  Json document;                     // Diagnosis::to_json()
};
// "pending", "live", "final".
std::string_view name_of(Verdict::State state);

// One thread at a time.
class Judgement final {
 public:
  Judgement(std::shared_ptr<Trial> trial, std::shared_ptr<const Clock> clock);
  ~Judgement();

  // Lets the rules see at most `most_rows` further steps. `is_over`: nothing more will come, so
  // that the rules are asked for the last time when they have seen everything.
  // True: they have seen all there is. Error: the run cannot be read now.
  Result<bool> advance(size_t most_rows, bool is_over);
  bool is_final() const { return is_final_; }
  // Steps came after the rules were asked for the last time: only a new judgement sees them.
  bool is_outdated() const;

  Verdict verdict(Verdict::State state) const;

 private:
  const std::shared_ptr<Trial> trial_;
  rules::Runner runner_;
  rules::TrialFeed feed_;
  rules::ProgressMeter meter_;
  std::vector<rules::Diagnosis::Note> left_out_;
  Step next_step_ = 0;
  bool is_final_ = false;
};

}  // namespace smd::server
