#pragma once

// What a rule says when its condition is met. Plain values, and the list that a rule fills.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json.h"
#include "smd/rules/step_view.h"

namespace smd::rules {

enum class Severity : uint8_t { info, warning, error };
// "info", "warning", "error".
std::string_view name_of(Severity severity);
Result<Severity> parse_severity(std::string_view name);

// How the value stands to the threshold.
enum class Op : uint8_t { below, above, equal };
// "<", ">", "==".
std::string_view name_of(Op op);

struct Violation {
  std::string tensor;  // empty: of the run as a whole
  std::string worker;
  std::string metric;  // "abs_mean"
  double value = 0;
  Op op = Op::below;
  double threshold = 0;
  Json context = Json::object();  // further numbers and texts for people

  // A number for the context; one that is not there, which is NaN, is left out.
  Violation& with(std::string_view name, double number);
  Violation& with(std::string_view name, Json detail);
};

struct Hit {
  std::string rule;
  StepInfo step;
  double wall_secs = 0;
  std::optional<Severity> severity;   // nullopt: that of the rule
  std::string message;                // one sentence
  std::vector<Violation> violations;  // the first ones
  uint64_t violation_count = 0;
  std::vector<uint32_t> tensors;  // of all violations, with repetitions
  std::vector<uint32_t> workers;

  // The record of a hit. `parameters`: of the rule.
  Json to_json(const Json& parameters) const;
};

// NaN and infinities become the texts "NaN", "Infinity", "-Infinity".
Json json_of(double number);

// Collects what one rule finds at one step. The rule fires if anything was added.
class Hits final {
 public:
  Hits(const StepInfo& step, double wall_secs, uint64_t max_violations);

  // nullptr: there are enough already; it is counted only. Good until the next call.
  Violation* add(const StepView& step, const TensorRow& row, std::string_view metric, double value,
                 Op op, double threshold);
  // About a tensor of an earlier step; numbers of TensorRow.
  Violation* add(const RunView& run, uint32_t tensor, uint32_t worker, std::string_view metric,
                 double value, Op op, double threshold);
  // About several tensors or none.
  Violation* add(std::string_view tensor, std::string_view metric, double value, Op op,
                 double threshold);
  // Instead of a sentence about the first violation.
  void say(std::string message) { hit_.message = std::move(message); }
  // Other than that of the rule.
  void set_severity(Severity severity) { hit_.severity = severity; }
  // When it happened, for rules that find out later.
  void set_step(const StepInfo& step, double wall_secs);

  bool empty() const { return hit_.violation_count == 0; }
  // Leaves none behind. `rule`: the name.
  Hit take(std::string_view rule);

 private:
  uint64_t max_violations_;
  Hit hit_;
};

}  // namespace smd::rules
