#include "smd/repack/repack.h"

#include <fmt/format.h>

#include <filesystem>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/units.h"
#include "smd/config/hook_config.h"
#include "smd/storage/location.h"

namespace smd::cli::command_list {
namespace {

// A place for a new run.
Result<std::shared_ptr<storage::Storage>> open_destination(const std::string& argument) {
  if (argument.empty()) {
    return Error{ErrorCode::invalid_argument, "The path of the copy is empty."};
  }
  if (storage::is_uri(argument)) return storage::open_storage(argument);
  std::error_code error;
  const auto status = std::filesystem::status(argument, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is a file, but a run is a directory.", argument)};
  }
  return storage::local_storage(argument, {.everything = true});
}

class RepackCommand final : public Invocation {
 public:
  explicit RepackCommand(CLI::App& options) {
    options.add_option("SRC", from_, "the run to copy: a directory or s3://bucket/prefix")
        ->required()
        ->type_name("");
    options.add_option("DST", to_, "where the copy goes; must be empty")->required()->type_name("");
    static constexpr std::string_view kLayouts[] = {"original", "packed"};
    add_choice(options, "--layout", layout_, kLayouts, "the layout of the copy")->required();
    options.add_flag("--verify,!--no-verify", options_.verify,
                     "compare the copy with the run, bit for bit; on unless --no-verify");
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(options_.layout, parse_run_layout(layout_, "--layout"));
    SMD_TRY(const auto from, open_run(from_));
    SMD_TRY(const auto to, open_destination(to_));
    Result<RepackReport> report = RepackReport{};
    {
      Progress progress(context.terminal, context.clock, "repack", ProgressUnit::steps);
      options_.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
      report = repack_run(from, to, options_);
    }
    if (!report.ok()) return report.error();
    if (context.json) {
      write_json(context.terminal.out, {{"from", from->name()},
                                        {"to", to->name()},
                                        {"layout", name_of(options_.layout)},
                                        {"steps", report->steps},
                                        {"workers", report->workers},
                                        {"values", report->values},
                                        {"reductions", report->reductions},
                                        {"shapes", report->shapes},
                                        {"element_bytes", report->element_bytes},
                                        {"collections_files", report->collections_files},
                                        {"empty_left_out", report->empty_left_out},
                                        {"ended", report->ended},
                                        {"verified", report->verified}});
    } else {
      print(context.terminal, *to, *report);
    }
    return ExitCode::well;
  }

 private:
  void print(const Terminal& terminal, const storage::Storage& to,
             const RepackReport& report) const {
    std::ostream& out = terminal.out;
    out << fmt::format("copied {}, {}, {}, {}, {} ({}) to {} in the {} layout\n",
                       counted(report.steps, "step"), counted(report.workers, "worker"),
                       counted(report.values, "value"), counted(report.reductions, "reduction"),
                       counted(report.shapes, "shape"), human_bytes(report.element_bytes),
                       to.name(), name_of(options_.layout));
    if (report.empty_left_out > 0) {
      out << fmt::format("{} of a worker held nothing and stayed behind\n",
                         counted(report.empty_left_out, "step"));
    }
    if (!report.ended) {
      out << "the run has not ended: what it held so far was copied, and the copy has no end "
             "marker\n";
    }
    if (report.verified) {
      out << terminal.paint(Style::good, "the copy is equal, bit for bit") << '\n';
    }
  }

  std::string from_;
  std::string to_;
  std::string layout_;
  RepackOptions options_;
};

constexpr Example kExamples[] = {
    {"repack runs/first runs/packed --layout packed", "a copy of few files"},
    {"repack runs/packed runs/plain --layout original", "a copy that the original's tools read"},
    {"repack s3://bucket/runs/first first --layout packed", "from an object store"},
};

}  // namespace

extern const Command repack;
const Command repack = {
    .name = "repack",
    .summary = "Copies a run into another layout, without loss",
    .details =
        "Everything that readers see is copied bit for bit: values with their element types, "
        "reductions, texts, saved shapes, modes, workers, collections and the end marker, "
        "incomplete steps included. The numbers of a step in the packed layout share one time, "
        "that of its first value. Other files, such as those for TensorBoard, stay behind. A copy "
        "that is interrupted has no end marker, and verify tells of it. The original layout ends "
        "at 2 GiB a tensor; a run with a larger one is refused before anything is written.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<RepackCommand>(options);
    },
};

}  // namespace smd::cli::command_list
