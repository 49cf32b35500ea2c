#include "smd/rules/hit.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "smd/base/nearest.h"
#include "smd/rules/number_text.h"

namespace smd::rules {
namespace {

constexpr std::array<std::string_view, 3> kSeverities = {"info", "warning", "error"};
constexpr std::array<std::string_view, 3> kOps = {"<", ">", "=="};
constexpr std::array<std::string_view, 3> kOpWords = {"below", "above", "equal to"};

std::string sentence(const Violation& v, uint64_t count) {
  std::string out = fmt::format(
      "{}{} is {}, {} {}", v.metric, v.tensor.empty() ? "" : fmt::format(" of '{}'", v.tensor),
      number_text(v.value), kOpWords[static_cast<size_t>(v.op)], number_text(v.threshold));
  if (count > 1) out += fmt::format(", and {} more like it", count - 1);
  return out + ".";
}

}  // namespace

std::string_view name_of(Severity severity) { return kSeverities[static_cast<size_t>(severity)]; }

Result<Severity> parse_severity(std::string_view name) {
  for (size_t i = 0; i < kSeverities.size(); ++i) {
    if (kSeverities[i] == name) return static_cast<Severity>(i);
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("'{}' is not a severity; expected info, warning or error.{}", name,
                           did_you_mean(name, kSeverities))};
}

std::string_view name_of(Op op) { return kOps[static_cast<size_t>(op)]; }

Json json_of(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  return number;
}

Violation& Violation::with(std::string_view name, double number) {
  if (!std::isnan(number)) context[std::string(name)] = json_of(number);
  return *this;
}

Violation& Violation::with(std::string_view name, Json detail) {
  context[std::string(name)] = std::move(detail);
  return *this;
}

Json Hit::to_json(const Json& parameters) const {
  Json list = Json::array();
  for (const Violation& v : violations) {
    list.push_back({{"tensor", v.tensor.empty() ? Json(nullptr) : Json(v.tensor)},
                    {"worker", v.worker.empty() ? Json(nullptr) : Json(v.worker)},
                    {"metric", v.metric},
                    {"value", json_of(v.value)},
                    {"op", name_of(v.op)},
                    {"threshold", json_of(v.threshold)},
                    {"context", v.context}});
  }
  return {{"rule", rule},
          {"step", step.step},
          {"mode", name_of(step.mode)},
          {"mode_step", step.mode_step},
          {"time", wall_secs > 0 ? Json(wall_secs) : Json(nullptr)},
          {"parameters", parameters},
          {"message", message},
          {"violations", std::move(list)},
          {"violation_count", violation_count}};
}

Hits::Hits(const StepInfo& step, double wall_secs, uint64_t max_violations)
    : max_violations_(max_violations) {
  set_step(step, wall_secs);
}

void Hits::set_step(const StepInfo& step, double wall_secs) {
  hit_.step = step;
  hit_.wall_secs = wall_secs;
}

Violation* Hits::add(const StepView& step, const TensorRow& row, std::string_view metric,
                     double value, Op op, double threshold) {
  return add(step.run(), row.tensor, row.worker, metric, value, op, threshold);
}

Violation* Hits::add(const RunView& run, uint32_t tensor, uint32_t worker, std::string_view metric,
                     double value, Op op, double threshold) {
  hit_.tensors.push_back(tensor);
  hit_.workers.push_back(worker);
  Violation* added = add(run.tensor(tensor), metric, value, op, threshold);
  if (added != nullptr) added->worker = run.worker(worker);
  return added;
}

Violation* Hits::add(std::string_view tensor, std::string_view metric, double value, Op op,
                     double threshold) {
  ++hit_.violation_count;
  if (hit_.violations.size() >= max_violations_) return nullptr;
  hit_.violations.push_back({.tensor = std::string(tensor),
                             .worker = {},
                             .metric = std::string(metric),
                             .value = value,
                             .op = op,
                             .threshold = threshold});
  return &hit_.violations.back();
}

Hit Hits::take(std::string_view rule) {
  Hit out = std::move(hit_);
  hit_ = {};
  out.rule = rule;
  if (out.message.empty() && !out.violations.empty()) {
    out.message = sentence(out.violations.front(), out.violation_count);
  }
  return out;
}

}  // namespace smd::rules
