#include "smd/trial/staging.h"

#include <algorithm>

#include "smd/format/file_name.h"
#include "smd/reduce/reduction.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  hash = (hash ^ value) * kFactor;
  return hash ^ (hash >> 29);
}

uint64_t hash_of(const Layout& layout) {
  uint64_t hash = layout.entries().size();
  for (const Layout::Entry& entry : layout.entries()) {
    hash = mix(hash, uint64_t{entry.tensor} << 32 | entry.slot);
    hash = mix(hash, entry.offset);
    hash = mix(hash, entry.length);
    hash = mix(hash,
               uint64_t{static_cast<uint8_t>(entry.form)} << 8 | static_cast<uint8_t>(entry.dtype));
  }
  for (const Layout::ShapeOf& shape : layout.shapes()) {
    hash = mix(hash, shape.tensor);
    for (int64_t extent : shape.shape) hash = mix(hash, static_cast<uint64_t>(extent));
  }
  return hash;
}

}  // namespace

Staging::Staging(const StagingOptions& options)
    : options_(options), names_(std::make_shared<Names>()) {
  // The reductions we know have the same numbers in every run.
  for (const ReductionKind* kind : reduction_kinds()) names_->ops.add(kind->name);
  data_.names = names_;
  data_.collections = std::make_shared<const CollectionSet>();
  data_.range = options_.range;
}

uint32_t Staging::number_of(NameList Names::*list, std::string_view name) {
  if (const auto known = ((*names_).*list).find(name)) return *known;
  if (names_shared_) {
    names_ = std::make_shared<Names>(*names_);
    data_.names = names_;
    names_shared_ = false;
  }
  published_ = nullptr;
  return ((*names_).*list).add(name);
}

uint32_t Staging::add_layout(std::vector<Layout::Entry> entries,
                             std::vector<Layout::ShapeOf> shapes, Layout::Block block,
                             std::vector<Layout::Split> splits) {
  auto layout = std::make_shared<const Layout>(std::move(entries), std::move(shapes), block,
                                               std::move(splits));
  const uint64_t hash = hash_of(*layout);
  const auto [first, last] = layouts_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (*data_.layouts[it->second] == *layout) return it->second;
  }
  const auto id = static_cast<uint32_t>(data_.layouts.size());
  data_.layouts.push_back(std::move(layout));
  layouts_by_hash_.emplace(hash, id);
  return id;
}

uint32_t Staging::file_id(std::string_view path) {
  const auto [it, is_new] =
      file_ids_.try_emplace(std::string(path), static_cast<uint32_t>(data_.files.size()));
  if (is_new) data_.files.push_back(it->first);
  return it->second;
}

size_t Staging::row_at(Step step) const {
  size_t first = 0;
  for (size_t count = data_.rows.size(); count > 0;) {
    const size_t half = count / 2;
    const bool before = data_.rows[first + half].info.step < step;
    if (before) first += half + 1;
    count = before ? count - half - 1 : half;
  }
  return first;
}

void Staging::add(const NewPart& part) {
  if (!options_.range.contains(part.step.step)) return;
  published_ = nullptr;
  Part stored{.step = part.step.step,
              .wall_secs = part.wall_secs,
              .base = part.base,
              .precedence = part.precedence,
              .worker = number_of(&Names::workers, part.worker),
              .layout = part.layout,
              .append_only = part.append_only,
              .checksums = part.checksums};
  if (part.append_only) {
    stored.file = file_id(part.file);
  } else if (part.file == format::event_file_name(stored.step, worker_to_file_name(part.worker))) {
    stored.file = kOwnFile;
  } else if (!part.file.empty()) {
    stored.file = file_id(part.file);
  }

  // Mostly the newest step, or one after it.
  size_t at = data_.rows.size();
  if (at > 0 && data_.rows.back().info.step >= part.step.step) at = row_at(part.step.step);
  if (at == data_.rows.size() || data_.rows[at].info.step != part.step.step) {
    data_.rows.insert(at, {.info = part.step});
  }

  uint32_t previous = kNone;
  uint32_t next = data_.rows[at].first_part;
  const auto& workers = names_->workers;
  while (next != kNone && workers[data_.parts[next].worker] < workers[stored.worker]) {
    previous = next;
    next = data_.parts[next].next;
  }
  // A step that was written again is another part, so that nobody mistakes the one for the other.
  const bool again = next != kNone && data_.parts[next].worker == stored.worker;
  if (again && data_.parts[next].precedence > stored.precedence) return;
  stored.next = again ? data_.parts[next].next : next;
  const auto id = static_cast<uint32_t>(data_.parts.size());
  data_.parts.push_back(std::move(stored));
  if (previous == kNone) {
    data_.rows.edit(at).first_part = id;
  } else {
    data_.parts.edit(previous).next = id;
  }
  StepRow& row = data_.rows.edit(at);
  if (!again) ++row.part_count;
  if (row.part_count == 1) row.info = part.step;
  if (row.part_count >= data_.num_workers) {
    data_.last_complete_step = std::max(data_.last_complete_step, part.step.step);
  }
}

void Staging::limit_waiting() {
  size_t first = data_.rows.size();
  while (first > 0 && data_.rows[first - 1].info.step > data_.last_complete_step) --first;
  const auto pending = static_cast<int64_t>(data_.rows.size() - first);
  if (pending <= options_.wait_window || options_.wait_window < 2) return;
  published_ = nullptr;
  data_.last_complete_step =
      data_.rows[first + static_cast<size_t>(options_.wait_window / 2) - 1].info.step;
}

void Staging::finish() {
  published_ = nullptr;
  data_.loaded_all = true;
  if (!data_.rows.empty()) {
    data_.last_complete_step = std::max(data_.last_complete_step, data_.rows.back().info.step);
  }
}

void Staging::set_collections(std::shared_ptr<const CollectionSet> collections,
                              std::vector<std::string> workers) {
  published_ = nullptr;
  data_.num_workers = collections->num_workers();
  data_.collections = std::move(collections);
  data_.workers = std::move(workers);
  ++data_.collections_revision;
}

std::shared_ptr<const Snapshot> Staging::publish() {
  if (!published_) {
    published_ = std::shared_ptr<const Snapshot>(new Snapshot(data_));
    names_shared_ = true;
  }
  return published_;
}

}  // namespace smd
