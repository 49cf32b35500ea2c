#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/table.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/trial/run_health.h"

namespace smd::cli::command_list {
namespace {

constexpr double kNanos = 1e9;

struct CollectionRow {
  std::string name;
  uint64_t tensors = 0;
  std::vector<std::string> reductions;
  bool value = true;
  bool shape = false;
};

// Everything that is shown.
struct Info {
  std::string run;
  bool ended = false;
  double silent_secs = 0;  // since the last file was written
  std::shared_ptr<const Snapshot> snapshot;
  RunFiles files;
  RunHealth health;
  uint64_t incomplete = 0;
  std::vector<CollectionRow> collections;
  std::optional<double> first_secs;
  std::optional<double> last_secs;
  std::vector<std::string> findings;  // files with what the hook found out about the training

  std::string_view state() const {
    return ended ? "ended" : silent_secs > kSilenceSecs ? "silent" : "running";
  }
};

std::vector<CollectionRow> count_collections(const Snapshot& snapshot) {
  std::vector<CollectionRow> out;
  const NameList& names = snapshot.names().tensors;
  for (const auto& collection : snapshot.collections().collections()) {
    CollectionRow row{.name = collection->name()};
    for (uint32_t i = 0; i < names.size(); ++i) row.tensors += collection->holds(names[i]) ? 1 : 0;
    if (const auto& config = collection->reduction_config()) {
      row.value = config->save_raw_tensor();
      row.shape = config->save_shape();
      config->set().for_each([&](Reduction r) { row.reductions.push_back(r.name()); });
    }
    out.push_back(std::move(row));
  }
  return out;
}

Result<Info> look(const std::string& run, const Clock& clock) {
  SMD_TRY(const auto storage, open_run(run, {.everything = true}));
  Info info;
  SMD_RETURN_IF_ERROR(info.files.list_index(*storage));
  SMD_TRY(const auto trial, open_trial(run));
  SMD_RETURN_IF_ERROR(info.files.list_events(*storage));
  SMD_TRY(const auto findings, storage->list("findings", ""));
  for (const auto& file : findings) info.findings.push_back(file.path);
  info.run = trial->name();
  info.ended = trial->has_ended();
  info.silent_secs =
      std::max(0.0, clock.unix_secs() - static_cast<double>(info.files.newest_ns) / kNanos);
  info.snapshot = trial->snapshot();
  const Snapshot& snapshot = *info.snapshot;
  info.health = check_health(snapshot, info.files);
  info.collections = count_collections(snapshot);
  for (size_t i = 0; i < snapshot.row_count(); ++i) {
    if (!snapshot.is_complete(snapshot.row(i))) ++info.incomplete;
  }
  if (snapshot.row_count() > 0) {
    info.first_secs = wall_secs(*trial, snapshot, snapshot.row(0));
    info.last_secs = wall_secs(*trial, snapshot, snapshot.row(snapshot.row_count() - 1));
  }
  return info;
}

Json json_of(const Info& info) {
  const Snapshot& snapshot = *info.snapshot;
  Json modes = Json::array();
  for (Mode mode : snapshot.modes()) {
    const auto steps = snapshot.steps(mode, true);
    modes.push_back({{"mode", name_of(mode)},
                     {"steps", steps.size()},
                     {"first_step", steps.front()},
                     {"last_step", steps.back()}});
  }
  Json collections = Json::array();
  for (const CollectionRow& row : info.collections) {
    collections.push_back({{"name", row.name},
                           {"tensors", row.tensors},
                           {"reductions", row.reductions},
                           {"value", row.value},
                           {"shape", row.shape}});
  }
  const auto time = [](const std::optional<double>& secs) {
    return secs ? json_number(*secs) : Json(nullptr);
  };
  const RunFiles& files = info.files;
  return {{"run", info.run},
          {"state", info.state()},
          {"silent_secs", info.silent_secs},
          {"workers", snapshot.workers()},
          {"announced_workers", snapshot.num_workers()},
          {"steps", snapshot.row_count()},
          {"incomplete_steps", info.incomplete},
          {"modes", std::move(modes)},
          {"tensors", snapshot.names().tensors.size()},
          {"collections", std::move(collections)},
          {"first_wall_secs", time(info.first_secs)},
          {"last_wall_secs", time(info.last_secs)},
          {"layout", files.packed ? "packed" : "original"},
          {"event_files", files.event_files},
          {"event_bytes", files.event_bytes},
          {"index_files", files.index_files},
          {"index_bytes", files.index_bytes},
          {"findings", info.findings},
          {"health",
           {{"index_files_left_out", info.health.index_files_left_out},
            {"event_files_missing", info.health.event_files_missing},
            {"temporary_files", info.health.temporary_files}}}};
}

std::string state_text(const Info& info) {
  if (info.ended) return "ended";
  if (info.files.newest_ns == 0) return "no end marker, and nothing was written yet";
  const std::string since = human_secs(info.silent_secs);
  return info.state() == "silent"
             ? fmt::format("no end marker, nothing written for {}: probably stopped", since)
             : fmt::format("running: last file written {} ago", since);
}

std::string workers_text(const Snapshot& snapshot) {
  const auto& workers = snapshot.workers();
  if (workers.empty()) return "no collections yet, so that nobody knows how many there are";
  constexpr size_t kMostNames = 8;
  const std::vector<std::string> shown(
      workers.begin(),
      workers.begin() + static_cast<int64_t>(std::min(workers.size(), kMostNames)));
  return printable(fmt::format("{} of {} announced: {}{}", workers.size(), snapshot.num_workers(),
                               fmt::join(shown, ", "), workers.size() > kMostNames ? ", …" : ""));
}

std::string steps_text(const Info& info) {
  if (info.snapshot->row_count() == 0) return "none yet";
  std::vector<std::string> parts;
  for (Mode mode : info.snapshot->modes()) {
    const auto steps = info.snapshot->steps(mode, true);
    parts.push_back(steps.size() == 1 ? fmt::format("{} 1 ({})", name_of(mode), steps.front())
                                      : fmt::format("{} {} ({} to {})", name_of(mode), steps.size(),
                                                    steps.front(), steps.back()));
  }
  uint64_t without_mode = 0;
  for (size_t i = 0; i < info.snapshot->row_count(); ++i) {
    if (info.snapshot->row(i).info.mode == Mode::global) ++without_mode;
  }
  if (without_mode > 0) parts.push_back(fmt::format("{} without a mode", without_mode));
  std::string text = fmt::format("{}", fmt::join(parts, ", "));
  if (info.incomplete > 0) text += fmt::format("; {} not complete", info.incomplete);
  return text;
}

std::string health_text(const Terminal& terminal, const RunHealth& health) {
  constexpr std::string_view kMore = "; 'smdebug verify' looks closer";
  if (health.is_well()) {
    return terminal.paint(Style::good, "nothing is missing") + std::string(kMore);
  }
  std::vector<std::string> parts;
  if (health.index_files_left_out > 0) {
    parts.push_back(counted(health.index_files_left_out, "index file") + " left out");
  }
  if (health.event_files_missing > 0) {
    parts.push_back(counted(health.event_files_missing, "event file") + " missing");
  }
  if (health.temporary_files > 0)
    parts.push_back(counted(health.temporary_files, "temporary file"));
  return terminal.paint(Style::bad, fmt::format("{}", fmt::join(parts, ", "))) + std::string(kMore);
}

void print(const Terminal& terminal, const Info& info) {
  const auto line = [&](std::string_view key, std::string_view text) {
    terminal.out << terminal.paint(Style::strong, key) << std::string(12 - key.size(), ' ') << text
                 << '\n';
  };
  line("run", printable(info.run));
  line("state", state_text(info));
  line("workers", workers_text(*info.snapshot));
  line("steps", steps_text(info));
  line("tensors", fmt::format("{}", info.snapshot->names().tensors.size()));
  if (info.first_secs && info.last_secs) {
    line("recorded",
         fmt::format("{} to {}", utc_time(*info.first_secs), utc_time(*info.last_secs)));
  }
  const RunFiles& files = info.files;
  line("files", fmt::format("{} ({}), {} ({})",
                            counted(files.event_files, files.packed ? "segment" : "event file"),
                            human_bytes(files.event_bytes),
                            counted(files.index_files, files.packed ? "log" : "index file"),
                            human_bytes(files.index_bytes)));
  line("health", health_text(terminal, info.health));
  for (const std::string& file : info.findings) line("finding", printable(file));
  if (info.collections.empty()) return;
  Table table({{"collection"}, {"tensors", Align::right}, {"saves"}});
  for (const CollectionRow& row : info.collections) {
    std::vector<std::string> saves = row.reductions;
    if (row.shape) saves.insert(saves.begin(), "shape");
    if (row.value) saves.insert(saves.begin(), "value");
    table.add_row({row.name, fmt::format("{}", row.tensors),
                   saves.empty() ? "nothing" : fmt::format("{}", fmt::join(saves, " "))});
  }
  terminal.out << '\n' << table.text(terminal);
}

class InfoCommand final : public Invocation {
 public:
  explicit InfoCommand(CLI::App& options) { add_run(options, run_); }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const Info info, look(run_, *context.clock));
    if (context.json) {
      write_json(context.terminal.out, json_of(info));
    } else {
      print(context.terminal, info);
    }
    return ExitCode::well;
  }

 private:
  std::string run_;
};

constexpr Example kExamples[] = {
    {"info runs/first", "an overview"},
    {"info --json runs/first", "the same for a program"},
};

}  // namespace

extern const Command info;
const Command info = {
    .name = "info",
    .summary = "Shows what a run is: state, workers, steps, collections, files, health",
    .details =
        "Works while the job runs. A job that has not said that it ended is called running as long "
        "as it writes, and silent after ten minutes without a new file. Collections show how many "
        "saved tensors they hold, and what they save unless the hook says otherwise. Health only "
        "compares names of files and is no reason for another exit code: 'smdebug verify' reads "
        "them.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<InfoCommand>(options);
    },
};

}  // namespace smd::cli::command_list
