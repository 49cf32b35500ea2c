#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "smd/base/nearest.h"
#include "smd/cli/command.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/trial/frame.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kSuffixes[] = {".arrow", ".csv", ".feather", ".jsonl", ".parquet"};

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

class Export final : public Invocation {
 public:
  explicit Export(CLI::App& options) {
    add_run(options, run_);
    options.add_option("OUT", file_, "the file to write")->required()->type_name("");
    add_list(options, "--regex", choice_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    add_list(options, "--reduction", options_.reductions, "NAME",
             "a column for this reduction; all that are stored; may be repeated");
    add_mode(options, mode_);
    add_worker(options, options_.worker);
  }

  // What can be wrong is found here, quickly; the file is written by python/smdebug/cli.py, as the
  // libraries for these formats live there.
  Result<ExitCode> run(const Context& context) override {
    SMD_RETURN_IF_ERROR(check_file(file_));
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
  std::string run_;
  std::string file_;
  TensorChoice choice_;
  std::string mode_;
  FrameOptions options_;
};

constexpr Example kExamples[] = {
    {"export runs/first numbers.parquet", "all stored numbers"},
    {"export runs/first loss.csv --regex loss --mode train", "a few of them as text"},
    {"export runs/first norms.arrow --reduction l2 --reduction abs_max", "reductions of choice"},
};

}  // namespace

extern const Command export_table;
const Command export_table = {
    .name = "export",
    .summary = "Writes the numbers of a run to a table: Parquet, Arrow, CSV or JSON lines",
    .details =
        "The suffix of OUT decides the format. There is a row for each step, worker and tensor, a "
        "column for each reduction, and the column value for tensors that are a single number. A "
        "reduction that was not stored is computed where the value was saved. The file appears "
        "when it is complete. Needs Python with the package pyarrow.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Export>(options);
    },
};

}  // namespace smd::cli::command_list
