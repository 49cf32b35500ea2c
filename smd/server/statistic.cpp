#include "smd/server/statistic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "smd/base/nearest.h"
#include "smd/reduce/reduction.h"
#include "smd/rules/elements.h"
#include "smd/rules/statistic.h"

namespace smd::server {
namespace {

constexpr uint64_t kMostValueBytes = uint64_t{1} << 30;

struct Known {
  std::string_view name;
  std::string_view label;
  bool suits_log;
};

// In the order in which they are offered.
constexpr Known kReductions[] = {
    {"l2", "L2 norm", true},
    {"abs_mean", "mean magnitude", true},
    {"abs_max", "largest magnitude", true},
    {"std", "standard deviation", true},
    {"mean", "mean", false},
    {"min", "minimum", false},
    {"max", "maximum", false},
    {"median", "median", false},
    {"variance", "variance", true},
    {"l1", "L1 norm", true},
    {"sum", "sum", false},
};
constexpr Known kMade[] = {
    {"nonfinite", "NaN or infinite", false},   {"gradient_ratio", "gradient / weight", true},
    {"update_ratio", "update / weight", true}, {"zero_percent", "zeros in percent", false},
    {"nan_count", "NaN elements", false},      {"inf_count", "infinite elements", false},
    {"zero_count", "zero elements", false},    {"value", "value", false},
};
// Of which any tells of a NaN or an infinity; the ones that miss nothing first.
constexpr std::string_view kTelling[] = {"abs_max", "l2",  "abs_mean", "l1",  "mean",
                                         "std",     "sum", "max",      "min", "variance"};

bool has_slot(const Model::Tensor& tensor, uint32_t slot) {
  return std::ranges::find(tensor.slots, slot) != tensor.slots.end();
}

uint32_t slot_of(const Snapshot& snapshot, std::string_view reduction) {
  const auto slot = snapshot.find_slot(reduction, false);
  return slot ? slot->id() : kNone;
}

bool any(const Model& model, auto&& test) { return std::ranges::any_of(model.tensors, test); }

// Whether reductions can be computed of it; those of single numbers tell nothing.
bool has_elements(const Model::Tensor& tensor) { return tensor.has_value && !tensor.is_number; }

bool is_weight(const Model::Tensor& tensor) {
  return tensor.role == Role::weight || tensor.role == Role::bias;
}

// By id: the gradient of the tensor that it stands for; kNone: none.
std::vector<uint32_t> gradients_of(const RunFacts& facts) {
  const NameList& names = facts.snapshot->names().tensors;
  std::vector<uint32_t> out(names.size(), kNone);
  for (const Model::Tensor& tensor : facts.model->tensors) {
    const std::string_view target = gradient_target(names[tensor.id]);
    if (target.empty()) continue;
    const auto id = names.find(target);
    if (id && *id < out.size()) out[*id] = tensor.id;
  }
  return out;
}

}  // namespace

std::vector<StatisticInfo> statistics_of(const RunFacts& facts) {
  const Model& model = *facts.model;
  std::vector<StatisticInfo> out;
  const bool has_values = any(model, [](const Model::Tensor& t) {
    return has_elements(t) && t.role != Role::loss && t.role != Role::metric;
  });
  std::vector<uint32_t> offered;
  const auto add_reduction = [&](const Known& known) {
    const uint32_t slot = slot_of(*facts.snapshot, known.name);
    const bool is_stored =
        slot != kNone && any(model, [&](const Model::Tensor& t) { return has_slot(t, slot); });
    if (is_stored) offered.push_back(slot);
    if (is_stored || has_values) {
      out.push_back(
          {std::string(known.name), std::string(known.label), is_stored, known.suits_log});
    }
  };
  for (const Known& known : kReductions) add_reduction(known);
  // What is stored comes before what would have to be computed.
  std::ranges::stable_sort(out, std::greater(), &StatisticInfo::is_stored);
  std::vector<uint32_t> others;
  for (const Model::Tensor& tensor : model.tensors) {
    for (const uint32_t slot : tensor.slots) {
      const bool is_known = std::ranges::find(offered, slot) != offered.end() ||
                            std::ranges::find(others, slot) != others.end();
      if (!is_known) others.push_back(slot);
    }
  }
  std::ranges::sort(others);
  for (const uint32_t slot : others) {
    const std::string name = facts.snapshot->slot_name(Slot::from_id(slot));
    const bool suits_log = name.starts_with("abs_") || name.starts_with("l");
    out.push_back({name, name, true, suits_log});
  }
  for (const Known& made : kMade) {
    const auto found = Statistic::find(facts, made.name);
    if (!found.ok()) continue;
    if (any(model, [&](const Model::Tensor& t) { return found->is_of(t); })) {
      const bool is_stored = !any(
          model, [&](const Model::Tensor& t) { return found->is_of(t) && found->is_computed(t); });
      out.push_back({std::string(made.name), std::string(made.label), is_stored, made.suits_log});
    }
  }
  return out;
}

Result<Statistic> Statistic::find(const RunFacts& facts, std::string_view name) {
  Statistic out;
  out.name_ = name;
  const Model& model = *facts.model;
  if (name == "value") {
    out.kind_ = Kind::value;
    out.reduction_ = name;
    return out;
  }
  if (name == "nonfinite") {
    out.kind_ = Kind::nonfinite;
    out.reduction_ = kTelling[0];
    for (const std::string_view telling : kTelling) {
      const uint32_t slot = slot_of(*facts.snapshot, telling);
      if (slot == kNone) continue;
      if (!any(model, [&](const Model::Tensor& t) { return has_slot(t, slot); })) continue;
      out.reduction_ = telling;
      out.slot_ = slot;
      break;
    }
    return out;
  }
  if (name == "update_ratio") {
    out.kind_ = Kind::update_ratio;
    return out;
  }
  if (name == "gradient_ratio") {
    out.kind_ = Kind::gradient_ratio;
    out.reduction_ = "l2";
    out.slot_ = slot_of(*facts.snapshot, out.reduction_);
    const auto gradients = gradients_of(facts);
    out.gradients_.assign(gradients.size(), false);
    for (size_t id = 0; id < gradients.size(); ++id) {
      const Model::Tensor* const gradient =
          gradients[id] == kNone ? nullptr : model.find(gradients[id]);
      out.gradients_[id] =
          gradient != nullptr && (gradient->has_value || has_slot(*gradient, out.slot_));
    }
    return out;
  }
  for (const std::string_view one : {"nan_count", "inf_count", "zero_count", "zero_percent"}) {
    if (one != name) continue;
    out.kind_ = Kind::element;
    return out;
  }
  out.reduction_ = name;
  out.slot_ = slot_of(*facts.snapshot, name);
  if (out.slot_ != kNone || parse_reduction(name).ok()) return out;
  std::vector<std::string> names;
  for (const StatisticInfo& info : statistics_of(facts)) names.push_back(info.name);
  return Error{ErrorCode::invalid_argument,
               fmt::format("There is no statistic '{}'.{}", name, did_you_mean(name, names))};
}

bool Statistic::is_of(const Model::Tensor& tensor) const {
  switch (kind_) {
    case Kind::reduction:
    case Kind::nonfinite:
      return (slot_ != kNone && has_slot(tensor, slot_)) || has_elements(tensor);
    case Kind::value: return tensor.may_be_number;
    case Kind::element: return has_elements(tensor);
    case Kind::update_ratio: return is_weight(tensor) && tensor.has_value;
    case Kind::gradient_ratio:
      return is_weight(tensor) && tensor.id < gradients_.size() && gradients_[tensor.id] &&
             (tensor.has_value || has_slot(tensor, slot_));
  }
  return false;
}

bool Statistic::is_computed(const Model::Tensor& tensor) const {
  if (kind_ == Kind::value) return false;
  return slot_ == kNone || !has_slot(tensor, slot_);
}

Status Statistic::check_cost(const RunFacts& facts, const Query& query,
                             const std::vector<uint32_t>& tensors) const {
  const Snapshot& snapshot = *facts.snapshot;
  std::vector<bool> is_read(snapshot.names().tensors.size(), false);
  bool is_any = false;
  for (const uint32_t id : tensors) {
    const Model::Tensor* const tensor = facts.model->find(id);
    is_read[id] = tensor != nullptr && is_computed(*tensor);
    is_any = is_any || is_read[id];
  }
  if (!is_any) return {};
  uint64_t bytes = 0;
  for (size_t i = 0; i < snapshot.row_count(); ++i) {
    const StepRow& row = snapshot.row(i);
    if (query.mode != Mode::global && row.info.mode != query.mode) continue;
    const Step step = query.mode == Mode::global ? row.info.step : row.info.mode_step;
    if (!query.range.contains(step)) continue;
    const Part& part = snapshot.part(row.first_part);
    for (const Layout::Entry& entry : snapshot.layout_of(part).entries()) {
      if (entry.slot == Slot::value().id() && is_read[entry.tensor]) bytes += entry.length;
    }
    if (bytes > kMostValueBytes) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} was not saved, and computing it would mean to read more than "
                               "{} GiB of values; choose a module, a role or fewer steps.",
                               name_, kMostValueBytes >> 30)};
    }
  }
  return {};
}

Status Statistic::read(const ServedRun& run, const RunFacts& facts, const Query& query,
                       NumberTable& table) const {
  if (table.tensors.empty()) return {};
  SMD_RETURN_IF_ERROR(check_cost(facts, query, table.tensors));
  switch (kind_) {
    case Kind::nonfinite: return read_nonfinite(run, query, table);
    case Kind::element: return read_elements(run, facts, query, table);
    case Kind::update_ratio: return read_updates(run, facts, query, table);
    case Kind::gradient_ratio: return read_gradient_ratio(run, facts, query, table);
    case Kind::reduction:
    case Kind::value: break;
  }
  SMD_TRY(const Matrix matrix, read_matrix(*run.trial(), {.reduction = reduction_,
                                                          .tensors = table.tensors,
                                                          .mode = query.mode,
                                                          .worker = query.worker,
                                                          .steps = query.range,
                                                          .incomplete = true}));
  table.append(matrix);
  return {};
}

Status Statistic::read_nonfinite(const ServedRun& run, const Query& query,
                                 NumberTable& table) const {
  const size_t begin = table.numbers.size();
  SMD_TRY(const Matrix matrix, read_matrix(*run.trial(), {.reduction = reduction_,
                                                          .tensors = table.tensors,
                                                          .mode = query.mode,
                                                          .worker = query.worker,
                                                          .steps = query.range,
                                                          .incomplete = true}));
  table.append(matrix);
  for (size_t i = begin; i < table.numbers.size(); ++i) {
    float& number = table.numbers[i];
    if (!is_missing(number)) number = std::isfinite(number) ? 0 : 1;
  }
  return {};
}

Status Statistic::read_elements(const ServedRun& run, const RunFacts& facts, const Query& query,
                                NumberTable& table) const {
  const Snapshot& snapshot = *facts.snapshot;
  const auto wanted = rules::find_statistic(name_);
  SMD_CHECK(wanted.has_value());
  const auto worker =
      query.worker.empty() ? std::nullopt : snapshot.names().workers.find(query.worker);
  for (const Step step : snapshot.steps(query.mode, true)) {
    if (!query.range.contains(step)) continue;
    const StepRow* const row = snapshot.find_row(query.mode, step);
    std::vector<std::pair<size_t, Location>> found;
    for (size_t i = 0; i < table.tensors.size(); ++i) {
      const auto at = snapshot.find(*row, table.tensors[i], Slot::value(), worker);
      if (at) found.emplace_back(i, *at);
    }
    if (found.empty()) continue;
    const auto numbers = table.add_row(step);
    for (const auto& [i, at] : found) {
      SMD_TRY(const TensorValue value, run.trial()->read(snapshot, at));
      if (value.dtype == DType::string) continue;
      rules::Statistics statistics{};
      SMD_RETURN_IF_ERROR(rules::compute(value.view(), {*wanted}, statistics));
      if (statistics.has(*wanted)) numbers[i] = to_float(statistics[*wanted]);
    }
  }
  return {};
}

Status Statistic::read_updates(const ServedRun& run, const RunFacts& facts, const Query& query,
                               NumberTable& table) const {
  const Snapshot& snapshot = *facts.snapshot;
  const auto worker =
      query.worker.empty() ? std::nullopt : snapshot.names().workers.find(query.worker);
  const std::vector<Step> steps = snapshot.steps(query.mode, true);
  // All steps at which one of the tensors was saved, and where.
  std::map<Step, size_t> rows;
  std::vector<std::vector<std::pair<Step, Location>>> places(table.tensors.size());
  for (const Step step : steps) {
    if (query.range.end && step >= *query.range.end) break;
    const StepRow* const row = snapshot.find_row(query.mode, step);
    for (size_t i = 0; i < table.tensors.size(); ++i) {
      const auto at = snapshot.find(*row, table.tensors[i], Slot::value(), worker);
      if (!at) continue;
      places[i].emplace_back(step, *at);
      if (step >= query.range.begin) rows.emplace(step, 0);
    }
  }
  for (auto& [step, place] : rows) {
    place = table.steps.size();
    table.add_row(step);
  }
  for (size_t i = 0; i < places.size(); ++i) {
    std::optional<TensorValue> before;
    // The last one before the range is where the first change begins.
    size_t from = 0;
    while (from + 1 < places[i].size() && places[i][from + 1].first < query.range.begin) ++from;
    for (size_t k = from; k < places[i].size(); ++k) {
      const auto& [step, at] = places[i][k];
      SMD_TRY(TensorValue now, run.trial()->read(snapshot, at));
      if (now.dtype == DType::string) break;
      if (before && step >= query.range.begin && now.view().size() == before->view().size()) {
        double change = 0;
        double size = 0;
        SMD_RETURN_IF_ERROR(rules::for_each_pair(
            now.view(), before->view(),
            [&](int64_t, std::span<const double> a, std::span<const double> b) {
              for (size_t e = 0; e < a.size(); ++e) {
                change += (a[e] - b[e]) * (a[e] - b[e]);
                size += b[e] * b[e];
              }
              return true;
            }));
        const size_t row = rows.at(step);
        const float ratio = to_float(size == 0 && change == 0 ? 0 : std::sqrt(change / size));
        table.numbers[row * table.tensors.size() + i] = ratio;
      }
      before = std::move(now);
    }
  }
  return {};
}

Status Statistic::read_gradient_ratio(const ServedRun& run, const RunFacts& facts,
                                      const Query& query, NumberTable& table) const {
  const auto gradients = gradients_of(facts);
  NumberTable weights{.tensors = table.tensors, .steps = {}, .numbers = {}};
  NumberTable changes{.tensors = {}, .steps = {}, .numbers = {}};
  for (const uint32_t id : table.tensors) changes.tensors.push_back(gradients[id]);
  for (NumberTable* const part : {&weights, &changes}) {
    SMD_TRY(const Matrix matrix, read_matrix(*run.trial(), {.reduction = reduction_,
                                                            .tensors = part->tensors,
                                                            .mode = query.mode,
                                                            .worker = query.worker,
                                                            .steps = query.range,
                                                            .incomplete = true}));
    part->append(matrix);
  }
  size_t other = 0;
  for (size_t i = 0; i < weights.steps.size(); ++i) {
    while (other < changes.steps.size() && changes.steps[other] < weights.steps[i]) ++other;
    if (other == changes.steps.size()) break;
    if (changes.steps[other] != weights.steps[i]) continue;
    const auto numbers = table.add_row(weights.steps[i]);
    const auto weight = weights.row(i);
    const auto change = changes.row(other);
    for (size_t k = 0; k < numbers.size(); ++k) {
      if (is_missing(weight[k]) || is_missing(change[k])) continue;
      const bool is_nothing = weight[k] == 0 && change[k] == 0;
      numbers[k] = is_nothing ? 0 : to_float(double{change[k]} / double{weight[k]});
    }
  }
  return {};
}

}  // namespace smd::server
