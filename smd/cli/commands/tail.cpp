#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/live_table.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/units.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kDefaultReduction = "mean";
constexpr size_t kLastSteps = 10;
// Records of single numbers are shorter.
constexpr uint64_t kMostSingleBytes = 4096;
constexpr std::chrono::seconds kWait{60};

struct NamedNumber {
  std::string label;
  double number = 0;
};

// Anything else means that the tensor has no such number, as texts have none.
bool is_damage(ErrorCode code) {
  return code == ErrorCode::corrupt || code == ErrorCode::truncated || code == ErrorCode::io;
}

// The numbers of one step that were asked for.
class StepNumbers final {
 public:
  StepNumbers(Trial& trial, const TensorChoice& choice, const std::string& reduction)
      : trial_(trial), choice_(choice), reduction_(reduction) {}

  Result<std::vector<NamedNumber>> read(const Snapshot& snapshot, const StepRow& row) const {
    SMD_TRY(const TensorFilter filter, TensorFilter::create(snapshot, choice_));
    std::vector<uint32_t> tensors;
    for (uint32_t tensor : snapshot.tensors(row)) {
      if (filter.selects(snapshot.names().tensors[tensor])) tensors.push_back(tensor);
    }
    return reduction_.empty() ? values(snapshot, row, tensors)
                              : reductions(snapshot, row, tensors, reduction_);
  }

 private:
  Result<std::vector<NamedNumber>> values(const Snapshot& snapshot, const StepRow& row,
                                          const std::vector<uint32_t>& tensors) const {
    std::vector<uint32_t> small;
    std::vector<Location> at;
    for (uint32_t tensor : tensors) {
      const auto place = snapshot.find(row, tensor, Slot::value(), std::nullopt);
      if (!place || snapshot.entry(*place).length > kMostSingleBytes) continue;
      small.push_back(tensor);
      at.push_back(*place);
    }
    std::vector<std::optional<double>> found(at.size());
    SMD_RETURN_IF_ERROR(trial_.read_single_numbers(snapshot, at, found));
    std::vector<NamedNumber> out;
    std::vector<uint32_t> others;
    for (uint32_t tensor : tensors) {
      const auto place = std::find(small.begin(), small.end(), tensor);
      const auto& number =
          place == small.end() ? std::nullopt : found[static_cast<size_t>(place - small.begin())];
      if (number) {
        out.push_back({snapshot.names().tensors[tensor], *number});
      } else {
        others.push_back(tensor);
      }
    }
    // Whoever names tensors wants to see them, whatever they are.
    if (choice_.patterns.empty()) return out;
    SMD_TRY(const auto more, reductions(snapshot, row, others, kDefaultReduction));
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  Result<std::vector<NamedNumber>> reductions(const Snapshot& snapshot, const StepRow& row,
                                              const std::vector<uint32_t>& tensors,
                                              std::string_view reduction) const {
    std::vector<NamedNumber> out;
    for (uint32_t tensor : tensors) {
      const std::string& name = snapshot.names().tensors[tensor];
      const auto number = trial_.reduction(name, reduction, {.step = row.info.step});
      if (number.ok()) {
        out.push_back({number_label(name, reduction), number->to_double()});
      } else if (is_damage(number.error().code)) {
        return number.error();
      }
    }
    return out;
  }

  Trial& trial_;
  const TensorChoice& choice_;
  const std::string& reduction_;
};

class Tail final : public Invocation {
 public:
  explicit Tail(CLI::App& options) {
    add_run(options, run_);
    add_list(options, "--regex", choice_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    options.add_option("--reduction", reduction_, "this reduction of each tensor")
        ->type_name("NAME");
    add_mode(options, mode_);
    options.add_option("--from", from_, "the first step to print; the last ten that are there")
        ->type_name("STEP");
    options.add_flag("--exit-with-job", exit_with_job_, "end when the job does");
  }

  Result<ExitCode> run(const Context& context) override {
    Mode mode = Mode::global;
    if (!mode_.empty()) {
      SMD_TRY(mode, parse_mode(mode_));
    }
    std::string note;
    SMD_TRY(auto storage, open_future_run(run_, note));
    if (!note.empty()) context.terminal.say(note);
    SMD_TRY(const auto trial, Trial::open(std::move(storage), {.end_delay_secs = 0}));
    // Wrong patterns and names are told at once, not with the first step.
    SMD_TRY(const TensorFilter filter, TensorFilter::create(*trial->snapshot(), choice_));
    if (!reduction_.empty() && !trial->snapshot()->find_slot(reduction_, false)) {
      SMD_TRY(const Reduction known, parse_reduction(reduction_));
      (void)known;
    }
    LiveTable table(context.terminal);
    bool is_first = true;
    for (;;) {
      SMD_RETURN_IF_ERROR(trial->refresh());
      const auto snapshot = trial->snapshot();
      print_news(context, *trial, *snapshot, mode, is_first, table);
      is_first = false;
      if (snapshot->loaded_all()) break;
      trial->wait(std::chrono::steady_clock::now() + kWait);
    }
    if (exit_with_job_) return ExitCode::well;
    context.terminal.say("The job has ended, so that nothing more will come; Ctrl-C ends this.");
    for (;;) ::pause();
  }

 private:
  void print_news(const Context& context, Trial& trial, const Snapshot& snapshot, Mode mode,
                  bool is_first, LiveTable& table) {
    std::vector<const StepRow*> news;  // newest first
    for (size_t i = snapshot.row_count(); i-- > 0;) {
      const StepRow& row = snapshot.row(i);
      if (row.info.step <= last_) break;
      if (mode != Mode::global && row.info.mode != mode) continue;
      const Step step = mode == Mode::global ? row.info.step : row.info.mode_step;
      if (from_ && step < *from_) continue;
      if (is_first && !from_ && news.size() >= kLastSteps) break;
      if (snapshot.is_complete(row)) news.push_back(&row);
    }
    const StepNumbers numbers(trial, choice_, reduction_);
    for (size_t i = news.size(); i-- > 0;) {
      last_ = news[i]->info.step;
      const auto read = numbers.read(snapshot, *news[i]);
      if (!read.ok()) {
        context.terminal.say(
            fmt::format("Step {} cannot be read: {}", last_, read.error().message));
        continue;
      }
      print(context, news[i]->info, *read, table);
    }
  }

  void print(const Context& context, const StepInfo& step, const std::vector<NamedNumber>& numbers,
             LiveTable& table) {
    if (context.json) {
      Json values = Json::object();
      for (const NamedNumber& one : numbers) values[one.label] = json_number(one.number);
      write_json(context.terminal.out, {{"step", step.step},
                                        {"mode", name_of(step.mode)},
                                        {"mode_step", step.mode_step},
                                        {"numbers", std::move(values)}});
      return;
    }
    std::vector<LiveTable::Cell> cells = {{"step", fmt::format("{}", step.step)}};
    cells.push_back({"mode", fmt::format("{} {}", name_of(step.mode), step.mode_step)});
    for (const NamedNumber& one : numbers) cells.push_back({one.label, number_text(one.number)});
    const size_t left_out = table.add_row(cells);
    if (numbers.empty() && !std::exchange(said_nothing_, true)) {
      context.terminal.say(
          "This step has no single numbers; choose others with --regex or --reduction.");
    }
    if (left_out > 0 && !std::exchange(said_left_out_, true)) {
      context.terminal.say(
          fmt::format("{} more numbers do not fit; choose with --regex.", left_out));
    }
  }

  std::string run_;
  TensorChoice choice_;
  std::string reduction_;
  std::string mode_;
  std::optional<Step> from_;
  bool exit_with_job_ = false;
  Step last_ = -1;
  bool said_nothing_ = false;
  bool said_left_out_ = false;
};

constexpr Example kExamples[] = {
    {"tail runs/first", "the last steps, and each new one as it appears"},
    {"tail runs/first --regex loss --mode train --from 0 --exit-with-job",
     "all of a curve, until the job ends"},
    {"tail runs/first --regex 'fc.*weight' --reduction abs_max", "a reduction of some tensors"},
    {"tail --json runs/first", "one JSON document per step"},
};

}  // namespace

extern const Command tail;
const Command tail = {
    .name = "tail",
    .summary = "Follows a run: prints the numbers of each new step as it appears",
    .details =
        "A step is printed when all workers have saved it. It shows the tensors that are a single "
        "number, or those that --regex names. Of tensors that are more than a number the mean is "
        "shown, or what --reduction says. The run need not have begun. Ctrl-C ends the command, or "
        "the end of the job with --exit-with-job.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Tail>(options);
    },
};

}  // namespace smd::cli::command_list
