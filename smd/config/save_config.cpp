#include "smd/config/save_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "smd/base/json.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 5> kSaveConfigKeys = {"save_interval", "save_steps",
                                                             "start_step", "end_step", "when_nan"};

Status check_step(std::string_view name, Step step) {
  if (step >= 0) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is {}; steps are counted from 0.", name, step)};
}

std::string shown(int64_t value) { return fmt::format("{}", value); }
std::string shown(const std::optional<Step>& value) { return value ? shown(*value) : "None"; }
template <typename T>
std::string shown(const std::vector<T>& value) {
  return fmt::format("[{}]", fmt::join(value, ", "));
}

}  // namespace

Status SaveConfigMode::check() const {
  if (save_interval < 1) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("save_interval is {}; it must be at least 1.", save_interval)};
  }
  SMD_RETURN_IF_ERROR(check_step("start_step", start_step));
  if (end_step) SMD_RETURN_IF_ERROR(check_step("end_step", *end_step));
  for (Step step : save_steps) SMD_RETURN_IF_ERROR(check_step("A step in save_steps", step));
  for (const std::string& name : when_nan) {
    if (name.empty()) {
      return Error{ErrorCode::invalid_argument,
                   "when_nan holds an empty name; expected names of tensors."};
    }
  }
  return {};
}

Status SaveConfigMode::normalize() {
  std::sort(save_steps.begin(), save_steps.end());
  save_steps.erase(std::unique(save_steps.begin(), save_steps.end()), save_steps.end());
  std::vector<std::string> names;
  for (std::string& name : when_nan) {
    if (std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  }
  when_nan = std::move(names);
  return check();
}

bool SaveConfigMode::should_save(Step mode_step) const {
  if (mode_step >= start_step && (!end_step || mode_step < *end_step) &&
      mode_step % save_interval == 0) {
    return true;
  }
  return std::binary_search(save_steps.begin(), save_steps.end(), mode_step);
}

std::optional<Step> SaveConfigMode::next_save(Step from) const {
  std::optional<Step> next;
  const Step begin = std::max(from, start_step);
  const Step past = begin % save_interval;
  const Step missing = past == 0 ? 0 : save_interval - past;
  if (begin <= std::numeric_limits<Step>::max() - missing) {
    const Step multiple = begin + missing;
    if (!end_step || multiple < *end_step) next = multiple;
  }
  const auto listed = std::lower_bound(save_steps.begin(), save_steps.end(), from);
  if (listed != save_steps.end() && (!next || *listed < *next)) next = *listed;
  return next;
}

Json SaveConfigMode::to_json() const {
  Json json = {{"save_interval", save_interval},
               {"save_steps", save_steps},
               {"start_step", start_step},
               {"end_step", end_step ? Json(*end_step) : Json(nullptr)}};
  if (!when_nan.empty()) json["when_nan"] = when_nan;
  return json;
}

Result<SaveConfigMode> SaveConfigMode::from_json(const Json& json, std::string_view key,
                                                 UnknownKeys unknown) {
  SMD_RETURN_IF_ERROR(check_keys(json, key, kSaveConfigKeys, unknown));
  auto path = [key](std::string_view name) { return fmt::format("{}.{}", key, name); };
  SaveConfigMode mode;
  if (const Json* value = json_member(json, "save_interval")) {
    SMD_TRY(mode.save_interval, json_int(*value, path("save_interval")));
  }
  if (const Json* value = json_member(json, "save_steps")) {
    SMD_TRY(mode.save_steps, json_int_list(*value, path("save_steps")));
  }
  if (const Json* value = json_member(json, "start_step")) {
    SMD_TRY(mode.start_step, json_int(*value, path("start_step")));
  }
  if (const Json* value = json_member(json, "end_step")) {
    SMD_TRY(mode.end_step, json_int(*value, path("end_step")));
  }
  if (const Json* value = json_member(json, "when_nan")) {
    SMD_TRY(mode.when_nan, json_list(*value, path("when_nan")));
  }
  if (Status status = mode.normalize(); !status.ok()) {
    return Error{ErrorCode::invalid_argument, fmt::format("{}: {}", key, status.error().message)};
  }
  return mode;
}

Result<SaveConfig> SaveConfig::broadcast(SaveConfigMode all) {
  SMD_RETURN_IF_ERROR(all.normalize());
  SaveConfig config;
  config.modes_.fill({.config = std::move(all)});
  return config;
}

Result<SaveConfig> SaveConfig::from_modes(Modes modes) {
  SaveConfig config;
  for (Mode mode : kModes) {
    SMD_RETURN_IF_ERROR(config.set_mode(mode, std::move(modes[index_of(mode)])));
  }
  return config;
}

Status SaveConfig::set_mode(Mode mode, std::optional<SaveConfigMode> config) {
  if (config) {
    if (Status status = config->normalize(); !status.ok()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{}: {}", name_of(mode), status.error().message)};
    }
  }
  Own& own = modes_[index_of(mode)];
  own.inherits = !config.has_value();
  if (config) own.config = std::move(*config);
  return {};
}

void SaveConfig::merge_defaults(const SaveConfig& defaults) {
  for (Mode m : kModes) {
    Own& own = modes_[index_of(m)];
    if (!own.inherits) continue;
    const SaveConfigMode* filling = defaults.mode(m);
    own = {.config = filling != nullptr ? *filling : SaveConfigMode{}};
  }
}

bool SaveConfig::complete() const {
  return std::all_of(modes_.begin(), modes_.end(), [](const Own& own) { return !own.inherits; });
}

bool SaveConfig::should_save(Mode m, Step mode_step) const {
  const SaveConfigMode* own = mode(m);
  return own != nullptr ? own->should_save(mode_step) : SaveConfigMode{}.should_save(mode_step);
}

std::optional<Step> SaveConfig::next_save(Mode m, Step from) const {
  const SaveConfigMode* own = mode(m);
  return own != nullptr ? own->next_save(from) : SaveConfigMode{}.next_save(from);
}

template <typename T>
Result<T> SaveConfig::same_in_all(T SaveConfigMode::*field, std::string_view name) const {
  const SaveConfigMode& first = modes_.front().config;
  const bool same = std::all_of(modes_.begin(), modes_.end(), [&](const Own& own) {
    return !own.inherits && own.config.*field == first.*field;
  });
  if (same) return first.*field;
  std::vector<std::string> values;
  for (Mode m : kModes) {
    const SaveConfigMode* own = mode(m);
    values.push_back(fmt::format("{} {}", name_of(m), own ? shown((*own).*field) : "inherits"));
  }
  return Error{ErrorCode::invalid_argument,
               fmt::format("{} is not the same in all modes ({}); ask for one mode instead.", name,
                           fmt::join(values, ", "))};
}

template <typename T>
Status SaveConfig::set_in_all(T SaveConfigMode::*field, T value) {
  auto changed = modes_;
  for (Own& own : changed) {
    if (own.inherits) own = {};
    own.config.*field = value;
    SMD_RETURN_IF_ERROR(own.config.normalize());
  }
  modes_ = std::move(changed);
  return {};
}

Result<int64_t> SaveConfig::save_interval() const {
  return same_in_all(&SaveConfigMode::save_interval, "save_interval");
}
Result<Step> SaveConfig::start_step() const {
  return same_in_all(&SaveConfigMode::start_step, "start_step");
}
Result<std::optional<Step>> SaveConfig::end_step() const {
  return same_in_all(&SaveConfigMode::end_step, "end_step");
}
Result<std::vector<Step>> SaveConfig::save_steps() const {
  return same_in_all(&SaveConfigMode::save_steps, "save_steps");
}
Result<std::vector<std::string>> SaveConfig::when_nan() const {
  return same_in_all(&SaveConfigMode::when_nan, "when_nan");
}

Status SaveConfig::set_save_interval(int64_t interval) {
  return set_in_all(&SaveConfigMode::save_interval, interval);
}
Status SaveConfig::set_start_step(Step step) {
  return set_in_all(&SaveConfigMode::start_step, step);
}
Status SaveConfig::set_end_step(std::optional<Step> step) {
  return set_in_all(&SaveConfigMode::end_step, step);
}
Status SaveConfig::set_save_steps(std::vector<Step> steps) {
  return set_in_all(&SaveConfigMode::save_steps, std::move(steps));
}
Status SaveConfig::set_when_nan(std::vector<std::string> names) {
  return set_in_all(&SaveConfigMode::when_nan, std::move(names));
}

Json SaveConfig::to_json() const {
  Json json = Json::object();
  for (Mode m : kModes) {
    const SaveConfigMode* own = mode(m);
    json[std::string(name_of(m))] = own ? own->to_json() : Json(nullptr);
  }
  return json;
}

Result<SaveConfig> SaveConfig::from_json(const Json& json, std::string_view key,
                                         UnknownKeys unknown) {
  SMD_RETURN_IF_ERROR(check_keys(json, key, {}, UnknownKeys::ignore));
  Modes modes;
  bool has_parameters = false;
  bool has_modes = false;
  for (const auto& [name, value] : json.items()) {
    const auto mode = parse_mode(name);
    if (mode.ok()) {
      has_modes = true;
      if (value.is_null()) continue;
      SMD_TRY(modes[index_of(*mode)],
              SaveConfigMode::from_json(value, fmt::format("{}.{}", key, name), unknown));
    } else if (std::find(kSaveConfigKeys.begin(), kSaveConfigKeys.end(), name) !=
               kSaveConfigKeys.end()) {
      has_parameters = true;
    } else if (unknown == UnknownKeys::refuse) {
      std::vector<std::string_view> known(kSaveConfigKeys.begin(), kSaveConfigKeys.end());
      for (Mode m : kModes) known.push_back(name_of(m));
      return Error{ErrorCode::invalid_argument, unknown_key_message(name, key, known)};
    }
  }
  if (has_modes && has_parameters) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} mixes modes and parameters; give either one object per mode or "
                             "parameters that hold for every mode.",
                             key)};
  }
  if (!has_parameters) return from_modes(std::move(modes));
  SMD_TRY(SaveConfigMode all, SaveConfigMode::from_json(json, key, unknown));
  return broadcast(std::move(all));
}

}  // namespace smd
