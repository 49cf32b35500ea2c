#include "smd/cli/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/base/nearest.h"

namespace smd::cli {
namespace {

constexpr size_t kMostNearest = 3;
constexpr size_t kMostListed = 5;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

// Names that are close to what was typed, by letters or because they hold it.
std::vector<std::string_view> close_names(std::string_view typed,
                                          const std::vector<std::string>& all) {
  std::vector<std::string_view> out;
  std::vector<std::string_view> names(all.begin(), all.end());
  std::sort(names.begin(), names.end());
  for (size_t i = 0; i < kMostNearest; ++i) {
    const std::string_view found = nearest(typed, names);
    if (found.empty()) break;
    out.push_back(found);
    names.erase(std::find(names.begin(), names.end(), found));
  }
  for (std::string_view name : names) {
    if (out.size() >= kMostListed) break;
    if (!typed.empty() && name.find(typed) != std::string_view::npos) out.push_back(name);
  }
  return out;
}

}  // namespace

CLI::Option* add_run(CLI::App& app, std::string& run) {
  return app.add_option("RUN", run, "the run to look at")->required()->type_name("");
}

CLI::Option* add_mode(CLI::App& app, std::string& mode) {
  return app.add_option("--mode", mode, "only steps of this mode, counted by themselves")
      ->type_name("train|eval|predict|global");
}

CLI::Option* add_worker(CLI::App& app, std::string& worker) {
  return app.add_option("--worker", worker, "only what this worker saved")->type_name("NAME");
}

CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<std::string>& values,
                      const std::string& value_name, const std::string& about) {
  return app.add_option(name, values, about)->allow_extra_args(false)->type_name(value_name);
}

Result<Mode> mode_argument(const Snapshot& snapshot, std::string_view text) {
  if (text.empty()) return Mode::global;
  SMD_TRY(const Mode mode, parse_mode(text));
  const auto modes = snapshot.modes();
  if (mode == Mode::global || modes.empty()) return mode;
  if (std::find(modes.begin(), modes.end(), mode) != modes.end()) return mode;
  std::vector<std::string_view> names;
  for (Mode seen : modes) names.push_back(name_of(seen));
  return wrong(fmt::format("The run has no steps of mode {}, only of {}.", name_of(mode),
                           fmt::join(names, " and ")));
}

Result<std::optional<uint32_t>> worker_argument(const Snapshot& snapshot, std::string_view text) {
  if (text.empty()) return std::optional<uint32_t>();
  if (const auto id = snapshot.names().workers.find(text)) return std::optional(*id);
  const auto& names = snapshot.names().workers.all();
  return wrong(fmt::format("There is no worker '{}'.{}", text, did_you_mean(text, names)));
}

Result<uint32_t> tensor_argument(const Snapshot& snapshot, std::string_view name) {
  if (const auto id = snapshot.find_tensor(name)) return *id;
  const auto close = close_names(name, snapshot.names().tensors.all());
  if (close.empty()) {
    return wrong(
        fmt::format("There is no tensor '{}' among the {} of the run; 'smdebug ls' lists "
                    "them.",
                    name, snapshot.names().tensors.size()));
  }
  return wrong(
      fmt::format("There is no tensor '{}'. Did you mean '{}'?", name, fmt::join(close, "' or '")));
}

Result<const StepRow*> step_argument(const Snapshot& snapshot, Mode mode, Step step) {
  if (const StepRow* row = snapshot.find_row(mode, step)) return row;
  const auto steps = snapshot.steps(mode, true);
  const std::string what =
      mode == Mode::global ? "Step" : fmt::format("{} step", std::string(name_of(mode)));
  if (steps.empty()) return wrong(fmt::format("{} {} was not saved, and no other.", what, step));
  const auto after = std::lower_bound(steps.begin(), steps.end(), step);
  // Of two that are equally far the earlier one; differences of any two steps fit into 64 bits
  // without a sign.
  const auto distance = [&](Step other) {
    const auto a = static_cast<uint64_t>(step);
    const auto b = static_cast<uint64_t>(other);
    return step > other ? a - b : b - a;
  };
  auto best = after == steps.end() ? std::prev(after) : after;
  if (after != steps.begin() && distance(*std::prev(after)) <= distance(*best)) {
    best = std::prev(after);
  }
  return wrong(fmt::format("{} {} was not saved; the nearest is {}.", what, step, *best));
}

Result<TensorFilter> TensorFilter::create(const Snapshot& snapshot, const TensorChoice& choice) {
  TensorFilter filter;
  for (const std::string& text : choice.patterns) {
    SMD_TRY(Pattern pattern, Pattern::compile(text));
    filter.patterns_.push_back(std::move(pattern));
  }
  if (!choice.collection.empty()) {
    SMD_TRY(filter.collection_, snapshot.collections().get(choice.collection));
  }
  return filter;
}

bool TensorFilter::selects(std::string_view name) const {
  if (collection_ && !collection_->holds(name)) return false;
  return patterns_.empty() ||
         std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const Pattern& pattern) { return pattern.found_in(name); });
}

std::string number_label(std::string_view tensor, std::string_view reduction) {
  return reduction.empty() ? std::string(tensor) : fmt::format("{} ({})", tensor, reduction);
}

std::optional<Location> latest_value(const Snapshot& snapshot, uint32_t tensor, Mode mode,
                                     std::optional<uint32_t> worker) {
  for (size_t i = snapshot.row_count(); i-- > 0;) {
    const StepRow& row = snapshot.row(i);
    if (mode != Mode::global && row.info.mode != mode) continue;
    if (const auto at = snapshot.find(row, tensor, Slot::value(), worker)) return at;
  }
  return std::nullopt;
}

}  // namespace smd::cli
