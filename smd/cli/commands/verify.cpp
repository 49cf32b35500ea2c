#include "smd/trial/verify.h"

#include <fmt/format.h>

#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/options.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/units.h"
#include "smd/config/hook_config.h"
#include "smd/picture/text_width.h"

namespace smd::cli::command_list {
namespace {

Json json_of(const std::string& run, const VerifyReport& report) {
  Json problems = Json::array();
  for (const RunProblem& problem : report.problems) {
    problems.push_back({{"fault", name_of(problem.fault)},
                        {"damage", problem.is_damage},
                        {"file", problem.file},
                        {"offset", problem.offset ? Json(*problem.offset) : Json(nullptr)},
                        {"message", problem.message},
                        {"mended", problem.mended}});
  }
  Json repairs = Json::array();
  for (const RunRepair& repair : report.repairs) {
    repairs.push_back({{"file", repair.file}, {"message", repair.message}});
  }
  return {{"run", run},
          {"layout", name_of(report.layout)},
          {"ended", report.ended},
          {"steps", report.steps},
          {"workers", report.workers},
          {"index_files", report.index_files},
          {"event_files", report.event_files},
          {"event_bytes", report.event_bytes},
          {"collections_files", report.collections_files},
          {"tensors", report.tensors},
          {"payloads_checked", report.payloads_checked},
          {"damage", report.damage()},
          {"problems", std::move(problems)},
          {"problems_not_listed", report.problems_not_listed},
          {"repairs", std::move(repairs)}};
}

void print(const Terminal& terminal, const VerifyReport& report) {
  std::ostream& out = terminal.out;
  const bool packed = report.layout == RunLayout::packed;
  out << fmt::format("{}, {}, {}, {} ({}), {}\n", counted(report.steps, "step"),
                     counted(report.workers, "worker"),
                     counted(report.index_files, packed ? "log" : "index file"),
                     counted(report.event_files, packed ? "segment" : "event file"),
                     human_bytes(report.event_bytes), counted(report.tensors, "tensor"));
  if (report.tensors > 0) {
    out << fmt::format("{} of {} payloads have a checksum to compare with\n",
                       report.payloads_checked, report.tensors);
  }
  for (const RunProblem& problem : report.problems) {
    const std::string_view word = problem.mended ? "mended" : problem.is_damage ? "damage" : "note";
    const Style style = problem.mended      ? Style::good
                        : problem.is_damage ? Style::bad
                                            : Style::faint;
    std::string where = printable(problem.file);
    if (problem.offset) where += fmt::format(" at {}", *problem.offset);
    if (!where.empty()) where += ": ";
    out << fmt::format("{}{} {}{}\n", terminal.paint(style, word),
                       std::string(6 - word.size(), ' '), where, printable(problem.message));
  }
  if (report.problems_not_listed > 0) {
    out << fmt::format("… and {} more\n", report.problems_not_listed);
  }
  for (const RunRepair& repair : report.repairs) {
    out << fmt::format("{} {}: {}\n", terminal.paint(Style::good, "wrote "), printable(repair.file),
                       printable(repair.message));
  }
  if (const uint64_t damage = report.damage(); damage > 0) {
    out << terminal.paint(Style::bad, fmt::format("damage in {}", counted(damage, "place")))
        << '\n';
  } else {
    out << terminal.paint(Style::good, "no damage") << '\n';
  }
}

class Verify final : public Invocation {
 public:
  explicit Verify(CLI::App& options) {
    options.add_option("RUN", run_, "the run to check")->required()->type_name("");
    options.add_flag("--deep", options_.deep, "decode every tensor, too");
    options.add_flag("--repair", options_.repair,
                     "rebuild index files and logs that are missing or broken, and close segments "
                     "that nobody closed");
    options.add_flag("--stopped", options_.stopped,
                     "the writers of the run are gone: repair what they left open, too");
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto storage, open_run(run_, {.everything = true}));
    Result<VerifyReport> report = VerifyReport{};
    {
      Progress progress(context.terminal, context.clock, "verify");
      options_.progress = [&](uint64_t done, uint64_t total) { progress.update(done, total); };
      report = verify_run(*storage, options_);
    }
    if (!report.ok()) return report.error();
    if (context.json) {
      write_json(context.terminal.out, json_of(storage->name(), *report));
    } else {
      print(context.terminal, *report);
    }
    return report->damage() > 0 ? ExitCode::found : ExitCode::well;
  }

 private:
  std::string run_;
  VerifyOptions options_;
};

constexpr Example kExamples[] = {
    {"verify runs/first", "check a run"},
    {"verify --deep runs/first", "decode every tensor as well"},
    {"verify --repair runs/first", "bring back steps whose index is lost"},
    {"verify --repair --stopped runs/first", "after the job was killed"},
    {"verify --json runs/first", "print the report for a program"},
};

}  // namespace

extern const Command verify;
const Command verify = {
    .name = "verify",
    .summary = "Checks that the files of a run are whole and fit each other",
    .details =
        "Every index is parsed, and every tensor it names is looked up in its event file: place, "
        "frame, name, and the checksum of the payload where one was recorded. Files without an "
        "index, files left by a writer that was stopped, collections and workers are checked, too. "
        "What is natural while a job runs is only noted. --repair writes missing or broken index "
        "files anew and never touches good ones; a record that was cut off is left out, and shapes "
        "that were saved without values cannot be rebuilt. Do not repair a run that is still being "
        "recorded. "
        "Of a packed run, the frames and checksums of logs, records and blocks are checked, and "
        "whether logs, blocks and footers say the same. --repair then writes logs anew, cuts off "
        "what a stopped writer left behind the last whole step, and closes its segment. It does so "
        "only if the job has ended, the same worker has begun another segment, or --stopped is "
        "given.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Verify>(options);
    },
};

}  // namespace smd::cli::command_list
