#pragma once

// The tensors that a rule looks at and what it needs of them: collections and patterns together,
// without what is excluded. Decides once per tensor name and remembers. Also what feeds ask to know
// which numbers to read, and what tells people why a rule could not be evaluated.
// One thread at a time.

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "smd/collection/pattern.h"
#include "smd/rules/parameters.h"
#include "smd/rules/statistic.h"
#include "smd/rules/step_view.h"

namespace smd::rules {

struct SelectionOptions {
  std::string what;  // how people call the tensors: "gradients"
  // A tensor is selected if a collection holds it or a pattern is found in its name. Without both
  // lists all tensors are.
  std::vector<std::string> collections{};
  std::vector<std::string> patterns{};
  std::vector<std::string> exclude{};
  // All of them must be there for a tensor to be judged.
  StatisticSet statistics{};
  // Read where they are there.
  StatisticSet context{};
  // The elements must have been saved.
  bool values = false;
  // The rule cannot be evaluated without. If it has only others, one of them must be there.
  bool is_required = true;
};

class Selection final {
 public:
  // With exclude_regex and workers of the parameters. invalid_argument: not a pattern.
  static Result<Selection> create(SelectionOptions options, const Parameters& parameters);

  const SelectionOptions& options() const { return options_; }
  // Whether the rule may look at the tensor.
  bool holds(const RunView& run, uint32_t tensor);
  // Selected, of a worker that the rule judges, and with all that is needed: calls f(row) in the
  // order of the rows. An f that returns a Status ends the loop with its first error.
  template <typename F>
  auto for_each(const StepView& step, F&& f) -> std::invoke_result_t<F, const TensorRow&> {
    constexpr bool kFallible = !std::is_void_v<std::invoke_result_t<F, const TensorRow&>>;
    for (uint32_t index : rows(step)) {
      const TensorRow& row = step.rows()[index];
      if (!row.present.contains_all(options_.statistics)) continue;
      ++judged_;
      if constexpr (kFallible) {
        SMD_RETURN_IF_ERROR(f(row));
      } else {
        f(row);
      }
    }
    if constexpr (kFallible) return {};
  }

  // Whose earlier steps a row is compared with: one number for all rows where the first worker at
  // each step is judged, and that of the worker otherwise.
  uint32_t owner(const TensorRow& row) const { return workers_ == "first" ? 0 : row.worker; }

  // Rows seen that were selected by name, and those that were judged.
  uint64_t matched() const { return matched_; }
  uint64_t judged() const { return judged_; }

 private:
  enum class Known : uint8_t { unknown, no, yes };

  // Selected rows by name, worker and values.
  std::span<const uint32_t> rows(const StepView& step);
  bool decide(const RunView& run, uint32_t tensor) const;
  bool judges(const StepView& step, const TensorRow& row) const;
  void forget_if_changed(const RunView& run);

  SelectionOptions options_;
  std::vector<Pattern> patterns_;
  std::vector<Pattern> exclude_;
  std::string workers_;
  std::vector<Known> known_;  // by tensor
  uint64_t revision_ = 0;     // of the collections
  struct Rows {
    std::vector<uint32_t> selected;
    uint64_t matched = 0;
  };
  std::unordered_map<uint64_t, Rows> by_id_;
  uint64_t last_id_ = 0;
  const Rows* last_ = nullptr;
  Rows other_;  // of a step without id
  uint64_t matched_ = 0;
  uint64_t judged_ = 0;
};

// The two selectors that many rules have, for their parameter tables.
inline constexpr ParameterSpec kCollectionNames = {
    .name = "collection_names",
    .type = ParameterType::list,
    .default_text = "",
    .help = "Tensors of these collections are judged."};
inline constexpr ParameterSpec kTensorRegex = {
    .name = "tensor_regex",
    .type = ParameterType::list,
    .default_text = "",
    .help = "Tensors in whose names one of these patterns is found are judged, too."};

// not_found unless one of them is given: of rules that have no tensors of their own.
Status require_selector(std::string_view rule, const Parameters& parameters);
// Losses, metrics and the like: what the two selectors say or, without them, one collection. Of
// several numbers the mean is taken.
Result<Selection> select_series(const Parameters& parameters, std::string_view what,
                                std::string_view collection);

// For rules that judge every worker unless told otherwise; stands instead of the shared one.
inline constexpr ParameterSpec kAllWorkers = {
    .name = "workers",
    .type = ParameterType::text,
    .default_text = "all",
    .help =
        "Whose tensors are judged: 'all', 'first' (of those that saved it), or a worker's "
        "name.",
    .is_extension = true};

}  // namespace smd::rules
