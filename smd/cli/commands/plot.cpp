#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "smd/cli/chart.h"
#include "smd/cli/command.h"
#include "smd/cli/json_output.h"
#include "smd/cli/output_file.h"
#include "smd/cli/run_argument.h"
#include "smd/cli/selection.h"
#include "smd/cli/step_text.h"
#include "smd/cli/units.h"
#include "smd/picture/svg_chart.h"
#include "smd/picture/text_width.h"

namespace smd::cli::command_list {
namespace {

constexpr std::string_view kDefaultReduction = "mean";

struct Plotted {
  std::string tensor;
  std::string reduction;  // empty: the value itself
  Series numbers;

  std::string label() const { return number_label(tensor, reduction); }
};

// Steps at which numbers are not what a chart can show, as in "3 at step 5, 7, …".
std::string listed(const std::vector<Step>& steps) {
  constexpr size_t kMostSteps = 5;
  const std::vector<Step> shown(
      steps.begin(), steps.begin() + static_cast<int64_t>(std::min(steps.size(), kMostSteps)));
  return fmt::format("{} at step {}{}", steps.size(), fmt::join(shown, ", "),
                     steps.size() > kMostSteps ? ", …" : "");
}

class Plot final : public Invocation {
 public:
  explicit Plot(CLI::App& options) {
    add_run(options, run_);
    options.add_option("TENSOR", tensors_, "the names of the tensors")->required()->type_name("");
    options
        .add_option("--reduction", reduction_,
                    "which reduction; single numbers need none, others get mean")
        ->type_name("NAME");
    add_mode(options, mode_);
    add_worker(options, worker_);
    options.add_option("--width", width_, "columns; as many as the terminal has")
        ->type_name("N")
        ->check(CLI::Range(20, 1000));
    options.add_option("--height", height_, "rows of the plot")
        ->type_name("N")
        ->check(CLI::Range(3, 1000));
    options.add_flag("--log", log_, "logarithmic scale");
    options.add_flag("--ascii", ascii_, "use no characters beyond ASCII");
    options.add_option("--svg", svg_, "write a picture to this file instead")->type_name("FILE");
    options.add_option("--title", title_, "of the picture; the names of the tensors")
        ->type_name("TEXT");
    options.add_option("--threshold", threshold_, "draw a horizontal line into the picture")
        ->type_name("NUMBER");
    options.add_option("--mark", mark_, "draw a vertical line into the picture")->type_name("STEP");
  }

  Result<ExitCode> run(const Context& context) override {
    SMD_TRY(const auto trial, open_trial(run_));
    const auto snapshot = trial->snapshot();
    SMD_TRY(const Mode mode, mode_argument(*snapshot, mode_));
    SMD_TRY(const auto worker, worker_argument(*snapshot, worker_));
    std::vector<Plotted> plotted;
    for (const std::string& name : tensors_) {
      SMD_TRY(const uint32_t tensor, tensor_argument(*snapshot, name));
      Plotted one{.tensor = name, .reduction = reduction_};
      if (reduction_.empty() &&
          !is_single(*trial, *snapshot, latest_value(*snapshot, tensor, mode, worker))) {
        one.reduction = kDefaultReduction;
      }
      SMD_TRY(one.numbers, trial->series(name, {.reduction = one.reduction,
                                                .mode = mode,
                                                .worker = worker_,
                                                .incomplete = true}));
      if (one.numbers.steps.empty()) return nothing(*snapshot, tensor, one, mode);
      plotted.push_back(std::move(one));
    }
    if (!svg_.empty()) SMD_RETURN_IF_ERROR(write_output_file(svg_, picture(mode, plotted)));
    if (context.json) {
      write_json(context.terminal.out, json_of(*trial, mode, plotted));
    } else if (svg_.empty()) {
      print(context.terminal, mode, plotted);
    }
    return ExitCode::well;
  }

 private:
  static bool is_single(const Trial& trial, const Snapshot& snapshot,
                        const std::optional<Location>& at) {
    if (!at) return false;
    const auto about = trial.describe(snapshot, *at);
    return about.ok() && about->dtype != DType::string &&
           std::all_of(about->shape.begin(), about->shape.end(),
                       [](int64_t extent) { return extent == 1; });
  }

  static Error nothing(const Snapshot& snapshot, uint32_t tensor, const Plotted& wanted,
                       Mode mode) {
    std::vector<std::string> stored;
    for (size_t i = 0; i < snapshot.row_count(); ++i) {
      snapshot.for_each_part(snapshot.row(i), [&](uint32_t, const Part& part) {
        for (const Layout::Entry& entry : snapshot.layout_of(part).entries_of(tensor)) {
          const Slot slot = Slot::from_id(entry.slot);
          std::string name = slot.is_value() ? "value" : snapshot.slot_name(slot);
          if (std::find(stored.begin(), stored.end(), name) == stored.end()) {
            stored.push_back(std::move(name));
          }
        }
      });
    }
    const std::string what = wanted.reduction.empty() ? "value" : wanted.reduction;
    return {ErrorCode::not_found,
            fmt::format("There is no {} of '{}' to draw in mode {}; stored of it: {}.", what,
                        wanted.tensor, name_of(mode),
                        stored.empty() ? "nothing" : fmt::format("{}", fmt::join(stored, ", ")))};
  }

  static Json json_of(const Trial& trial, Mode mode, const std::vector<Plotted>& plotted) {
    Json list = Json::array();
    for (const Plotted& one : plotted) {
      Json values = Json::array();
      for (double value : one.numbers.values) values.push_back(json_number(value));
      list.push_back({{"tensor", one.tensor},
                      {"reduction", one.reduction.empty() ? Json(nullptr) : Json(one.reduction)},
                      {"steps", one.numbers.steps},
                      {"values", std::move(values)}});
    }
    return {{"run", trial.name()}, {"mode", name_of(mode)}, {"series", std::move(list)}};
  }

  static std::vector<PlotLine> series_of(const std::vector<Plotted>& plotted) {
    std::vector<PlotLine> series;
    for (const Plotted& one : plotted) {
      PlotLine drawn{.name = one.label()};
      for (size_t i = 0; i < one.numbers.steps.size(); ++i) {
        drawn.points.emplace_back(static_cast<double>(one.numbers.steps[i]), one.numbers.values[i]);
      }
      series.push_back(std::move(drawn));
    }
    return series;
  }

  std::string picture(Mode mode, const std::vector<Plotted>& plotted) const {
    std::string title = title_;
    for (const Plotted& one : plotted) {
      if (title_.empty()) title += (title.empty() ? "" : ", ") + one.label();
    }
    return draw_svg(series_of(plotted), {.title = title,
                                         .x_label = step_axis(mode),
                                         .threshold = threshold_,
                                         .mark = mark_,
                                         .mark_label = mark_ ? fmt::format("step {}", *mark_) : "",
                                         .log = log_});
  }

  void print(const Terminal& terminal, Mode mode, const std::vector<Plotted>& plotted) const {
    const std::vector<PlotLine> series = series_of(plotted);
    if (plotted.size() == 1) {
      const Series& numbers = plotted[0].numbers;
      terminal.out << terminal.paint(Style::strong, printable(plotted[0].label()))
                   << fmt::format("  {}, last {}\n", counted(numbers.steps.size(), "step"),
                                  number_text(numbers.values.back()));
    }
    const ChartOptions options{.width = width_.value_or(terminal.width),
                               .height = height_,
                               .ascii = ascii_,
                               .color = terminal.color,
                               .log = log_,
                               .x_label = step_axis(mode)};
    terminal.out << draw_chart(series, options);
    for (const Plotted& one : plotted) note_special(terminal, one);
  }

  void note_special(const Terminal& terminal, const Plotted& one) const {
    std::vector<Step> nan;
    std::vector<Step> infinite;
    std::vector<Step> not_positive;
    for (size_t i = 0; i < one.numbers.steps.size(); ++i) {
      const double value = one.numbers.values[i];
      if (std::isnan(value)) nan.push_back(one.numbers.steps[i]);
      if (std::isinf(value)) infinite.push_back(one.numbers.steps[i]);
      if (log_ && value <= 0) not_positive.push_back(one.numbers.steps[i]);
    }
    const auto note = [&](const std::vector<Step>& steps, std::string_view what) {
      if (steps.empty()) return;
      terminal.out << terminal.paint(Style::bad, fmt::format("{}: {} {}", printable(one.label()),
                                                             what, listed(steps)))
                   << '\n';
    };
    note(nan, "NaN");
    note(infinite, "infinite");
    note(not_positive, "not positive, so not drawn,");
  }

  std::string run_;
  std::vector<std::string> tensors_;
  std::string reduction_;
  std::string mode_;
  std::string worker_;
  std::optional<int> width_;
  int height_ = 12;
  bool log_ = false;
  bool ascii_ = false;
  std::string svg_;
  std::string title_;
  std::optional<double> threshold_;
  std::optional<Step> mark_;
};

constexpr Example kExamples[] = {
    {"plot runs/first loss", "one curve"},
    {"plot runs/first loss accuracy --mode eval", "two curves over the steps of a mode"},
    {"plot runs/first fc/weight --reduction abs_max --log", "a reduction, on a logarithmic scale"},
    {"plot runs/first loss --svg loss.svg", "a picture for a document"},
    {"plot --json runs/first loss", "the numbers for a program"},
};

}  // namespace

extern const Command plot;
const Command plot = {
    .name = "plot",
    .summary = "Draws numbers of a run over its steps, in the terminal or as a picture",
    .details =
        "Tensors that are a single number are drawn as they are, of others the mean, unless "
        "--reduction says which. A reduction that was not stored is computed where the value was "
        "saved. Several tensors share the axes and are told apart by colour, or by letters where "
        "there is none. NaN and infinity are marked and counted.",
    .examples = kExamples,
    .prepare = [](CLI::App& options) -> std::unique_ptr<Invocation> {
      return std::make_unique<Plot>(options);
    },
};

}  // namespace smd::cli::command_list
