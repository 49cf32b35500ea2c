#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/array_text.h"
#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"
#include "smd/reduce/reduce.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kStatistics[] = {"min", "max", "mean", "std", "l1", "l2"};

// A tensor at one step, as far as it was saved there.
struct Shown {
  StepInfo step;
  std::string worker;
  std::vector<std::pair<std::string, double>> stored;
  std::optional<TensorValue> value;
  const Layout::ShapeOf* saved_shape = nullptr;
  ReductionResult statistics;  // of the value

  int64_t elements() const {
    if (!value) return 0;
    return value->dtype == DType::string ? static_cast<int64_t>(value->strings.size())
                                         : value->view().size();
  }
  uint64_t bytes() const {
    uint64_t sum = value ? value->elements.size() : 0;
    if (value) {
      for (const std::string& text : value->strings) sum += text.size();
    }
    return sum;
  }
};

struct Place {
  const StepRow* row = nullptr;
  uint32_t part = 0;
};

// The worker's part of the step, or that of the first worker that has the tensor.
std::optional<uint32_t> find_part(const Snapshot& snapshot, const StepRow& row, uint32_t tensor,
                                  std::optional<uint32_t> worker) {
  for (uint32_t i = row.first_part; i != kNone; i = snapshot.part(i).next) {
    const Part& part = snapshot.part(i);
    if (worker && part.worker != *worker) continue;
    if (snapshot.layout_of(part).holds(tensor)) return i;
  }
  return std::nullopt;
}

std::optional<Place> last_place(const Snapshot& snapshot, uint32_t tensor, Mode mode,
                                std::optional<uint32_t> worker) {
  for (size_t i = snapshot.row_count(); i-- > 0;) {
    const StepRow& row = snapshot.row(i);
    if (mode != Mode::global && row.info.mode != mode) continue;
    if (const auto part = find_part(snapshot, row, tensor, worker)) return Place{&row, *part};
  }
  return std::nullopt;
}

Result<Shown> read(const Trial& trial, const Snapshot& snapshot, uint32_t tensor,
                   const Place& place) {
  const Part& part = snapshot.part(place.part);
  const Layout& layout = snapshot.layout_of(part);
  Shown shown{.step = place.row->info, .worker = snapshot.names().workers[part.worker]};
  shown.saved_shape = layout.shape_of(tensor);
  std::vector<Location> at;
  const auto entries = layout.entries();
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (entries[i].tensor != tensor) continue;
    const Slot slot = Slot::from_id(entries[i].slot);
    if (slot.is_value()) {
      SMD_TRY(shown.value, trial.read(snapshot, {place.part, i}));
    } else {
      at.push_back({place.part, i});
      shown.stored.emplace_back(snapshot.slot_name(slot), 0);
    }
  }
  std::vector<double> numbers(at.size());
  SMD_RETURN_IF_ERROR(trial.read_numbers(snapshot, at, numbers));
  for (size_t i = 0; i < numbers.size(); ++i) shown.stored[i].second = numbers[i];
  return shown;
}

Status compute_statistics(Shown& shown) {
  if (!shown.value || shown.value->dtype == DType::string) return {};
  ReductionRequest request{.count_special = true};
  for (std::string_view name : kStatistics) {
    SMD_TRY(const Reduction reduction, parse_reduction(name));
    request.reductions.add(reduction);
  }
  return reduce(shown.value->view(), request, shown.statistics);
}

// The computed ones in the order in which people think of them.
std::vector<std::pair<std::string_view, double>> computed(const Shown& shown) {
  std::vector<std::pair<std::string_view, double>> out;
  for (std::string_view name : kStatistics) {
    const auto reduction = parse_reduction(name);
    const Number* number = reduction.ok() ? shown.statistics.find(*reduction) : nullptr;
    if (number != nullptr) out.emplace_back(name, number->to_double());
  }
  return out;
}

class Show final : public Invocation {
 public:
  explicit Show(CLI::App& options) {
    add_run(options, run_);
    options.add_option("TENSOR", tensor_, "the name of the tensor")->required()->type_name("");
    options.add_option("--step", step_, "which step; the last that has it")->type_name("STEP");
    add_mode(options, mode_);
    add_worker(options, worker_);
    options.add_flag("--stats", stats_, "only statistics");
    options.add_flag("--values", values_, "only the elements");
    options.add_option("--limit", limit_, "abbreviate tensors of more elements")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto trial, open_trial(run_));
    const auto snapshot = trial->snapshot();
    SMD_TRY(const uint32_t tensor, tensor_argument(*snapshot, tensor_));
    SMD_TRY(const Mode mode, mode_argument(*snapshot, mode_));
    SMD_TRY(const auto worker, worker_argument(*snapshot, worker_));
    SMD_TRY(const Place place, find(*snapshot, tensor, mode, worker));
    SMD_TRY(Shown shown, read(*trial, *snapshot, tensor, place));
    const bool both = stats_ == values_;
    if (both || stats_) SMD_RETURN_IF_ERROR(compute_statistics(shown));
    if (context.json) {
      write_json(context.terminal.out, json_of(*trial, shown, both || stats_, both || values_));
      return ExitCode::well;
    }
    print_head(context.terminal, shown);
    if (both || stats_) print_statistics(context.terminal, shown);
    if ((both || values_) && shown.value) {
      const int width = context.terminal.out_width();
      constexpr int kPlain = 80;
      context.terminal.out << array_text(*shown.value,
                                         {.limit = limit_, .width = width > 0 ? width : kPlain})
                           << '\n';
    } else if (values_ && !shown.value) {
      context.terminal.out << "The value was not saved at this step.\n";
    }
    return ExitCode::well;
  }

 private:
  Result<Place> find(const Snapshot& snapshot, uint32_t tensor, Mode mode,
                     std::optional<uint32_t> worker) const {
    const std::string who = worker_.empty() ? "" : fmt::format(" by worker '{}'", worker_);
    if (!step_) {
      if (const auto place = last_place(snapshot, tensor, mode, worker)) return *place;
      return Error{ErrorCode::not_found, fmt::format("The tensor '{}' was not saved in mode {}{}.",
                                                     tensor_, name_of(mode), who)};
    }
    SMD_TRY(const StepRow* row, step_argument(snapshot, mode, *step_));
    if (const auto part = find_part(snapshot, *row, tensor, worker)) return Place{row, *part};
    const auto steps = snapshot.steps_of(tensor, mode, true);
    return Error{ErrorCode::not_found,
                 fmt::format("The tensor '{}' was not saved at step {}{}, but at {} from {} to {}.",
                             tensor_, *step_, who, counted(steps.size(), "step"),
                             steps.empty() ? 0 : steps.front(), steps.empty() ? 0 : steps.back())};
  }

  Json json_of(const Trial& trial, const Shown& shown, bool stats, bool values) const {
    Json document = {{"run", trial.name()},
                     {"tensor", tensor_},
                     {"step", shown.step.step},
                     {"mode", name_of(shown.step.mode)},
                     {"mode_step", shown.step.mode_step},
                     {"worker", shown.worker},
                     {"dtype", nullptr},
                     {"shape", nullptr},
                     {"elements", nullptr},
                     {"bytes", nullptr},
                     {"wall_secs", nullptr}};
    if (shown.saved_shape != nullptr) document["shape"] = shown.saved_shape->shape;
    if (shown.value) {
      document["dtype"] = name_of(shown.value->dtype);
      document["shape"] = shown.value->shape;
      document["elements"] = shown.elements();
      document["bytes"] = shown.bytes();
      document["wall_secs"] = json_number(shown.value->wall_secs);
    }
    if (stats) {
      Json stored = Json::object();
      for (const auto& [name, number] : shown.stored) stored[name] = json_number(number);
      document["stored"] = std::move(stored);
      document["computed"] = nullptr;
      if (shown.value && shown.value->dtype != DType::string) {
        Json numbers = Json::object();
        for (const auto& [name, number] : computed(shown)) {
          numbers[std::string(name)] = json_number(number);
        }
        numbers["nan"] = shown.statistics.nan_count;
        numbers["inf"] = shown.statistics.inf_count;
        numbers["zero"] = shown.statistics.zero_count;
        document["computed"] = std::move(numbers);
      }
    }
    if (values) {
      document["values"] =
          shown.value && shown.elements() <= limit_ ? array_json(*shown.value) : Json(nullptr);
    }
    return document;
  }

  void print_head(const Terminal& terminal, const Shown& shown) const {
    std::string line = terminal.paint(Style::strong, printable(tensor_));
    line += fmt::format("  step {}", shown.step.step);
    if (shown.step.mode != Mode::global) {
      line += fmt::format(" ({} {})", name_of(shown.step.mode), shown.step.mode_step);
    }
    line += fmt::format("  {}", printable(shown.worker));
    if (shown.value) {
      line += fmt::format("  {}  {}", type_text(shown.value->dtype, shown.value->shape),
                          human_bytes(shown.bytes()));
      if (shown.value->wall_secs > 0) line += "  " + utc_time(shown.value->wall_secs);
    } else if (shown.saved_shape != nullptr) {
      line += "  shape " + shape_text(shown.saved_shape->shape);
    }
    terminal.out << line << '\n';
  }

  static void print_statistics(const Terminal& terminal, const Shown& shown) {
    const auto numbers = [](const auto& list) {
      std::vector<std::string> words;
      for (const auto& [name, number] : list) {
        words.push_back(fmt::format("{} {}", printable(name), number_text(number)));
      }
      return fmt::format("{}", fmt::join(words, "  "));
    };
    if (!shown.stored.empty()) terminal.out << "stored    " << numbers(shown.stored) << '\n';
    if (!shown.value || shown.value->dtype == DType::string) return;
    if (const auto list = computed(shown); !list.empty()) {
      terminal.out << "computed  " << numbers(list) << '\n';
    }
    const std::string counts = fmt::format(
        "{}  NaN {}  inf {}  zero {}", counted(static_cast<uint64_t>(shown.elements()), "element"),
        shown.statistics.nan_count, shown.statistics.inf_count, shown.statistics.zero_count);
    const bool bad = shown.statistics.nan_count + shown.statistics.inf_count > 0;
    terminal.out << "counted   " << (bad ? terminal.paint(Style::bad, counts) : counts) << '\n';
  }

  std::string run_;
  std::string tensor_;
  std::optional<Step> step_;
  std::string mode_;
  std::string worker_;
  bool stats_ = false;
  bool values_ = false;
  int64_t limit_ = 100;
};

constexpr Example kExamples[] = {
    {"show runs/first fc/weight", "the newest values and their statistics"},
    {"show runs/first fc/weight --step 100 --mode train --stats", "statistics of one step"},
    {"show runs/first fc/weight --values --limit 10000", "more of the elements"},
    {"show --json runs/first loss", "the same for a program"},
};

}  // namespace

extern const Command show;
const Command show = {
    .name = "show",
    .summary = "Shows a tensor at one step: its statistics and its elements",
    .details =
        "Without --step the last step that has the tensor is shown, without --worker the first "
        "worker that saved it there. Statistics are those that were stored, and, if the value was "
        "saved, those computed from it now. Tensors of more elements than --limit (100) are "
        "abbreviated; with --json they are null then.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Show>(options);
    },
};

}  // namespace smd::cli::command_list
