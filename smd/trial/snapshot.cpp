#include "smd/trial/snapshot.h"

#include <algorithm>

#include "smd/format/file_name.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

constexpr std::string_view kAbs = "abs_";
constexpr std::string_view kNorm = "_norm";

// First position at or after `step`.
size_t lower_bound(const PagedVector<StepRow>& rows, Step step) {
  size_t first = 0;
  for (size_t count = rows.size(); count > 0;) {
    const size_t half = count / 2;
    if (rows[first + half].info.step < step) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

bool in_mode(const StepRow& row, Mode mode) {
  return mode == Mode::global || row.info.mode == mode;
}

Step step_in(const StepRow& row, Mode mode) {
  return mode == Mode::global ? row.info.step : row.info.mode_step;
}

// Of the steps in the order of global numbers: mode steps may go back after a resumed job.
void sort_steps(std::vector<Step>& steps) {
  if (std::is_sorted(steps.begin(), steps.end(), std::less_equal<>())) return;
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
}

}  // namespace

const StepRow* Snapshot::find_row(Step global) const {
  const size_t at = lower_bound(data_.rows, global);
  return at < data_.rows.size() && data_.rows[at].info.step == global ? &data_.rows[at] : nullptr;
}

bool Snapshot::is_complete(const StepRow& row) const {
  return row.part_count >= data_.num_workers || row.info.step <= data_.last_complete_step ||
         data_.loaded_all;
}

std::vector<Step> Snapshot::steps(Mode mode, bool incomplete) const {
  std::vector<Step> out;
  for (size_t i = 0; i < row_count(); ++i) {
    if (in_mode(row(i), mode) && (incomplete || is_complete(row(i)))) {
      out.push_back(step_in(row(i), mode));
    }
  }
  sort_steps(out);
  return out;
}

std::vector<Mode> Snapshot::modes() const {
  std::vector<Mode> out;
  for (Mode mode : kModes) {
    if (mode != Mode::global && !mode_steps(mode).empty()) out.push_back(mode);
  }
  return out;
}

const std::vector<Snapshot::ModeStep>& Snapshot::mode_steps(Mode mode) const {
  std::call_once(modes_made_, [this] {
    for (uint32_t i = 0; i < row_count(); ++i) {
      modes_[index_of(row(i).info.mode)].push_back({row(i).info.mode_step, i});
    }
    for (auto& steps : modes_) {
      std::ranges::stable_sort(steps, {}, &ModeStep::mode_step);
      const auto rest = std::ranges::unique(steps, {}, &ModeStep::mode_step);
      steps.erase(rest.begin(), rest.end());
    }
  });
  return modes_[index_of(mode)];
}

std::optional<Step> Snapshot::global_step(Mode mode, Step mode_step) const {
  if (mode == Mode::global) return mode_step;
  const auto& steps = mode_steps(mode);
  const auto it = std::ranges::lower_bound(steps, mode_step, {}, &ModeStep::mode_step);
  if (it == steps.end() || it->mode_step != mode_step) return std::nullopt;
  return row(it->row).info.step;
}

const StepRow* Snapshot::find_row(Mode mode, Step step) const {
  const auto global = global_step(mode, step);
  return global ? find_row(*global) : nullptr;
}

StepState Snapshot::state(Mode mode, Step step) const {
  const StepRow* next = nullptr;  // the first known step that is not before the one asked for
  if (mode == Mode::global) {
    if (!data_.range.contains(step)) return StepState::unavailable;
    const size_t at = lower_bound(data_.rows, step);
    if (at < row_count()) next = &row(at);
  } else {
    const auto& steps = mode_steps(mode);
    const auto it = std::ranges::lower_bound(steps, step, {}, &ModeStep::mode_step);
    if (it != steps.end()) next = &row(it->row);
  }
  if (next == nullptr) {
    return data_.loaded_all ? StepState::unavailable : StepState::not_yet_available;
  }
  if (step_in(*next, mode) > step) {
    return data_.last_complete_step >= next->info.step ? StepState::unavailable
                                                       : StepState::not_yet_available;
  }
  return is_complete(*next) ? StepState::available : StepState::not_yet_available;
}

std::optional<Step> Snapshot::last_step(Mode mode) const {
  if (mode != Mode::global) {
    const auto& steps = mode_steps(mode);
    return steps.empty() ? std::nullopt : std::optional(steps.back().mode_step);
  }
  return data_.rows.empty() ? std::nullopt : std::optional(data_.rows.back().info.step);
}

std::string Snapshot::file_of(const Part& part) const {
  if (part.file == kNone) return {};
  if (part.file != kOwnFile) return data_.files[part.file];
  return format::event_file_name(part.step, worker_to_file_name(names().workers[part.worker]));
}

bool Snapshot::holds(const StepRow& row, uint32_t tensor) const {
  for (uint32_t i = row.first_part; i != kNone; i = part(i).next) {
    if (layout_of(part(i)).holds(tensor)) return true;
  }
  return false;
}

std::vector<Step> Snapshot::steps_of(uint32_t tensor, Mode mode, bool incomplete) const {
  // Few layouts serve many steps: each is asked once.
  enum class Known : uint8_t { no, unknown, yes };
  std::vector<Known> holds(data_.layouts.size(), Known::unknown);
  const auto in_layout = [&](uint32_t layout) {
    if (holds[layout] == Known::unknown) {
      holds[layout] = data_.layouts[layout]->holds(tensor) ? Known::yes : Known::no;
    }
    return holds[layout] == Known::yes;
  };
  std::vector<Step> out;
  for (size_t i = 0; i < row_count(); ++i) {
    if (!in_mode(row(i), mode) || !(incomplete || is_complete(row(i)))) continue;
    for (uint32_t p = row(i).first_part; p != kNone; p = part(p).next) {
      if (!in_layout(part(p).layout)) continue;
      out.push_back(step_in(row(i), mode));
      break;
    }
  }
  sort_steps(out);
  return out;
}

std::vector<uint32_t> Snapshot::tensors(Mode mode) const {
  std::vector<bool> used(data_.layouts.size());
  for (size_t i = 0; i < row_count(); ++i) {
    if (!in_mode(row(i), mode)) continue;
    for_each_part(row(i), [&](uint32_t, const Part& part) { used[part.layout] = true; });
  }
  std::vector<bool> found(names().tensors.size());
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    for (uint32_t tensor : data_.layouts[i]->tensors()) found[tensor] = true;
  }
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < found.size(); ++i) {
    if (found[i]) out.push_back(i);
  }
  std::ranges::sort(out, {},
                    [&](uint32_t id) -> const std::string& { return names().tensors[id]; });
  return out;
}

std::vector<uint32_t> Snapshot::tensors(const StepRow& row) const {
  std::vector<uint32_t> out;
  for_each_part(row, [&](uint32_t, const Part& part) {
    const auto more = layout_of(part).tensors();
    out.insert(out.end(), more.begin(), more.end());
  });
  std::ranges::sort(out, {},
                    [&](uint32_t id) -> const std::string& { return names().tensors[id]; });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::vector<std::string> Snapshot::workers_of(const StepRow& row, uint32_t tensor) const {
  std::vector<std::string> out;
  for_each_part(row, [&](uint32_t, const Part& part) {
    if (layout_of(part).holds(tensor)) out.push_back(names().workers[part.worker]);
  });
  return out;
}

std::optional<Location> Snapshot::find(const StepRow& row, uint32_t tensor, Slot slot,
                                       std::optional<uint32_t> worker) const {
  for (uint32_t i = row.first_part; i != kNone; i = part(i).next) {
    if (worker && part(i).worker != *worker) continue;
    if (const auto entry = layout_of(part(i)).find(tensor, slot)) return Location{i, *entry};
  }
  return std::nullopt;
}

const Layout::ShapeOf* Snapshot::find_shape(const StepRow& row, uint32_t tensor,
                                            std::optional<uint32_t> worker) const {
  for (uint32_t i = row.first_part; i != kNone; i = part(i).next) {
    if (worker && part(i).worker != *worker) continue;
    if (const auto* shape = layout_of(part(i)).shape_of(tensor)) return shape;
  }
  return nullptr;
}

std::optional<Slot> Snapshot::find_slot(std::string_view reduction, bool abs) const {
  if (reduction.starts_with(kAbs)) {
    reduction.remove_prefix(kAbs.size());
    abs = true;
  }
  auto op = names().ops.find(reduction);
  if (!op && reduction.ends_with(kNorm)) {
    reduction.remove_suffix(kNorm.size());
    op = names().ops.find(reduction);
  }
  if (!op) return std::nullopt;
  return Slot::reduction(*op, abs);
}

std::string Snapshot::slot_name(Slot slot) const {
  return (slot.abs() ? std::string(kAbs) : std::string()) + names().ops[slot.op()];
}

}  // namespace smd
