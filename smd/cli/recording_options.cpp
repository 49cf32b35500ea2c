#include "smd/cli/recording_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "smd/base/nearest.h"
#include "smd/cli/options.h"
#include "smd/cli/selection.h"
#include "smd/reduce/reduction.h"

namespace smd::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 16> kCollections = {
    "all",       "average_shap", "biases",  "feature_importance",
    "full_shap", "gradients",    "inputs",  "hyperparameters",
    "labels",    "losses",       "metrics", "optimizer_variables",
    "outputs",   "predictions",  "trees",   "weights"};
constexpr std::array<std::string_view, 2> kWorkers = {"one", "all"};
constexpr std::array<std::string_view, 2> kLayouts = {"packed", "original"};

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    const size_t comma = text.find(',');
    words.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

std::optional<int64_t> parse_positive(std::string_view digits) {
  int64_t number = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number);
  if (error != std::errc() || end != last || number < 1) return std::nullopt;
  return number;
}

// NAME or NAME:N
Status check_saved(std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view name = word.substr(0, colon);
  if (std::find(kCollections.begin(), kCollections.end(), name) == kCollections.end()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("--save does not know '{}'; there are {}.{}", name,
                             fmt::join(kCollections, ", "), did_you_mean(name, kCollections))};
  }
  if (colon == std::string_view::npos) return {};
  const std::string_view digits = word.substr(colon + 1);
  if (!parse_positive(digits)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("--save {}:{} has no whole number of steps of at least 1.", name, digits)};
  }
  return {};
}

// The nearest of the scripts that lie where this one was looked for.
std::string nearest_script(const fs::path& script) {
  std::error_code error;
  const fs::path folder = script.has_parent_path() ? script.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".py") names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return did_you_mean(script.filename().string(), names);
}

}  // namespace

std::string at_least_one(const std::string& text) {
  return parse_positive(text) ? "" : fmt::format("'{}' is no whole number of at least 1.", text);
}

RecordingOptions::RecordingOptions(CLI::App& app) {
  app.add_option("--config", config_, "a JSON configuration that says all of the following")
      ->type_name("FILE");
  app.add_option("--out", out_, "the directory of the run; by default runs/<name of the script>")
      ->type_name("DIR");
  app.add_option("--save", save_,
                 "collections, each with :N for every N-th step of its own; by default "
                 "weights,biases,gradients,outputs")
      ->type_name("NAME[:N],...");
  add_list(app, "--include", include_, "REGEX",
           "also tensors in whose name this is found; may be repeated");
  app.add_option("--reductions", reductions_,
                 "statistics of what is saved; by default min, max, mean, std, sum, l1, l2, "
                 "abs_min, abs_max, abs_mean")
      ->type_name("NAME,...");
  app.add_flag("--raw", raw_, "save all values, too");
  app.add_option("--interval", interval_, "save every N-th step; the loss is saved at every step")
      ->type_name("N")
      ->check(at_least_one);
  add_choice(app, "--workers", workers_, kWorkers, "which processes of the job record");
  add_choice(app, "--layout", layout_, kLayouts, "the files of the run; packed is the default");
  app.add_option("PROGRAM", program_, "a script, -m, python or a launcher such as torchrun")
      ->required()
      ->type_name("");
  app.add_option("ARGS", arguments_, "its arguments")->type_name("");
}

Status RecordingOptions::check() const {
  std::error_code error;
  if (!config_.empty()) {
    const bool more = !save_.empty() || !include_.empty() || !reductions_.empty() || raw_ ||
                      interval_ != 0 || !workers_.empty() || !layout_.empty();
    if (more) {
      return Error{ErrorCode::invalid_argument,
                   "--config says what is saved; of the other options only --out goes with it."};
    }
    if (!fs::is_regular_file(config_, error)) {
      return Error{ErrorCode::not_found, fmt::format("--config is not a file: {}", config_)};
    }
  }
  if (!save_.empty()) {
    for (const std::string_view word : split(save_)) SMD_RETURN_IF_ERROR(check_saved(word));
  }
  if (!reductions_.empty()) {
    for (const std::string_view word : split(reductions_)) {
      SMD_RETURN_IF_ERROR(parse_reduction(word));
    }
  }
  const fs::path script = program_;
  if (script.extension() == ".py" && !fs::is_regular_file(script, error)) {
    return Error{ErrorCode::not_found,
                 fmt::format("There is no script to run.{} It was looked for here: {}",
                             nearest_script(script), program_)};
  }
  return {};
}

}  // namespace smd::cli
