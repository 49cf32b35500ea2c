#include "smd/storage/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/units.h"
#include "smd/format/file_name.h"
#include "smd/packed/delivery.h"
#include "smd/storage/location.h"

namespace smd::cli::command_list {
namespace {

class Sync final : public Invocation {
 public:
  explicit Sync(CLI::App& options) {
    options.add_option("DIR", from_, "a local run, or what an upload left behind")
        ->required()
        ->type_name("");
    options.add_option("DEST", to_, "where it belongs: a directory or s3://bucket/prefix")
        ->required()
        ->type_name("");
    options.add_flag("--remove-source", remove_source_, "remove files from DIR once they arrived");
  }

  Result<ExitCode> run(const Context& context) override {
    if (storage::is_uri(from_)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("'{}' is no local directory; sync sends local runs.", from_)};
    }
    // Says what is wrong with a directory that holds no run.
    SMD_TRY(const auto source, open_run(from_));
    SMD_TRY(const auto remote, storage::open_storage(to_));
    Result<storage::SyncReport> report = storage::SyncReport{};
    {
      Progress progress(context.terminal, context.clock, "sync");
      uint64_t total = 0;
      storage::SyncOptions options{.skip = {std::string(format::kClaim)},
                                   .remove_source = remove_source_};
      options.progress = [&](const storage::SyncProgress& next) {
        total = std::max(total, next.bytes_left);
        progress.update(total - next.bytes_left, total);
        return true;
      };
      report = packed::sync_run(source->name(), remote, options);
    }
    if (!report.ok()) return report.error();
    if (context.json) {
      write_json(context.terminal.out, {{"from", source->name()},
                                        {"to", remote->name()},
                                        {"files_sent", report->files_sent},
                                        {"bytes_sent", report->bytes_sent},
                                        {"files_skipped", report->files_skipped}});
    } else {
      context.terminal.out << fmt::format(
          "sent {} ({}), {} already there\n",
          counted(static_cast<uint64_t>(report->files_sent), "file"),
          human_bytes(report->bytes_sent), report->files_skipped);
    }
    return ExitCode::well;
  }

 private:
  std::string from_;
  std::string to_;
  bool remove_source_ = false;
};

constexpr Example kExamples[] = {
    {"sync runs/first s3://bucket/runs/first", "send a run to S3"},
    {"sync runs/first /mnt/share/first", "copy it to another directory"},
    {"sync --remove-source runs/first s3://bucket/runs/first", "and clear what has arrived"},
};

}  // namespace

extern const Command sync;
const Command sync = {
    .name = "sync",
    .summary = "Brings a local run, or what an upload left behind, to where it belongs",
    .details =
        "Files that are there already with the same size are skipped, so an interrupted call can "
        "be repeated. An index arrives after the data it names and the end marker last, so a "
        "reader at the destination never sees a step that it cannot read.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Sync>(options);
    },
};

}  // namespace smd::cli::command_list
