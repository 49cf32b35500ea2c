#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/reduce/reduce.h"
#include "smd/summary/summary_files.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kCollectionsTag = "collections";

// Files of an earlier conversion would be shown together with the new ones.
Status check_out(storage::Storage& out) {
  SMD_TRY(const auto files, out.list("", ""));
  const auto found = std::find_if(files.begin(), files.end(), [](const storage::FileInfo& file) {
    return file.path.find("tfevents") != std::string::npos;
  });
  if (found == files.end()) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("The directory holds files for TensorBoard already, such as {}; choose "
                           "another one or remove them: {}",
                           found->path, out.name())};
}

// Turns what was recorded into summaries, step by step. One directory per worker, if there are
// several.
class Conversion final {
 public:
  struct Counts {
    int64_t steps = 0;
    int64_t scalars = 0;
    int64_t histograms = 0;
    int64_t left_out = 0;  // texts, booleans and tensors without a number in range
  };

  Conversion(const Trial& trial, const Snapshot& snapshot, const TensorFilter& filter,
             std::string out)
      : trial_(trial), snapshot_(snapshot), filter_(filter), out_(std::move(out)) {}

  Status add(const StepRow& row) {
    Status status;
    snapshot_.for_each_part(row, [&](uint32_t number, const Part& part) {
      if (status.ok()) status = add(row, number, part);
    });
    ++counts_.steps;
    return status;
  }

  // The collections as a text, once, beside the first step.
  Status add_collections(const StepRow& row) {
    const std::string markdown = fmt::format("```json\n{}\n```", snapshot_.collections().to_json());
    Status status;
    snapshot_.for_each_part(row, [&](uint32_t, const Part& part) {
      const auto files = files_of(part);
      if (files.ok()) {
        (*files)->text(row.info, kCollectionsTag, markdown, 0);
      } else {
        status = files.error();
      }
    });
    return status;
  }

  Status close() {
    for (auto& [worker, files] : files_) SMD_RETURN_IF_ERROR(files->close());
    return {};
  }
  const Counts& counts() const { return counts_; }

 private:
  Result<SummaryFiles*> files_of(const Part& part) {
    auto& files = files_[part.worker];
    if (!files) {
      const std::string& worker = snapshot_.names().workers[part.worker];
      const bool alone = snapshot_.num_workers() <= 1 && snapshot_.workers().size() <= 1;
      SMD_TRY(auto storage, storage::open_storage(alone ? out_ : out_ + "/" + worker));
      files = std::make_unique<SummaryFiles>(
          SummaryFilesOptions{.storage = std::move(storage), .writer = worker});
    }
    return files.get();
  }

  Status add(const StepRow& row, uint32_t number, const Part& part) {
    SMD_TRY(SummaryFiles * files, files_of(part));
    const auto& entries = snapshot_.layout_of(part).entries();
    std::vector<Location> reductions;
    double wall_secs = 0;
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const Location at{number, i};
      if (!filter_.selects(snapshot_.names().tensors[entries[i].tensor])) continue;
      if (!Slot::from_id(entries[i].slot).is_value()) {
        reductions.push_back(at);
        continue;
      }
      SMD_TRY(const TensorValue value, trial_.read(snapshot_, at));
      if (wall_secs == 0) wall_secs = value.wall_secs;
      SMD_RETURN_IF_ERROR(add_value(row.info, entries[i].tensor, value, *files));
    }
    std::vector<double> numbers(reductions.size());
    SMD_RETURN_IF_ERROR(trial_.read_numbers(snapshot_, reductions, numbers));
    if (wall_secs == 0 && !reductions.empty()) {
      SMD_TRY(const TensorDescription first, trial_.describe(snapshot_, reductions.front()));
      wall_secs = first.wall_secs;
    }
    for (size_t i = 0; i < reductions.size(); ++i) {
      const Layout::Entry& entry = snapshot_.entry(reductions[i]);
      files->scalar(row.info,
                    fmt::format("{}/{}", snapshot_.names().tensors[entry.tensor],
                                snapshot_.slot_name(Slot::from_id(entry.slot))),
                    numbers[i], wall_secs);
    }
    counts_.scalars += static_cast<int64_t>(reductions.size());
    return files->flush();
  }

  Status add_value(const StepInfo& step, uint32_t tensor, const TensorValue& value,
                   SummaryFiles& files) {
    const std::string& name = snapshot_.names().tensors[tensor];
    const TensorView view{
        .data = value.elements.data(), .dtype = value.dtype, .shape = value.shape};
    if (value.dtype == DType::string || value.dtype == DType::boolean || view.size() == 0) {
      ++counts_.left_out;
      return {};
    }
    if (view.size() == 1) {
      SMD_TRY(const Reduction max, parse_reduction("max"));
      ReductionRequest request;
      request.reductions.add(max);
      SMD_RETURN_IF_ERROR(reduce(view, request, reduced_));
      if (const Number* number = reduced_.find(max)) {
        files.scalar(step, name, number->to_double(), value.wall_secs);
        ++counts_.scalars;
      } else {
        ++counts_.left_out;  // a complex number
      }
      return {};
    }
    SMD_RETURN_IF_ERROR(reduce(view, {.histogram = true}, reduced_));
    if (reduced_.histogram.counts.empty()) {
      ++counts_.left_out;
      return {};
    }
    files.histogram(step, name, view_of(reduced_.histogram), value.wall_secs);
    ++counts_.histograms;
    return {};
  }

  const Trial& trial_;
  const Snapshot& snapshot_;
  const TensorFilter& filter_;
  const std::string out_;
  std::map<uint32_t, std::unique_ptr<SummaryFiles>> files_;  // by worker
  ReductionResult reduced_;
  Counts counts_;
};

class TensorBoard final : public Invocation {
 public:
  explicit TensorBoard(CLI::App& options) {
    add_run(options, run_);
    options.add_option("--out", out_, "the directory to write to, for tensorboard --logdir")
        ->required()
        ->type_name("DIR");
    add_list(options, "--regex", choice_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    add_mode(options, mode_);
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto trial, open_trial(run_));
    const auto snapshot = trial->snapshot();
    SMD_TRY(const Mode mode, mode_argument(*snapshot, mode_));
    SMD_TRY(const TensorFilter filter, TensorFilter::create(*snapshot, choice_));
    SMD_TRY(const auto out, storage::open_storage(out_));
    SMD_RETURN_IF_ERROR(check_out(*out));
    Conversion conversion(*trial, *snapshot, filter, out_);
    {
      Progress progress(context.terminal, system_clock(), "tensorboard", ProgressUnit::steps);
      bool is_first = true;
      for (size_t i = 0; i < snapshot->row_count(); ++i) {
        const StepRow& row = snapshot->row(i);
        if (mode != Mode::global && row.info.mode != mode) continue;
        if (std::exchange(is_first, false)) {
          SMD_RETURN_IF_ERROR(conversion.add_collections(row));
        }
        SMD_RETURN_IF_ERROR(conversion.add(row));
        progress.update(i + 1, snapshot->row_count());
      }
    }
    SMD_RETURN_IF_ERROR(conversion.close());
    report(context, conversion.counts());
    return ExitCode::well;
  }

 private:
  void report(const Context& context, const Conversion::Counts& counts) const {
    if (context.json) {
      write_json(context.terminal.out, {{"run", run_},
                                        {"out", out_},
                                        {"steps", counts.steps},
                                        {"scalars", counts.scalars},
                                        {"histograms", counts.histograms},
                                        {"left_out", counts.left_out}});
      return;
    }
    context.terminal.out << fmt::format(
        "wrote {} scalars and {} histograms of {} steps; look at them with: tensorboard --logdir "
        "{}\n",
        counts.scalars, counts.histograms, counts.steps, printable(out_));
    if (counts.left_out > 0) {
      context.terminal.out << fmt::format(
          "left out {}: texts, booleans, complex numbers and tensors without a number between "
          "±9.9e19\n",
          counts.left_out);
    }
  }

  std::string run_;
  std::string out_;
  TensorChoice choice_;
  std::string mode_;
};

constexpr Example kExamples[] = {
    {"tensorboard runs/first --out boards/first", "everything that was recorded"},
    {"tensorboard runs/first --out boards/train --mode train --regex 'fc.*weight'",
     "some tensors of one mode"},
};

}  // namespace

extern const Command tensorboard;
const Command tensorboard = {
    .name = "tensorboard",
    .summary = "Converts a run to files that TensorBoard shows",
    .details =
        "Tensors that are a single number, and all stored reductions, become scalars; other "
        "tensors become histograms; the collections become a text. There is one directory per "
        "mode, and one above it per worker if there are several. A reduction has the tag "
        "TENSOR/REDUCTION. Steps are global ones.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<TensorBoard>(options);
    },
};

}  // namespace smd::cli::command_list
