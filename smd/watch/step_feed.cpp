#include "smd/watch/step_feed.h"

#include <algorithm>
#include <cstring>

#include "smd/rules/elements.h"

namespace smd::watch {
namespace {

using rules::Statistic;
using rules::StatisticSet;

constexpr uint32_t kNoRow = UINT32_MAX;
constexpr size_t kMostIds = 256;

StatisticSet all_of(const rules::Runner::Wanted& wanted) {
  StatisticSet out = wanted.statistics;
  out.merge(wanted.context);
  return out;
}

// The number of a tensor that is one, as readers of a run find it.
std::optional<double> single_number(const TensorView& view) {
  if (view.size() != 1 || view.dtype == DType::complex64 || view.dtype == DType::complex128) {
    return std::nullopt;
  }
  const auto numbers = rules::to_doubles(view);
  return numbers.ok() && numbers->size() == 1 ? std::optional(numbers->front()) : std::nullopt;
}

}  // namespace

StepFeed::StepFeed(rules::Runner& runner, StepFeedOptions options)
    : runner_(runner), options_(std::move(options)) {
  names_.workers.add(options_.worker);
}

rules::RunView StepFeed::run_view() const {
  return {.name = options_.run,
          .names = &names_,
          .collections = &collections_,
          .collections_revision = collections_revision_};
}

void StepFeed::membership(const SavedMembership& saved) {
  const bool is_known = names_.tensors.find(saved.tensor).has_value();
  bool changed = false;
  for (const auto& collection : collections_.collections()) {
    const bool held =
        std::ranges::find(saved.collections, collection->name()) != saved.collections.end();
    if (!held && collection->remove_tensor_name(saved.tensor)) changed = true;
  }
  for (std::string_view name : saved.collections) {
    const auto collection = collections_.create(name);
    if (!collection.ok() || (*collection)->has_tensor_name(saved.tensor)) continue;
    (*collection)->add_tensor_name(saved.tensor);
    changed = true;
  }
  // Rules have not asked about a new name yet.
  if (changed && is_known) ++collections_revision_;
}

const rules::Runner::Wanted& StepFeed::wanted(uint32_t tensor) {
  if (wanted_revision_ != runner_.revision() || wanted_collections_ != collections_revision_) {
    wanted_.clear();
    wanted_revision_ = runner_.revision();
    wanted_collections_ = collections_revision_;
  }
  if (tensor >= wanted_.size()) wanted_.resize(tensor + 1);
  if (!wanted_[tensor]) wanted_[tensor] = runner_.wanted(run_view(), tensor);
  return *wanted_[tensor];
}

bool StepFeed::wants(std::string_view tensor) {
  return runner_.is_active() && wanted(names_.tensors.add(tensor)).any;
}

StepFeed::Row* StepFeed::row_of(const StepInfo& step, std::string_view name, double wall_secs) {
  if (step.step != step_.step) {
    step_ = step;
    wall_secs_ = 0;
    kept_bytes_ = 0;
    rows_.clear();
    row_of_tensor_.clear();
  }
  if (!runner_.is_active()) return nullptr;
  wall_secs_ = std::max(wall_secs_, wall_secs);
  const uint32_t tensor = names_.tensors.add(name);
  if (!wanted(tensor).any) return nullptr;
  if (tensor >= row_of_tensor_.size()) row_of_tensor_.resize(tensor + 1, kNoRow);
  uint32_t& at = row_of_tensor_[tensor];
  if (at == kNoRow) {
    at = static_cast<uint32_t>(rows_.size());
    rows_.push_back({.tensor = tensor,
                     .order = at,
                     .known = {},
                     .saved_shape = {},
                     .has_value = false,
                     .value = {}});
  }
  return &rows_[at];
}

void StepFeed::reductions(const StepInfo& step, const SavedReductions& saved) {
  Row* row = row_of(step, saved.tensor, saved.wall_secs);
  if (row == nullptr) return;
  const StatisticSet sources = rules::sources_of(all_of(wanted(row->tensor)));
  for (const StoredReduction& one : saved.values) {
    const auto statistic = rules::find_statistic(one.name);
    if (!statistic || !sources.contains(*statistic)) continue;
    row->known.set(*statistic, Number{.dtype = one.dtype, .bits = one.bits}.to_double());
  }
}

void StepFeed::shape(const StepInfo& step, const SavedShape& saved) {
  Row* row = row_of(step, saved.tensor, 0);
  if (row != nullptr) row->saved_shape.emplace(saved.shape.begin(), saved.shape.end());
}

void StepFeed::strings(const StepInfo& step, const SavedStrings& saved) {
  Row* row = row_of(step, saved.name, saved.wall_secs);
  if (row == nullptr) return;
  row->has_value = true;
  TensorValue value{.dtype = DType::string,
                    .shape = Shape(saved.shape.begin(), saved.shape.end()),
                    .elements = {},
                    .strings = {},
                    .wall_secs = saved.wall_secs,
                    .memory = nullptr};
  for (std::string_view text : saved.strings) value.strings.emplace_back(text);
  row->value = std::move(value);
}

Status StepFeed::tensor(const StepInfo& step, const SavedTensor& saved) {
  Row* row = row_of(step, saved.name, saved.wall_secs);
  if (row == nullptr) return {};
  const TensorView view{.data = saved.elements.data(), .dtype = saved.dtype, .shape = saved.shape};
  const rules::Runner::Wanted& wishes = wanted(row->tensor);
  const StatisticSet derived = all_of(wishes);
  row->has_value = true;
  if (!derived.empty()) {
    if (const auto number = single_number(view)) row->known.set(Statistic::value, *number);
  }
  rules::derive(derived, row->saved_shape ? &*row->saved_shape : nullptr, row->known);
  if (!row->known.present.contains_all(wishes.statistics)) {
    SMD_RETURN_IF_ERROR(compute(view, derived.without(row->known.present), row->known));
    const Shape own(saved.shape.begin(), saved.shape.end());
    rules::derive(derived, &own, row->known);
  }
  // The elements are gone when the rules judge the step.
  const size_t bytes = saved.elements.size();
  if (!wishes.values && kept_bytes_ + bytes > options_.max_kept_bytes) return {};
  kept_bytes_ += bytes;
  auto memory = allocate_aligned(bytes, 0, 0);
  if (!memory) return Error{ErrorCode::internal, "There is no memory for the values of a tensor."};
  if (bytes > 0) std::memcpy(memory.get(), saved.elements.data(), bytes);
  row->value = TensorValue{.dtype = saved.dtype,
                           .shape = Shape(saved.shape.begin(), saved.shape.end()),
                           .elements = ByteSpan(memory.get(), bytes),
                           .strings = {},
                           .wall_secs = saved.wall_secs,
                           .memory = memory};
  return {};
}

uint64_t StepFeed::rows_id() {
  std::vector<uint32_t> key;
  key.reserve(rows_.size());
  for (const Row& row : rows_) key.push_back(2 * row.tensor + (row.has_value ? 1 : 0));
  if (ids_.size() >= kMostIds) ids_.clear();
  const auto [it, added] = ids_.try_emplace(std::move(key), last_id_ + 1);
  if (added) ++last_id_;
  return it->second;
}

void StepFeed::end_step() {
  if (rows_.empty() || !runner_.is_active()) return;
  std::ranges::sort(rows_, [&](const Row& a, const Row& b) {
    return names_.tensors[a.tensor] < names_.tensors[b.tensor];
  });
  view_.set_columns(runner_.columns());
  view_.begin(run_view(), step_, wall_secs_, rows_id(), nullptr);
  for (Row& row : rows_) {
    const Shape* shape = row.saved_shape ? &*row.saved_shape : nullptr;
    rules::TensorRow& shown = view_.add({.tensor = row.tensor,
                                         .worker = 0,
                                         .order = row.order,
                                         .has_value = row.has_value,
                                         .shape = shape});
    rules::derive(all_of(wanted(row.tensor)), shape, row.known);
    view_.set(shown, row.known);
    if (row.value) view_.set_value(shown, std::move(*row.value));
  }
  runner_.observe(view_);
  step_ = {.step = -1};
  rows_.clear();
  row_of_tensor_.clear();
}

}  // namespace smd::watch
