#include "smd/trial/diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/progress.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/table.h"
#include "smd/cli/units.h"
#include "smd/picture/text_width.h"

namespace smd::cli::command_list {
namespace {

bool has_numbers(const Difference& difference) {
  return difference.kind == DifferenceKind::value || difference.kind == DifferenceKind::reduction;
}

bool has_elements(const Difference& difference) {
  return has_numbers(difference) || difference.kind == DifferenceKind::strings;
}

std::string what_of(const Difference& difference) {
  return difference.reduction.empty() ? std::string(name_of(difference.kind))
                                      : difference.reduction;
}

std::string a_of(const Difference& difference) {
  return has_numbers(difference) ? number_text(difference.elements.worst_a) : difference.a;
}

std::string b_of(const Difference& difference) {
  return has_numbers(difference) ? number_text(difference.elements.worst_b) : difference.b;
}

std::string step_text(const StepInfo& step) {
  if (step.mode == Mode::global) return fmt::format("{}", step.step);
  return fmt::format("{} ({} {})", step.step, name_of(step.mode), step.mode_step);
}

Json json_of(const StepInfo& step) {
  return {{"step", step.step}, {"mode", name_of(step.mode)}, {"mode_step", step.mode_step}};
}

Json json_of(const Difference& difference) {
  Json document = {{"tensor", difference.tensor},
                   {"worker", difference.worker},
                   {"step", difference.step.step},
                   {"mode", name_of(difference.step.mode)},
                   {"mode_step", difference.step.mode_step},
                   {"step_in_b", difference.step_in_b},
                   {"what", what_of(difference)},
                   {"elements", difference.elements.elements},
                   {"differing", difference.elements.differing},
                   {"max_absolute", json_number(difference.elements.max_absolute)},
                   {"max_relative", json_number(difference.elements.max_relative)},
                   {"a", difference.a},
                   {"b", difference.b},
                   {"occurrences", difference.occurrences}};
  if (has_numbers(difference)) {
    document["a"] = json_number(difference.elements.worst_a);
    document["b"] = json_number(difference.elements.worst_b);
  }
  return document;
}

Json json_of(const OnlyThere& only) {
  Json steps = Json::array();
  for (const StepInfo& step : only.steps) steps.push_back(json_of(step));
  Json records = Json::array();
  for (const OnlyThere::Records& one : only.records) {
    records.push_back(
        {{"tensor", one.tensor}, {"first_step", one.first.step}, {"count", one.count}});
  }
  return {{"tensors", only.tensors},
          {"steps", std::move(steps)},
          {"workers", only.workers},
          {"records", std::move(records)}};
}

Json json_of(const Diff& diff) {
  Json table = Json::array();
  for (const Difference& difference : diff.table) table.push_back(json_of(difference));
  return {{"a", diff.name_a},
          {"b", diff.name_b},
          {"equal", diff.equal()},
          {"first", diff.first ? json_of(*diff.first) : Json(nullptr)},
          {"worst", std::move(table)},
          {"differing_tensors", diff.differing_tensors},
          {"only_in_a", json_of(diff.only_in_a)},
          {"only_in_b", json_of(diff.only_in_b)},
          {"compared", diff.compared.to_json()}};
}

// "2 tensors: a, b".
std::string listed(std::vector<std::string> names, std::string_view noun) {
  constexpr size_t kMostNames = 5;
  const size_t count = names.size();
  if (count > kMostNames) {
    names.resize(kMostNames);
    names.emplace_back("…");
  }
  return printable(fmt::format("{}: {}", counted(count, noun), fmt::join(names, ", ")));
}

void print_only(std::ostream& out, std::string_view run, const OnlyThere& only) {
  const auto line = [&](const std::vector<std::string>& names, std::string_view noun) {
    if (!names.empty()) out << fmt::format("only in {}  {}\n", run, listed(names, noun));
  };
  line(only.tensors, "tensor");
  std::vector<std::string> steps;
  for (const StepInfo& step : only.steps) steps.push_back(step_text(step));
  line(steps, "step");
  line(only.workers, "worker");
  std::vector<std::string> records;
  for (const OnlyThere::Records& one : only.records) {
    records.push_back(fmt::format("{} ({} from step {})", one.tensor,
                                  counted(static_cast<uint64_t>(one.count), "record"),
                                  one.first.step));
  }
  line(records, "tensor in part");
}

std::string first_text(const Difference& first) {
  std::string text =
      fmt::format("step {}, {} of '{}'", step_text(first.step), what_of(first), first.tensor);
  if (first.kind == DifferenceKind::value && first.elements.elements > 1) {
    text += fmt::format(", {} of {} elements, the worst", first.elements.differing,
                        first.elements.elements);
  }
  return printable(fmt::format("{}: {} in A, {} in B", text, a_of(first), b_of(first)));
}

void print(const Terminal& terminal, const Diff& diff) {
  std::ostream& out = terminal.out;
  out << "A          " << printable(diff.name_a) << "\nB          " << printable(diff.name_b)
      << '\n';
  const auto& compared = diff.compared;
  out << fmt::format("compared   {}, {}, {} ({}), {}\n",
                     counted(static_cast<uint64_t>(compared.steps), "step"),
                     counted(static_cast<uint64_t>(compared.tensors), "tensor"),
                     counted(static_cast<uint64_t>(compared.values), "value"),
                     counted(static_cast<uint64_t>(compared.elements), "element"),
                     counted(static_cast<uint64_t>(compared.reductions), "reduction"));
  print_only(out, "A", diff.only_in_a);
  print_only(out, "B", diff.only_in_b);
  if (diff.equal()) {
    out << terminal.paint(Style::good, "the runs are equal") << '\n';
    return;
  }
  if (!diff.first) {
    out << terminal.paint(Style::bad, "what both runs hold is equal") << '\n';
    return;
  }
  out << "first      " << terminal.paint(Style::bad, first_text(*diff.first)) << "\n\n";
  Table table({{"tensor"},
               {"step"},
               {"what"},
               {"differing", Align::right},
               {"max abs", Align::right},
               {"max rel", Align::right},
               {"in A"},
               {"in B"},
               {"times", Align::right}});
  for (const Difference& one : diff.table) {
    table.add_row({one.tensor, step_text(one.step), what_of(one),
                   has_elements(one)
                       ? fmt::format("{}/{}", one.elements.differing, one.elements.elements)
                       : "",
                   has_numbers(one) ? number_text(one.elements.max_absolute) : "",
                   has_numbers(one) ? number_text(one.elements.max_relative) : "", a_of(one),
                   b_of(one), fmt::format("{}", one.occurrences)});
  }
  out << table.text(terminal);
  const auto shown = static_cast<int64_t>(diff.table.size());
  if (diff.differing_tensors > shown) {
    out << fmt::format("… and {}\n", counted(static_cast<uint64_t>(diff.differing_tensors - shown),
                                             "more tensor"));
  }
}

class DiffCommand final : public Invocation {
 public:
  explicit DiffCommand(CLI::App& options) {
    options.add_option("A", a_, "a run")->required()->type_name("");
    options.add_option("B", b_, "the run to compare it with")->required()->type_name("");
    add_list(options, "--regex", options_.patterns, "PATTERN",
             "only tensors in whose names this is found; may be repeated");
    add_mode(options, mode_);
    options.add_option("--absolute", options_.tolerance.absolute, "numbers so close are equal")
        ->type_name("X")
        ->check(CLI::NonNegativeNumber);
    options
        .add_option("--relative", options_.tolerance.relative,
                    "numbers so close, as a part of the larger one, are equal")
        ->type_name("X")
        ->check(CLI::NonNegativeNumber);
    options.add_option("--top", options_.top, "how many tensors the table has")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto a, open_trial(a_));
    SMD_TRY(const auto b, open_trial(b_));
    if (!mode_.empty()) {
      SMD_TRY(options_.mode, parse_mode(mode_));
    }
    Result<Diff> diff = Diff{};
    {
      Progress progress(context.terminal, context.clock, "diff", ProgressUnit::steps);
      options_.progress = [&](int64_t done, int64_t total) {
        progress.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
        return true;
      };
      diff = diff_trials(*a, *b, options_);
    }
    if (!diff.ok()) return diff.error();
    if (context.json) {
      write_json(context.terminal.out, json_of(*diff));
    } else {
      print(context.terminal, *diff);
    }
    return diff->equal() ? ExitCode::well : ExitCode::found;
  }

 private:
  std::string a_;
  std::string b_;
  std::string mode_;
  DiffOptions options_;
};

constexpr Example kExamples[] = {
    {"diff runs/first runs/second", "what differs, and where first"},
    {"diff runs/first runs/second --relative 1e-5 --regex weight", "weights, within a tolerance"},
    {"diff --json runs/first runs/second", "the same for a program"},
};

}  // namespace

extern const Command diff;
const Command diff = {
    .name = "diff",
    .summary = "Compares two runs: the first difference, the worst ones, what one of them lacks",
    .details =
        "Steps belong together if mode and mode step are the same, workers by their names. Two "
        "NaNs are equal. Numbers are equal within a tolerance if they fit one of the two. The "
        "exit code is 1 if the runs differ.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<DiffCommand>(options);
    },
};

}  // namespace smd::cli::command_list
