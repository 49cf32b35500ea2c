#include "smd/config/hook_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <utility>

#include "smd/base/json.h"
#include "smd/base/nearest.h"
#include "smd/config/json_value.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 2> kWorkerNames = {"one", "all"};
constexpr std::array<std::string_view, 3> kDurabilityNames = {"off", "step", "close"};
constexpr std::array<std::string_view, 2> kOverflowNames = {"block", "drop"};
constexpr std::array<std::string_view, 2> kLayoutNames = {"original", "packed"};

// The adapters of frameworks read FrameworkParameters.
constexpr std::array<std::string_view, 7> kTopKeys = {"LocalPath",
                                                      "HookParameters",
                                                      "CollectionConfigurations",
                                                      "FrameworkParameters",
                                                      "S3OutputPath",
                                                      "S3Path",
                                                      "rules"};
constexpr std::array<std::string_view, 2> kCollectionKeys = {"CollectionName",
                                                             "CollectionParameters"};
constexpr std::array<std::string_view, 5> kSaveKeys = {"save_interval", "save_steps", "start_step",
                                                       "end_step", "when_nan"};
constexpr std::array<std::string_view, 20> kHookKeys = {"save_all",
                                                        "include_regex",
                                                        "exclude_regex",
                                                        "include_collections",
                                                        "include_workers",
                                                        "export_tensorboard",
                                                        "tensorboard_dir",
                                                        "dry_run",
                                                        "reductions",
                                                        "save_raw_tensor",
                                                        "save_shape",
                                                        "durable",
                                                        "layout",
                                                        "overflow",
                                                        "max_overhead",
                                                        "max_interval",
                                                        "flight_recorder",
                                                        "flight_recorder_raw",
                                                        "flight_recorder_bytes",
                                                        "first_bad_tensor"};
constexpr std::array<std::string_view, 6> kParameterKeys = {"include_regex",   "exclude_regex",
                                                            "save_histogram",  "reductions",
                                                            "save_raw_tensor", "save_shape"};

template <size_t N>
Result<size_t> parse_choice(std::string_view text, std::string_view key,
                            const std::array<std::string_view, N>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), trimmed(text));
  if (found != choices.end()) return static_cast<size_t>(found - choices.begin());
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is '{}'; expected one of {}.{}", key, text, fmt::join(choices, ", "),
                           did_you_mean(text, choices))};
}

std::string mode_prefix(Mode mode) {
  std::string prefix(name_of(mode));
  for (char& c : prefix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return prefix + '.';
}

// The member `key` of a parameter object together with its full name for messages.
class Parameters final {
 public:
  // Borrows `json`, which is an object or null and outlives this.
  Parameters(const Json* json, std::string place) : json_(json), place_(std::move(place)) {}

  const Json* find(std::string_view key) const {
    return json_ == nullptr ? nullptr : json_member(*json_, key);
  }
  std::string path(std::string_view key) const { return fmt::format("{}.{}", place_, key); }

  // Each sets `out` only if the key is there.
  template <typename T>
  Status read(std::string_view key, T& out,
              Result<T> (*convert)(const Json&, std::string_view)) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    SMD_TRY(out, convert(*value, path(key)));
    return {};
  }
  template <typename T>
  Status read(std::string_view key, std::optional<T>& out,
              Result<T> (*convert)(const Json&, std::string_view)) const {
    const Json* value = find(key);
    if (value == nullptr) return {};
    SMD_TRY(out, convert(*value, path(key)));
    return {};
  }

  // Warns about every key that is neither one of `own` nor a save key, with or without a mode.
  void report_unknown(std::span<const std::string_view> own,
                      std::vector<std::string>& warnings) const {
    if (json_ == nullptr) return;
    std::vector<std::string> storage;
    for (Mode mode : kModes) {
      for (std::string_view key : kSaveKeys)
        storage.push_back(mode_prefix(mode) + std::string(key));
    }
    std::vector<std::string_view> known(own.begin(), own.end());
    known.insert(known.end(), kSaveKeys.begin(), kSaveKeys.end());
    known.insert(known.end(), storage.begin(), storage.end());
    for (const auto& [key, value] : json_->items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      warnings.push_back(fmt::format("Ignoring the unknown key '{}' in {}.{}", key, place_,
                                     did_you_mean(key, known)));
    }
  }

 private:
  const Json* json_;
  std::string place_;
};

// The save keys that somebody gave, for one mode or for all.
struct SaveKeys {
  std::optional<int64_t> save_interval;
  std::optional<std::vector<Step>> save_steps;
  std::optional<Step> start_step;
  std::optional<Step> end_step;
  std::optional<std::vector<std::string>> when_nan;

  bool empty() const {
    return !save_interval && !save_steps && !start_step && !end_step && !when_nan;
  }
};

struct SaveLevels {
  SaveKeys all;
  std::array<SaveKeys, kModes.size()> modes;

  bool empty() const {
    return all.empty() &&
           std::all_of(modes.begin(), modes.end(), [](const SaveKeys& m) { return m.empty(); });
  }
};

// Checked here, where the key is known, and not only when the finished config is.
Status check_at_least(const std::optional<int64_t>& value, int64_t least, const std::string& path) {
  if (!value || *value >= least) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is {}; it must be at least {}.", path, *value, least)};
}

Result<SaveKeys> read_save_keys(const Parameters& parameters, const std::string& prefix) {
  SaveKeys keys;
  auto key = [&prefix](std::string_view name) { return prefix + std::string(name); };
  SMD_RETURN_IF_ERROR(parameters.read(key("save_interval"), keys.save_interval, json_int));
  SMD_RETURN_IF_ERROR(parameters.read(key("save_steps"), keys.save_steps, json_int_list));
  SMD_RETURN_IF_ERROR(parameters.read(key("start_step"), keys.start_step, json_int));
  SMD_RETURN_IF_ERROR(parameters.read(key("end_step"), keys.end_step, json_int));
  SMD_RETURN_IF_ERROR(parameters.read(key("when_nan"), keys.when_nan, json_list));
  SMD_RETURN_IF_ERROR(check_at_least(keys.save_interval, 1, parameters.path(key("save_interval"))));
  SMD_RETURN_IF_ERROR(check_at_least(keys.start_step, 0, parameters.path(key("start_step"))));
  SMD_RETURN_IF_ERROR(check_at_least(keys.end_step, 0, parameters.path(key("end_step"))));
  if (keys.save_steps) {
    for (Step step : *keys.save_steps) {
      SMD_RETURN_IF_ERROR(
          check_at_least(step, 0, "A step in " + parameters.path(key("save_steps"))));
    }
    if (keys.save_steps->empty()) keys.save_steps.reset();
  }
  if (keys.when_nan && keys.when_nan->empty()) keys.when_nan.reset();
  return keys;
}

Result<SaveLevels> read_save_levels(const Parameters& parameters) {
  SaveLevels levels;
  SMD_TRY(levels.all, read_save_keys(parameters, ""));
  for (Mode mode : kModes) {
    SMD_TRY(levels.modes[index_of(mode)], read_save_keys(parameters, mode_prefix(mode)));
  }
  return levels;
}

// The complete config for `levels`, highest precedence first.
Result<SaveConfig> resolve(std::initializer_list<const SaveLevels*> levels,
                           const HookDefaults& defaults) {
  SaveConfig::Modes modes;
  for (Mode mode : kModes) {
    SaveConfigMode& out = modes[index_of(mode)].emplace();
    out.save_interval = defaults.save_interval;
    // From the weakest to the strongest, each overwriting what it knows.
    for (auto level = std::rbegin(levels); level != std::rend(levels); ++level) {
      for (const SaveKeys* keys : {&(*level)->all, &(*level)->modes[index_of(mode)]}) {
        if (keys->save_interval) out.save_interval = *keys->save_interval;
        if (keys->save_steps) out.save_steps = *keys->save_steps;
        if (keys->start_step) out.start_step = *keys->start_step;
        if (keys->end_step) out.end_step = *keys->end_step;
        if (keys->when_nan) out.when_nan = *keys->when_nan;
      }
    }
  }
  return SaveConfig::from_modes(std::move(modes));
}

Result<std::optional<ReductionConfig>> read_reductions(const Parameters& parameters) {
  std::optional<std::vector<std::string>> names;
  std::optional<bool> raw;
  std::optional<bool> shape;
  SMD_RETURN_IF_ERROR(parameters.read("reductions", names, json_list));
  SMD_RETURN_IF_ERROR(parameters.read("save_raw_tensor", raw, json_bool));
  SMD_RETURN_IF_ERROR(parameters.read("save_shape", shape, json_bool));
  std::optional<ReductionConfig> config;
  if (!names && !raw && !shape) return config;
  config.emplace();
  SMD_TRY(const auto reductions, parse_reductions(names.value_or(std::vector<std::string>()),
                                                  parameters.path("reductions")));
  for (Reduction reduction : reductions) config->add(reduction);
  config->set_save_raw_tensor(raw.value_or(reductions.empty()));
  config->set_save_shape(shape.value_or(false));
  return config;
}

template <typename T>
void append_new(std::vector<T>& list, std::vector<T> items) {
  for (T& item : items) {
    if (std::find(list.begin(), list.end(), item) == list.end()) list.push_back(std::move(item));
  }
}

Result<IncludeWorkers> json_include_workers(const Json& value, std::string_view key) {
  SMD_TRY(const std::string text, json_string(value, key));
  return parse_include_workers(text, key);
}

Result<Durability> json_durability(const Json& value, std::string_view key) {
  SMD_TRY(const std::string text, json_string(value, key));
  return parse_durability(text, key);
}

Result<Overflow> json_overflow(const Json& value, std::string_view key) {
  SMD_TRY(const std::string text, json_string(value, key));
  return parse_overflow(text, key);
}

Result<RunLayout> json_run_layout(const Json& value, std::string_view key) {
  SMD_TRY(const std::string text, json_string(value, key));
  return parse_run_layout(text, key);
}

Status read_hook_parameters(const Parameters& parameters, HookConfig& config) {
  SMD_RETURN_IF_ERROR(parameters.read("save_all", config.save_all, json_bool));
  SMD_RETURN_IF_ERROR(parameters.read("dry_run", config.dry_run, json_bool));
  SMD_RETURN_IF_ERROR(parameters.read("export_tensorboard", config.export_tensorboard, json_bool));
  SMD_RETURN_IF_ERROR(parameters.read("tensorboard_dir", config.tensorboard_dir, json_string));
  if (config.tensorboard_dir && config.tensorboard_dir->empty()) config.tensorboard_dir.reset();
  SMD_RETURN_IF_ERROR(
      parameters.read("include_workers", config.include_workers, json_include_workers));
  SMD_RETURN_IF_ERROR(parameters.read("durable", config.durable, json_durability));
  SMD_RETURN_IF_ERROR(parameters.read("layout", config.layout, json_run_layout));
  SMD_RETURN_IF_ERROR(parameters.read("overflow", config.overflow, json_overflow));
  SMD_RETURN_IF_ERROR(parameters.read("max_overhead", config.max_overhead, json_number));
  SMD_RETURN_IF_ERROR(parameters.read("max_interval", config.max_interval, json_int));
  SMD_RETURN_IF_ERROR(parameters.read("flight_recorder", config.flight_recorder, json_int));
  SMD_RETURN_IF_ERROR(
      parameters.read("flight_recorder_raw", config.flight_recorder_raw, json_bool));
  SMD_RETURN_IF_ERROR(
      parameters.read("flight_recorder_bytes", config.flight_recorder_bytes, json_int));
  SMD_RETURN_IF_ERROR(parameters.read("first_bad_tensor", config.first_bad_tensor, json_bool));
  SMD_RETURN_IF_ERROR(config.check_limits());
  SMD_RETURN_IF_ERROR(parameters.read("include_regex", config.include_regex, json_list));
  SMD_RETURN_IF_ERROR(parameters.read("exclude_regex", config.exclude_regex, json_list));
  std::vector<std::string> names;
  SMD_RETURN_IF_ERROR(parameters.read("include_collections", names, json_list));
  append_new(config.include_collections, std::move(names));
  SMD_TRY(config.reduction_config, read_reductions(parameters));
  return {};
}

// Parses the whole document; one object per call of parse_hook_config.
class Parser final {
 public:
  explicit Parser(const HookDefaults& defaults) : defaults_(defaults) {}

  Result<ParsedHookConfig> parse(const Json& json) {
    SMD_RETURN_IF_ERROR(check_keys(json, "The hook configuration", {}, UnknownKeys::ignore));
    warn_unknown(json, "the hook configuration", kTopKeys);
    HookConfig& config = parsed_.config;
    config.out_dir = kDefaultOutDir;
    if (const Json* path = json_member(json, "LocalPath")) {
      SMD_TRY(config.out_dir, json_string(*path, "LocalPath"));
      if (config.out_dir.empty()) {
        return Error{ErrorCode::invalid_argument, "LocalPath is empty; expected a directory."};
      }
    }
    const Json* object = json_member(json, "HookParameters");
    if (object != nullptr) {
      SMD_RETURN_IF_ERROR(check_keys(*object, "HookParameters", {}, UnknownKeys::ignore));
    }
    const Parameters parameters(object, "HookParameters");
    parameters.report_unknown(kHookKeys, parsed_.warnings);
    SMD_RETURN_IF_ERROR(read_hook_parameters(parameters, config));
    SMD_TRY(hook_levels_, read_save_levels(parameters));
    if (!hook_levels_.empty()) {
      SMD_TRY(config.save_config, resolve({&hook_levels_}, defaults_));
    }
    if (const Json* list = json_member(json, "CollectionConfigurations")) {
      SMD_RETURN_IF_ERROR(read_collections(*list));
    }
    return std::move(parsed_);
  }

 private:
  void warn_unknown(const Json& object, std::string_view place,
                    std::span<const std::string_view> known) {
    for (const auto& [key, value] : object.items()) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      parsed_.warnings.push_back(fmt::format("Ignoring the unknown key '{}' in {}.{}", key, place,
                                             did_you_mean(key, known)));
    }
  }

  Status read_collections(const Json& list) {
    if (!list.is_array()) {
      return Error{ErrorCode::invalid_argument,
                   "CollectionConfigurations is not a list; expected a list of objects with "
                   "CollectionName and CollectionParameters."};
    }
    for (size_t i = 0; i < list.size(); ++i) {
      SMD_RETURN_IF_ERROR(read_collection(list[i], fmt::format("CollectionConfigurations[{}]", i)));
    }
    return {};
  }

  Status read_collection(const Json& entry, const std::string& place) {
    SMD_RETURN_IF_ERROR(check_keys(entry, place, {}, UnknownKeys::ignore));
    warn_unknown(entry, place, kCollectionKeys);
    const Json* name = json_member(entry, "CollectionName");
    if (name == nullptr) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} has no CollectionName; every entry needs one.", place)};
    }
    CollectionConfig read;
    SMD_TRY(read.name, json_string(*name, place + ".CollectionName"));
    if (read.name.empty()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}.CollectionName is empty; expected a name.", place)};
    }
    const std::string inner = place + ".CollectionParameters";
    const Json* object = json_member(entry, "CollectionParameters");
    if (object != nullptr) {
      SMD_RETURN_IF_ERROR(check_keys(*object, inner, {}, UnknownKeys::ignore));
    }
    const Parameters parameters(object, inner);
    parameters.report_unknown(kParameterKeys, parsed_.warnings);
    SMD_RETURN_IF_ERROR(parameters.read("include_regex", read.include_regex, json_list));
    SMD_RETURN_IF_ERROR(parameters.read("exclude_regex", read.exclude_regex, json_list));
    SMD_RETURN_IF_ERROR(parameters.read("save_histogram", read.save_histogram, json_bool));
    SMD_TRY(read.reduction_config, read_reductions(parameters));
    SMD_TRY(const SaveLevels levels, read_save_levels(parameters));
    SMD_TRY(read.save_config, resolve({&levels, &hook_levels_}, defaults_));
    read.save_config_is_own = !levels.empty();
    add(std::move(read));
    return {};
  }

  void add(CollectionConfig read) {
    HookConfig& config = parsed_.config;
    append_new(config.include_collections, {read.name});
    const auto earlier = std::find_if(config.collections.begin(), config.collections.end(),
                                      [&](const auto& c) { return c.name == read.name; });
    if (earlier == config.collections.end()) {
      config.collections.push_back(std::move(read));
      return;
    }
    parsed_.warnings.push_back(
        fmt::format("CollectionConfigurations lists '{}' more than once; the last save "
                    "configuration counts and the patterns are joined.",
                    read.name));
    append_new(earlier->include_regex, std::move(read.include_regex));
    append_new(earlier->exclude_regex, std::move(read.exclude_regex));
    earlier->save_config = std::move(read.save_config);
    earlier->save_config_is_own = read.save_config_is_own;
    if (read.save_histogram) earlier->save_histogram = read.save_histogram;
    if (read.reduction_config) earlier->reduction_config = std::move(read.reduction_config);
  }

  const HookDefaults& defaults_;
  SaveLevels hook_levels_;
  ParsedHookConfig parsed_;
};

}  // namespace

std::string_view name_of(IncludeWorkers workers) {
  return kWorkerNames[static_cast<size_t>(workers)];
}

std::string_view name_of(Durability durability) {
  return kDurabilityNames[static_cast<size_t>(durability)];
}

Result<IncludeWorkers> parse_include_workers(std::string_view text, std::string_view key) {
  SMD_TRY(const size_t index, parse_choice(text, key, kWorkerNames));
  return static_cast<IncludeWorkers>(index);
}

Result<Durability> parse_durability(std::string_view text, std::string_view key) {
  SMD_TRY(const size_t index, parse_choice(text, key, kDurabilityNames));
  return static_cast<Durability>(index);
}

std::string_view name_of(Overflow overflow) {
  return kOverflowNames[static_cast<size_t>(overflow)];
}

Result<Overflow> parse_overflow(std::string_view text, std::string_view key) {
  SMD_TRY(const size_t index, parse_choice(text, key, kOverflowNames));
  return static_cast<Overflow>(index);
}

std::string_view name_of(RunLayout layout) { return kLayoutNames[static_cast<size_t>(layout)]; }

Result<RunLayout> parse_run_layout(std::string_view text, std::string_view key) {
  SMD_TRY(const size_t index, parse_choice(text, key, kLayoutNames));
  return static_cast<RunLayout>(index);
}

Status HookConfig::check_limits() const {
  if (max_overhead && !(*max_overhead > 0 && *max_overhead <= 1)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("max_overhead is {}; it must be a share of the training time above 0 "
                             "and at most 1, such as 0.01.",
                             *max_overhead)};
  }
  SMD_RETURN_IF_ERROR(check_at_least(max_interval, 1, "max_interval"));
  SMD_RETURN_IF_ERROR(check_at_least(flight_recorder, 0, "flight_recorder"));
  return check_at_least(flight_recorder_bytes, 1, "flight_recorder_bytes");
}

Result<ParsedHookConfig> parse_hook_config(const Json& json, const HookDefaults& defaults) {
  return Parser(defaults).parse(json);
}

}  // namespace smd
