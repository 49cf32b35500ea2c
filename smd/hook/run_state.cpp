#include "smd/hook/run_state.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_log.h"
#include "smd/format/tfrecord.h"

namespace smd {
namespace {

// Enough to meet every mode of a usual job, few enough to be read at its start.
constexpr size_t kMostIndexFiles = 2000;

void join(std::optional<ResumeState>& state, const StepInfo& step) {
  if (!state) state.emplace();
  state->latest_step_seen = std::max(state->latest_step_seen, step.step);
  state->latest_step_saved = state->latest_step_seen;
  const auto [known, added] = state->mode_steps.try_emplace(step.mode, step.mode_step);
  if (!added) known->second = std::max(known->second, step.mode_step);
  state->mode_steps[Mode::global] = state->latest_step_seen;
}

Result<std::optional<ResumeState>> state_of_original(storage::Storage& storage) {
  SMD_TRY(auto files, storage.list("index", ""));
  std::optional<ResumeState> state;
  format::IndexParser parser;
  size_t read = 0;
  // Sorted by path, which is sorted by step.
  for (auto file = files.rbegin(); file != files.rend() && read < kMostIndexFiles; ++file) {
    const auto name = format::parse_step_file_name(file->path);
    if (!name) continue;
    // A step counts by its name, even if its index is damaged.
    if (!state || name->step > state->latest_step_seen) {
      join(state, {.step = name->step, .mode = Mode::global, .mode_step = name->step});
    }
    ++read;
    const auto text = storage::read_all(storage, file->path, storage::kMostJsonBytes);
    if (!text.ok()) continue;
    const auto index = parser.parse(as_text(*text), file->path);
    if (!index.ok() || (*index)->mode == Mode::global) continue;
    join(state, {.step = name->step, .mode = (*index)->mode, .mode_step = (*index)->mode_step});
  }
  return state;
}

Result<std::optional<ResumeState>> state_of_packed(storage::Storage& storage) {
  SMD_TRY(const auto files, storage.list(format::kLogFolder, ""));
  std::optional<ResumeState> state;
  for (const auto& file : files) {
    if (!format::parse_packed_file_name(file.path)) continue;
    const auto text = storage::read_all(storage, file.path, storage::kMostJsonBytes);
    if (!text.ok()) continue;
    const ByteSpan bytes(*text);
    for (uint64_t offset = 0; offset < bytes.size();) {
      const auto record = format::parse_record(bytes.subspan(offset), offset);
      if (!record.ok()) break;  // the writer was killed here
      const auto entry = format::parse_log_entry(record->payload);
      if (entry.ok()) {
        if (const auto* step = std::get_if<format::PackedStep>(&*entry)) join(state, step->info);
      }
      offset += record->size_bytes;
    }
  }
  return state;
}

}  // namespace

Result<std::optional<ResumeState>> state_of_run(storage::Storage& storage, RunLayout layout) {
  return layout == RunLayout::packed ? state_of_packed(storage) : state_of_original(storage);
}

}  // namespace smd
