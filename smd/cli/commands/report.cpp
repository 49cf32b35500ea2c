#include <fmt/format.h>

#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/output_file.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/server/report.h"

namespace smd::cli::command_list {
namespace {

class Report final : public Invocation {
 public:
  explicit Report(CLI::App& options) {
    options.add_option("RUN", runs_, "the run; two are also compared")
        ->required()
        ->type_name("")
        ->expected(1, 2);
    options.add_option("--html", html_, "the file to write")->required()->type_name("FILE");
  }

  Result<ExitCode> run(const Context& context) override {
    // For its sentences about what is no run.
    std::vector<std::string> locations;
    for (const std::string& run : runs_) {
      SMD_TRY(const auto storage, open_run(run));
      locations.push_back(storage->name());
    }
    SMD_TRY(const auto site, server::Site::open({.locations = locations,
                                                 .version = std::string(program_version()),
                                                 .is_report = true,
                                                 .clock = context.clock}));
    SMD_TRY(const std::string page, server::report_page(*site));
    SMD_RETURN_IF_ERROR(write_output_file(html_, page));
    if (context.json) {
      write_json(context.terminal.out, {{"file", html_}, {"bytes", page.size()}});
    } else {
      context.terminal.out << printable(
                                  fmt::format("Wrote {} ({}).", html_, human_bytes(page.size())))
                           << '\n';
    }
    return ExitCode::well;
  }

 private:
  std::vector<std::string> runs_;
  std::string html_;
};

constexpr Example kExamples[] = {
    {"report runs/first --html first.html", "the page of a run as one file"},
    {"report runs/first runs/second --html both.html", "two runs, compared"},
};

}  // namespace

extern const Command report;
const Command report = {
    .name = "report",
    .summary = "Writes the page of a run, with its data, as one file",
    .details =
        "The page is the one of 'smdebug serve', opens from disk and needs no network. It holds "
        "the "
        "findings, the overview of all tensors, losses and metrics, and curves, histograms and "
        "small values of the 200 tensors that matter most: those that findings name come first. "
        "With two runs it also holds where they part.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Report>(options);
    },
};

}  // namespace smd::cli::command_list
