#include "smd/server/statistic_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace smd::server {
namespace {

// The first step of the mode that may still get numbers from another worker.
Step stable_end(const Snapshot& snapshot, Mode mode) {
  for (size_t i = 0; i < snapshot.row_count(); ++i) {
    const StepRow& row = snapshot.row(i);
    if (mode != Mode::global && row.info.mode != mode) continue;
    if (!snapshot.is_complete(row))
      return mode == Mode::global ? row.info.step : row.info.mode_step;
  }
  return INT64_MAX;
}

}  // namespace

std::shared_ptr<StatisticCache::Entry> StatisticCache::entry(const std::string& key) {
  const std::lock_guard lock(mutex_);
  auto& found = entries_[key];
  if (!found) found = std::make_shared<Entry>();
  found->used = ++clock_;
  return found;
}

void StatisticCache::account(const std::string& key, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) found->second->bytes = bytes;
  const auto total = [&] {
    uint64_t sum = 0;
    for (const auto& [name, one] : entries_) sum += one->bytes;
    return sum;
  };
  while (entries_.size() > 1 && total() > most_bytes_) {
    const auto oldest = std::min_element(entries_.begin(), entries_.end(), [](auto& a, auto& b) {
      return a.second->used < b.second->used;
    });
    entries_.erase(oldest);
  }
}

void StatisticCache::keep(const std::set<std::string>& ids) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const auto& one) {
    return !ids.contains(one.first.substr(0, one.first.find('\n')));
  });
}

Result<std::shared_ptr<const NumberTable>> StatisticCache::table(
    const ServedRun& run, const RunFacts& facts, const Statistic& statistic,
    const Statistic::Query& query, const std::vector<uint32_t>& tensors) {
  std::vector<uint32_t> all;
  bool is_computed = false;
  for (const Model::Tensor& tensor : facts.model->tensors) {
    if (!statistic.is_of(tensor)) continue;
    all.push_back(tensor.id);
  }
  for (const uint32_t id : tensors) {
    const Model::Tensor* const tensor = facts.model->find(id);
    is_computed = is_computed || (tensor != nullptr && statistic.is_computed(*tensor));
  }
  // Tensors whose numbers would have to be computed are read only if somebody asked for them.
  if (is_computed) {
    all = tensors;
  } else {
    std::erase_if(all, [&](uint32_t id) { return statistic.is_computed(*facts.model->find(id)); });
  }
  Statistic::Query whole = query;
  if (!is_computed) whole.range = {};
  // A text of its own for each choice: what is not part of it is the same for all.
  const std::string key = fmt::format(
      "{}\n{}\n{}\n{}\n{}", run.id(), statistic.name(), index_of(query.mode), query.worker,
      is_computed ? fmt::format("{} {} {}", query.range.begin, query.range.end.value_or(-1),
                                fmt::join(tensors, " "))
                  : std::string());
  const auto held = entry(key);
  const std::lock_guard reading(held->reading);
  if (held->table && held->revision == facts.revision) return held->table;
  // Another thread may have got a newer one.
  if (held->table && held->revision > facts.revision && held->catalogue == facts.catalogue) {
    return held->table;
  }
  auto next = std::make_shared<NumberTable>();
  if (held->table && held->catalogue == facts.catalogue && held->table->tensors == all) {
    *next = *held->table;
    next->cut(std::max(held->stable_end, whole.range.begin));
    if (!next->steps.empty()) {
      whole.range.begin = std::max(whole.range.begin, next->steps.back() + 1);
    }
  } else {
    next->tensors = std::move(all);
  }
  SMD_RETURN_IF_ERROR(statistic.read(run, facts, whole, *next));
  held->table = next;
  held->revision = facts.revision;
  held->catalogue = facts.catalogue;
  held->stable_end = stable_end(*facts.snapshot, query.mode);
  account(key, next->size_bytes());
  return held->table;
}

}  // namespace smd::server
