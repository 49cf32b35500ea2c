#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <ostream>
#include <span>

#include "smd/base/nearest.h"
#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/repack/index_export.h"
#include "smd/trial/frame.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kSuffixes[] = {".arrow", ".csv", ".feather", ".jsonl", ".parquet"};
// As in python/smdebug/exporters.
constexpr std::string_view kExporters[] = {"mlflow", "opentelemetry", "wandb"};

Status check_file(const std::string& file) {
  const std::filesystem::path path = file;
  const std::string suffix = path.extension().string();
  std::string lower = suffix;
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (std::find(std::begin(kSuffixes), std::end(kSuffixes), lower) == std::end(kSuffixes)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' does not end in one of {}.{}", file, fmt::join(kSuffixes, ", "),
                             did_you_mean(suffix, kSuffixes))};
  }
  std::error_code error;
  if (path.has_parent_path() && !std::filesystem::is_directory(path.parent_path(), error)) {
    return Error{ErrorCode::not_found, fmt::format("There is no directory '{}' to write to.",
                                                   path.parent_path().string())};
  }
  return {};
}

// OUT, or --to with its settings.
Status check_destination(const std::string& file, const std::string& to,
                         std::span<const std::string> settings) {
  if (to.empty()) {
    if (!settings.empty()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--set {} is a setting of an exporter: give its name with --to.",
                               settings.front())};
    }
    if (file.empty()) {
      return Error{ErrorCode::invalid_argument,
                   "OUT is required, the file to write, or --to, the tool to carry the run to."};
    }
    return check_file(file);
  }
  if (!file.empty()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("Give OUT or --to, not both: '{}' is a file and '{}' is no file.", file, to)};
  }
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("--set takes KEY=VALUE, not '{}'.", setting)};
    }
  }
  return {};
}

class Export final : public Invocation {
 public:
  explicit Export(CLI::App& options) {
    add_run(options, run_);
    options.add_option("OUT", file_, "the file to write; not with --to or --index-only")
        ->type_name("");
    add_choice(options, "--to", to_, kExporters, "carry the numbers to this tool instead");
    add_list(options, "--set", settings_, "KEY=VALUE",
             "a setting of the exporter that --to names; may be repeated");
    add_list(options, "--regex", choice_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    add_list(
        options, "--reduction", options_.reductions, "NAME",
        "a column for this reduction; all that are stored, or with --to none; may be repeated");
    add_mode(options, mode_);
    add_worker(options, options_.worker);
    options.add_flag(
        "--index-only", index_only_,
        "write index files beside a packed run instead, for readers of the original layout");
  }

  // What can be wrong is found here, quickly; the rest is done by python/smdebug/cli.py, as the
  // libraries for these formats and tools live there.
  Result<ExitCode> run(const Context& context) override {
    if (index_only_) return write_index(context);
    SMD_RETURN_IF_ERROR(check_destination(file_, to_, settings_));
    SMD_TRY(auto opened, open_trial(run_));
    const std::shared_ptr<Trial> trial = std::move(opened);
    const auto snapshot = trial->snapshot();
    SMD_TRY(options_.mode, mode_argument(*snapshot, mode_));
    SMD_TRY(const TensorFilter filter, TensorFilter::create(*snapshot, choice_));
    std::vector<uint32_t> chosen;
    for (uint32_t tensor : snapshot->tensors(options_.mode)) {
      if (filter.selects(snapshot->names().tensors[tensor])) chosen.push_back(tensor);
    }
    if (chosen.empty()) {
      return Error{ErrorCode::not_found,
                   fmt::format("None of the {} tensors of the run fits, so there is nothing to "
                               "write.",
                               snapshot->names().tensors.size())};
    }
    options_.tensors = std::move(chosen);
    SMD_TRY(const Frame frame, Frame::create(trial, options_));
    return context.hand_over();
  }

 private:
  Result<ExitCode> write_index(const Context& context) {
    if (!file_.empty() || !to_.empty() || !settings_.empty() || !choice_.patterns.empty() ||
        !options_.reductions.empty() || !mode_.empty() || !options_.worker.empty()) {
      return Error{ErrorCode::invalid_argument,
                   "--index-only writes beside the run, and all of it; it goes with no other "
                   "argument than RUN."};
    }
    SMD_TRY(const auto storage, open_run(run_));
    Result<IndexExportReport> report = IndexExportReport{};
    {
      Progress progress(context.terminal, context.clock, "export", ProgressUnit::steps);
      report = export_index(storage,
                            [&](uint64_t done, uint64_t total) { progress.update(done, total); });
    }
    if (!report.ok()) return report.error();
    if (context.json) {
      write_json(context.terminal.out, {{"run", storage->name()},
                                        {"steps", report->steps},
                                        {"workers", report->workers},
                                        {"index_files", report->index_files},
                                        {"event_files", report->event_files},
                                        {"event_bytes", report->event_bytes},
                                        {"in_place", report->in_place},
                                        {"copied", report->copied},
                                        {"left_out", report->left_out},
                                        {"too_large", report->too_large}});
      return ExitCode::well;
    }
    std::ostream& out = context.terminal.out;
    out << fmt::format("wrote {} for {} of {}\n", counted(report->index_files, "index file"),
                       counted(report->steps, "step"), counted(report->workers, "worker"));
    out << fmt::format("{} stay where they are, {} were copied to {} ({})\n",
                       counted(report->in_place, "tensor"), counted(report->copied, "value"),
                       counted(report->event_files, "event file"),
                       human_bytes(report->event_bytes));
    if (report->left_out > 0) {
      out << fmt::format("left out, as the original ends at 2 GiB a tensor: {} of {}\n",
                         counted(report->left_out, "value"),
                         printable(fmt::format("{}", fmt::join(report->too_large, ", "))));
    }
    return ExitCode::well;
  }

  std::string run_;
  std::string file_;
  std::string to_;
  std::vector<std::string> settings_;
  TensorChoice choice_;
  std::string mode_;
  FrameOptions options_;
  bool index_only_ = false;
};

constexpr Example kExamples[] = {
    {"export runs/first numbers.parquet", "all stored numbers"},
    {"export runs/first loss.csv --regex loss --mode train", "a few of them as text"},
    {"export runs/first norms.arrow --reduction l2 --reduction abs_max", "reductions of choice"},
    {"export runs/first --to mlflow --set experiment=demo", "carry scalars to MLflow"},
    {"export runs/first --to wandb --set project=demo --reduction l2",
     "and norms to Weights & Biases"},
    {"export --index-only runs/packed", "let the original's reader open a packed run"},
};

}  // namespace

extern const Command export_table;
const Command export_table = {
    .name = "export",
    .summary = "Writes the numbers of a run to a table, or carries them to a tracker",
    .details =
        "The suffix of OUT decides the format. There is a row for each step, worker and tensor, a "
        "column for each reduction, and the column value for tensors that are a single number. "
        "Reductions that were not stored are computed where the value was saved. --to carries "
        "single numbers and chosen reductions to a tool that draws them; docs/guide/exporters.md "
        "names its settings. --index-only writes the original's index beside a packed run. Needs "
        "Python with the package pyarrow.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Export>(options);
    },
};

}  // namespace smd::cli::command_list
