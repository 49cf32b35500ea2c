#include "smd/config/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "smd/base/nearest.h"
#include "smd/config/hook_config.h"
#include "smd/config/json_value.h"

namespace smd {
namespace {

constexpr std::string_view kPrefix = "SMDEBUG_";
constexpr std::array<std::string_view, 12> kFlags = {"y", "yes", "t", "true",  "on",  "1",
                                                     "n", "no",  "f", "false", "off", "0"};

struct Launcher {
  std::string_view rank;
  std::string_view size;
};
constexpr std::array<Launcher, 4> kLaunchers = {{
    {"RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE"},
    {"SLURM_PROCID", "SLURM_NTASKS"},
}};

template <typename T>
std::optional<T> parse(std::string_view text) {
  text = trimmed(text);
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Error wrong(std::string_view name, std::string_view value, std::string_view expected) {
  return {ErrorCode::invalid_argument,
          fmt::format("The environment variable {} is '{}'; expected {}.", name, value, expected)};
}

}  // namespace

Environment Environment::of_process() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

std::optional<std::string_view> Environment::find(std::string_view name) const {
  const auto found = variables_.find(name);
  if (found == variables_.end()) return std::nullopt;
  return found->second;
}

std::string Environment::path_or(std::string_view name, std::string_view fallback) const {
  const std::string_view path = find(name).value_or("");
  return std::string(path.empty() ? fallback : path);
}

std::string Environment::config_file_path() const {
  return path_or("SMDEBUG_CONFIG_FILE_PATH", "/opt/ml/input/config/debughookconfig.json");
}

std::string Environment::tensorboard_config_file_path() const {
  return path_or("TENSORBOARD_CONFIG_FILE_PATH",
                 "/opt/ml/input/config/tensorboardoutputconfig.json");
}

std::string Environment::checkpoint_config_file_path() const {
  return path_or("CHECKPOINT_CONFIG_FILE_PATH", "/opt/ml/input/config/checkpointconfig.json");
}

std::string Environment::metrics_directory() const {
  return path_or("SAGEMAKER_METRICS_DIRECTORY", ".");
}

std::string Environment::expand_home(std::string_view path) const {
  const std::string_view home = find("HOME").value_or("");
  const bool begins_at_home = path == "~" || path.starts_with("~/");
  if (!begins_at_home || home.empty()) return std::string(path);
  return std::string(home).append(path.substr(1));
}

Result<bool> Environment::flag(std::string_view name, bool fallback) const {
  const auto value = find(name);
  if (!value) return fallback;
  std::string text(trimmed(*value));
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto found = std::find(kFlags.begin(), kFlags.end(), text);
  if (found != kFlags.end()) return found - kFlags.begin() < std::ssize(kFlags) / 2;
  Error error = wrong(name, *value, "one of y, yes, t, true, on, 1, n, no, f, false, off, 0");
  error.message += did_you_mean(text, kFlags);
  return error;
}

Result<bool> Environment::use_smdebug() const { return flag("USE_SMDEBUG", true); }

Result<bool> Environment::strict() const { return flag("SMDEBUG_STRICT", false); }

Result<RunLayout> Environment::layout() const {
  const auto text = find("SMDEBUG_LAYOUT");
  if (!text || text->empty()) return RunLayout::original;
  return parse_run_layout(*text, "SMDEBUG_LAYOUT");
}

Result<std::optional<ProcessRank>> Environment::process_rank() const {
  for (const Launcher& launcher : kLaunchers) {
    const auto rank_text = find(launcher.rank);
    const auto size_text = find(launcher.size);
    if (!rank_text || !size_text) continue;
    const auto rank = parse<int>(*rank_text);
    const auto size = parse<int>(*size_text);
    if (!size || *size < 1) return wrong(launcher.size, *size_text, "the number of processes");
    if (!rank || *rank < 0 || *rank >= *size) {
      return wrong(launcher.rank, *rank_text,
                   fmt::format("a number below {}, which is {}", launcher.size, *size));
    }
    return std::optional(ProcessRank{*rank, *size});
  }
  return std::optional<ProcessRank>();
}

std::optional<std::pair<std::string, std::string_view>> Environment::find_spelled(
    std::string_view name) const {
  if (!name.starts_with(kPrefix)) {
    std::string own = fmt::format("{}{}", kPrefix, name);
    if (const auto value = find(own)) return std::pair(std::move(own), *value);
  }
  const auto value = find(name);
  return value ? std::optional(std::pair(std::string(name), *value)) : std::nullopt;
}

Result<double> Environment::number(std::string_view name, double fallback) const {
  const auto found = find_spelled(name);
  if (!found) return fallback;
  const auto parsed = parse<double>(found->second);
  if (!parsed || !std::isfinite(*parsed) || *parsed < 0) {
    return wrong(found->first, found->second, "a number that is not negative");
  }
  return *parsed;
}

Result<int64_t> Environment::whole_number(std::string_view name, int64_t fallback) const {
  const auto found = find_spelled(name);
  if (!found) return fallback;
  const auto parsed = parse<int64_t>(found->second);
  if (!parsed || *parsed < 0) {
    return wrong(found->first, found->second, "a whole number that is not negative");
  }
  return *parsed;
}

std::string Environment::spool_directory() const {
  const std::string cache =
      path_or("XDG_CACHE_HOME", path_or("HOME", path_or("TMPDIR", "/tmp")) + "/.cache");
  return path_or("SMDEBUG_SPOOL_DIR", cache + "/smdebug/spool");
}

Result<double> Environment::spool_drain_secs() const {
  return number("SMDEBUG_SPOOL_DRAIN_SECS", 60);
}

Result<int64_t> Environment::spool_max_bytes() const {
  return whole_number("SMDEBUG_SPOOL_MAX_BYTES", int64_t{4} << 30);
}

Result<double> Environment::segment_secs() const { return number("SMDEBUG_SEGMENT_SECS", 10); }

Result<double> Environment::training_end_delay_refresh_secs() const {
  return number("TRAINING_END_DELAY_REFRESH", 1);
}

Result<int64_t> Environment::incomplete_step_wait_window() const {
  return whole_number("INCOMPLETE_STEP_WAIT_WINDOW", 1000);
}

Result<int64_t> Environment::missing_event_file_retry_limit() const {
  return whole_number("MISSING_EVENT_FILE_RETRY_LIMIT", 100);
}

}  // namespace smd
