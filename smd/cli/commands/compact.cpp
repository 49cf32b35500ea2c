#include <fmt/format.h>

#include <filesystem>

#include "smd/cli/command.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/storage/location.h"

namespace smd::cli::command_list {
namespace {

Status check_directory(const std::string& directory) {
  if (storage::is_uri(directory)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("'{}' is no local directory; the tables are written to one.", directory)};
  }
  std::error_code error;
  const auto status = std::filesystem::status(directory, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_directory(status)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' is a file; the tables need a directory.", directory)};
  }
  return {};
}

class Compact final : public Invocation {
 public:
  explicit Compact(CLI::App& options) {
    add_run(options, run_);
    options.add_option("--parquet", directory_, "the directory for the tables")
        ->required()
        ->type_name("DIR");
  }

  // What can be wrong is found here, quickly; the files are written by python/smdebug/cli.py, as
  // the library for them lives there.
  Result<ExitCode> run(const Context& context) override {
    SMD_RETURN_IF_ERROR(check_directory(directory_));
    SMD_TRY(const auto trial, open_trial(run_));
    if (trial->snapshot()->row_count() == 0) {
      return Error{ErrorCode::not_found,
                   fmt::format("The run holds no steps, so there is nothing to write: {}", run_)};
    }
    return context.hand_over();
  }

 private:
  std::string run_;
  std::string directory_;
};

constexpr Example kExamples[] = {
    {"compact runs/first --parquet tables", "for DuckDB, Polars and others"},
};

}  // namespace

extern const Command compact;
const Command compact = {
    .name = "compact",
    .summary = "Writes the numbers of a run as Parquet tables, sorted by tensor, for analysis",
    .details =
        "statistics.parquet has a row for each tensor, worker and step and a column for each "
        "stored reduction. tensors.parquet and steps.parquet tell what the numbers stand for. "
        "pyramid.parquet has minimum, maximum and mean of ever more steps, for charts. Tables of "
        "an earlier call are replaced once the new ones are complete. Needs Python with the "
        "package pyarrow.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Compact>(options);
    },
};

}  // namespace smd::cli::command_list
