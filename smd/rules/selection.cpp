#include "smd/rules/selection.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/types/tensor_name.h"

namespace smd::rules {
namespace {

constexpr size_t kMostIds = 256;

Result<std::vector<Pattern>> compile(const std::vector<std::string>& texts) {
  std::vector<Pattern> out;
  for (const std::string& text : texts) {
    SMD_TRY(auto pattern, Pattern::compile(text));
    out.push_back(std::move(pattern));
  }
  return out;
}

bool any_found(const std::vector<Pattern>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const Pattern& p) { return p.found_in(name); });
}

}  // namespace

Result<Selection> Selection::create(SelectionOptions options, const Parameters& parameters) {
  Selection out;
  const auto& excluded = parameters.list("exclude_regex");
  options.exclude.insert(options.exclude.end(), excluded.begin(), excluded.end());
  SMD_TRY(out.patterns_, compile(options.patterns));
  SMD_TRY(out.exclude_, compile(options.exclude));
  out.workers_ = parameters.text("workers");
  out.options_ = std::move(options);
  return out;
}

Status require_selector(std::string_view rule, const Parameters& parameters) {
  if (parameters.has(kCollectionNames.name) || parameters.has(kTensorRegex.name)) return {};
  return Error{ErrorCode::not_found,
               fmt::format("{} needs collection_names or tensor_regex to know which tensors to "
                           "judge.",
                           rule)};
}

void Selection::forget_if_changed(const RunView& run) {
  if (run.collections_revision == revision_) return;
  revision_ = run.collections_revision;
  known_.clear();
  by_id_.clear();
  last_ = nullptr;
}

bool Selection::decide(const RunView& run, uint32_t tensor) const {
  const std::string& name = run.tensor(tensor);
  if (parse_reduction_name(name)) return false;
  if (any_found(exclude_, name)) return false;
  if (options_.collections.empty() && patterns_.empty()) return true;
  if (any_found(patterns_, name)) return true;
  return std::ranges::any_of(options_.collections, [&](const std::string& wanted) {
    const auto collection = run.collections->find(wanted);
    return collection != nullptr && collection->holds(name);
  });
}

bool Selection::holds(const RunView& run, uint32_t tensor) {
  forget_if_changed(run);
  if (tensor >= known_.size()) known_.resize(tensor + 1, Known::unknown);
  if (known_[tensor] == Known::unknown) {
    known_[tensor] = decide(run, tensor) ? Known::yes : Known::no;
  }
  return known_[tensor] == Known::yes;
}

bool Selection::judges(const StepView& step, const TensorRow& row) const {
  if (options_.values && !row.has_value) return false;
  if (workers_ == "all") return true;
  if (workers_ == "first") return row.is_first_worker;
  return step.worker(row) == workers_;
}

std::span<const uint32_t> Selection::rows(const StepView& step) {
  forget_if_changed(step.run());
  const uint64_t id = step.rows_id();
  if (id == 0 || last_ == nullptr || id != last_id_) {
    if (by_id_.size() >= kMostIds) by_id_.clear();
    const auto known = id == 0 ? by_id_.end() : by_id_.find(id);
    if (known != by_id_.end()) {
      last_ = &known->second;
    } else {
      Rows found;
      for (const TensorRow& row : step.rows()) {
        if (!holds(step.run(), row.tensor)) continue;
        ++found.matched;
        if (judges(step, row)) found.selected.push_back(row.index);
      }
      Rows& place = id == 0 ? other_ : by_id_[id];
      place = std::move(found);
      last_ = &place;
    }
    last_id_ = id;
  }
  matched_ += last_->matched;
  return last_->selected;
}

Result<Selection> select_series(const Parameters& parameters, std::string_view what,
                                std::string_view collection) {
  SelectionOptions options{.what = std::string(what),
                           .collections = parameters.list("collection_names"),
                           .patterns = parameters.list("tensor_regex"),
                           .statistics = {Statistic::mean}};
  if (options.collections.empty() && options.patterns.empty()) {
    options.collections.emplace_back(collection);
  }
  return Selection::create(std::move(options), parameters);
}

}  // namespace smd::rules
