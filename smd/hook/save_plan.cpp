#include "smd/hook/save_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "smd/base/nearest.h"
#include "smd/collection/builtin.h"
#include "smd/hook/budget.h"

namespace smd {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Completes the collection's own configs; what it then has is exported with it.
void resolve_configs(Collection& collection, const SavePlanOptions& options,
                     std::vector<std::string>& warnings) {
  SaveConfig save = collection.save_config() ? *collection.save_config() : options.save_config;
  save.merge_defaults(options.save_config);
  if (!collection.save_config() || *collection.save_config() != save) {
    collection.set_save_config(std::make_shared<SaveConfig>(save));
  }
  const bool raw_only = is_scalar_collection(collection.name()) ||
                        contains(options.raw_only_collections, collection.name());
  if (raw_only) {
    const auto own = collection.reduction_config();
    if (own && !own->set().empty()) {
      warnings.push_back(
          fmt::format("The collection '{}' holds single numbers: they are saved as they are, its "
                      "reductions are "
                      "ignored.",
                      collection.name()));
    }
    if (!own || *own != ReductionConfig::raw_only()) {
      collection.set_reduction_config(
          std::make_shared<ReductionConfig>(ReductionConfig::raw_only()));
    }
    if (collection.save_histogram()) collection.set_save_histogram(false);
  } else if (!collection.reduction_config()) {
    collection.set_reduction_config(std::make_shared<ReductionConfig>(options.reduction_config));
  }
}

void warn_of_unknown(const CollectionSet& collections, const SavePlanOptions& options,
                     std::vector<std::string>& warnings) {
  for (const std::string& name : options.include_collections) {
    if (collections.find(name) || name == collection_keys::kScalars) continue;
    warnings.push_back(fmt::format("There is no collection '{}' to save.{}", name,
                                   did_you_mean(name, collections.names())));
  }
}

}  // namespace

Result<SavePlan> SavePlan::build(const CollectionSet& collections, const SavePlanOptions& options,
                                 std::vector<std::string>& warnings) {
  SavePlan plan;
  const bool all = contains(options.include_collections, collection_keys::kAll);
  std::vector<std::shared_ptr<Collection>> taking_part;
  warn_of_unknown(collections, options, warnings);
  for (const auto& collection : collections.collections()) {
    const std::string& name = collection->name();
    const bool named = contains(options.include_collections, name);
    const bool custom = contains(options.custom_collections, name) && !named && !all;
    if (name == collection_keys::kScalars) continue;  // a list of names; scalars are always saved
    const bool known = is_known_collection(name) || contains(options.builtin_collections, name);
    if (collection->empty() && !known && !named) {
      warnings.push_back(fmt::format(
          "The collection '{}' has neither patterns nor tensor names: nothing is saved for it.",
          name));
    }
    if (!all && !named && !custom) continue;
    if (collection->empty() && !known && named) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("The collection '{}' is to be saved but has neither patterns nor tensor "
                      "names; add some with include() or add_tensor_name().",
                      name)};
    }
    resolve_configs(*collection, options, warnings);
    const ReductionConfig& wanted = *collection->reduction_config();
    const bool histogram = options.shows_histograms && collection->save_histogram();
    if (wanted.saves_nothing() && !histogram) {
      warnings.push_back(fmt::format(
          "The reduction config of the collection '{}' saves nothing: no raw tensors, shapes or "
          "reductions.",
          name));
    }
    const bool stretches = contains(options.stretched_collections, name);
    const SaveConfig& save = stretches && options.stretched_save_config
                                 ? *options.stretched_save_config
                                 : *collection->save_config();
    plan.entries_.push_back({.collection = collection,
                             .save = save,
                             .unstretched = save,
                             .action = {.raw = wanted.save_raw_tensor(),
                                        .shape = wanted.save_shape(),
                                        .metric = is_metric_collection(name),
                                        .scalar = is_scalar_collection(name),
                                        .histogram_of = histogram ? std::string_view(name) : "",
                                        .reductions = wanted.set()},
                             .custom = custom,
                             .training_only = is_training_collection(name),
                             .stretches = stretches});
    taking_part.push_back(collection);
  }
  plan.add_wishes(collections, options, taking_part);
  plan.matcher_ = std::make_unique<Matcher>(std::move(taking_part));
  plan.generation_ = plan.matcher_->generation();
  for (uint32_t i = 0; i < plan.entries_.size(); ++i) {
    if (plan.entries_[i].wish) continue;
    for (Mode mode : kModes) {
      const SaveConfigMode* config = plan.entries_[i].save.mode(mode);
      for (const std::string& name : config->when_nan) {
        plan.watches_[index_of(mode)][name].push_back(i);
      }
    }
  }
  plan.deactivate();
  plan.observe(Mode::global);
  return plan;
}

void SavePlan::add_wishes(const CollectionSet& collections, const SavePlanOptions& options,
                          std::vector<std::shared_ptr<Collection>>& taking_part) {
  for (const SaveWish& wish : options.wishes) {
    auto collection = collections.find(wish.collection);
    if (!collection || !wish.save_config) continue;
    const std::string& name = collection->name();
    // Reductions of single numbers would be larger than these.
    const bool raw =
        wish.raw || is_scalar_collection(name) || contains(options.raw_only_collections, name);
    entries_.push_back({.collection = collection,
                        .save = *wish.save_config,
                        .action = {.raw = raw,
                                   .histogram_of = {},
                                   .reductions = raw ? ReductionSet{} : wish.reductions},
                        .training_only = is_training_collection(name),
                        .wish = true});
    taking_part.push_back(std::move(collection));
  }
}

void SavePlan::set_stride(int64_t stride, int64_t max_interval) {
  for (Entry& entry : entries_) {
    if (!entry.stretches) continue;
    for (Mode mode : kModes) {
      const SaveConfigMode* own = entry.unstretched.mode(mode);
      SaveConfigMode* used = entry.save.mutable_mode(mode);
      if (own == nullptr || used == nullptr) continue;
      used->save_interval = stretched_interval(own->save_interval, stride, max_interval);
    }
  }
}

bool SavePlan::any_stretched_active() const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (active_[i] != 0 && entries_[i].stretches) return true;
  }
  return false;
}

void SavePlan::observe(Mode mode) {
  Active observed(entries_.size(), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    observed[i] = !entries_[i].custom && applies(entries_[i], mode) ? 1 : 0;
  }
  if (observed == observed_ && !answers_.empty()) return;
  observed_ = std::move(observed);
  observed_row_ = row_of(observed_);
  find_key();
}

bool SavePlan::is_observed(std::string_view collection) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (observed_[i] != 0 && entries_[i].collection->name() == collection) return true;
  }
  return false;
}

bool SavePlan::applies(const Entry& entry, Mode mode) const {
  return !entry.training_only || (mode != Mode::eval && mode != Mode::predict);
}

std::optional<Step> SavePlan::next_active(Mode mode, Step from) const {
  std::optional<Step> next;
  for (const Entry& entry : entries_) {
    if (entry.custom || !applies(entry, mode)) continue;
    const auto step = entry.save.next_save(mode, from);
    if (step && (!next || *step < *next)) next = step;
  }
  return next;
}

void SavePlan::activate(Mode mode, Step first, Step last) {
  Active active(entries_.size(), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    const auto next =
        !entry.custom && applies(entry, mode) ? entry.save.next_save(mode, first) : std::nullopt;
    active[i] = next && *next <= last ? 1 : 0;
  }
  select(std::move(active));
}

void SavePlan::deactivate() { select(Active(entries_.size(), 0)); }

void SavePlan::select(Active active) {
  active_ = std::move(active);
  active_count_ = due_count_ = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    active_count_ += active_[i];
    due_count_ += entries_[i].wish ? 0 : active_[i];
  }
  row_ = row_of(active_);
  find_key();
}

void SavePlan::find_key() {
  static std::atomic<uint64_t> last{0};
  const auto [it, added] = keys_.try_emplace({row_, observed_row_}, 0);
  if (added) it->second = last.fetch_add(1, std::memory_order_relaxed) + 1;
  key_ = it->second;
}

void SavePlan::renew_keys() {
  keys_.clear();
  find_key();
}

size_t SavePlan::row_of(const Active& active) {
  const auto [it, added] = rows_.try_emplace(active, answers_.size());
  if (added) answers_.emplace_back();
  return it->second;
}

bool SavePlan::is_active(std::string_view collection) const {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (active_[i] != 0 && entries_[i].collection->name() == collection) return true;
  }
  return false;
}

void Action::merge(const Action& other) {
  raw = raw || other.raw;
  shape = shape || other.shape;
  metric = metric || other.metric;
  scalar = scalar || other.scalar;
  // The first one, but a collection of everything only if there is no other.
  const auto is_catch_all = [](std::string_view name) {
    return name == collection_keys::kAll || name == collection_keys::kDefault;
  };
  if (histogram_of.empty() || (is_catch_all(histogram_of) && !other.histogram_of.empty() &&
                               !is_catch_all(other.histogram_of))) {
    histogram_of = other.histogram_of;
  }
  reductions.merge(other.reductions);
}

const Action& SavePlan::wanted(std::string_view name) { return answer(row_, active_, name).wanted; }
const Action& SavePlan::due(std::string_view name) { return answer(row_, active_, name).due; }
const Action& SavePlan::wished(std::string_view name) { return answer(row_, active_, name).wished; }

const Action& SavePlan::observed(std::string_view name) {
  return answer(observed_row_, observed_, name).wanted;
}

const SavePlan::Answer& SavePlan::answer(size_t row_index, const Active& active,
                                         std::string_view name) {
  const NameMatch& match = matcher_->match(name);
  if (matcher_->generation() != generation_) {
    for (auto& row : answers_) row.clear();
    generation_ = matcher_->generation();
  }
  auto& row = answers_[row_index];
  if (match.id >= row.size()) row.resize(matcher_->distinct_matches());
  auto& answer = row[match.id];
  if (!answer) {
    answer.emplace();
    for (uint32_t index : match.collections) {
      if (active[index] == 0) continue;
      const Entry& entry = entries_[index];
      (entry.wish ? answer->wished : answer->due).merge(entry.action);
    }
    answer->wanted = answer->due;
    if (!answer->due.raw) answer->wanted.merge(answer->wished);
  }
  return *answer;
}

const Action* SavePlan::wanted_by(std::string_view collection) const {
  for (const Entry& entry : entries_) {
    if (!entry.wish && entry.collection->name() == collection) return &entry.action;
  }
  return nullptr;
}

bool SavePlan::is_watched(Mode mode, std::string_view name) const {
  const auto& watches = watches_[index_of(mode)];
  return watches.find(name) != watches.end();
}

std::vector<std::string> SavePlan::watched_names() const {
  std::vector<std::string> names;
  for (const auto& watches : watches_) {
    for (const auto& [name, entries] : watches) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

void SavePlan::trigger(Mode mode, std::string_view watched) {
  Active active = active_;
  const auto& watches = watches_[index_of(mode)];
  for (uint32_t index : watches.find(watched)->second) {
    if (applies(entries_[index], mode)) active[index] = 1;
  }
  select(std::move(active));
}

}  // namespace smd
