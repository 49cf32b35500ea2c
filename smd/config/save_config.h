#pragma once

// When to save: at which steps of each mode. SaveConfigMode is plain data for one mode, SaveConfig
// holds one per mode and keeps them valid. Values; one thread at a time.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"
#include "smd/config/json_value.h"
#include "smd/types/mode.h"
#include "smd/types/step.h"

namespace smd {

inline constexpr int64_t kDefaultSaveInterval = 500;

// A mode step s is saved when it is one of save_steps, or when start_step ≤ s < end_step and s is a
// multiple of save_interval. save_steps ignore start and end; the phase is absolute, not relative
// to start_step.
struct SaveConfigMode {
  int64_t save_interval = kDefaultSaveInterval;
  Step start_step = 0;
  std::optional<Step> end_step = {};  // exclusive; nullopt: no end
  std::vector<Step> save_steps = {};  // sorted, no duplicates: see normalize()
  std::vector<std::string> when_nan =
      {};  // a NaN in one of these tensors makes its step a saved one

  // Error unless the interval is at least 1 and every step at least 0.
  Status check() const;
  // Sorts save_steps, drops duplicates there and in when_nan, then checks.
  Status normalize();

  // Both need normalized values.
  bool should_save(Step mode_step) const;
  // The smallest saved mode step ≥ from; nullopt: never again. Costs no walk over steps.
  std::optional<Step> next_save(Step from) const;

  // {"save_interval", "save_steps", "start_step", "end_step"}, and "when_nan" unless empty.
  Json to_json() const;
  // Absent keys keep their default. `key` names the object in error messages.
  static Result<SaveConfigMode> from_json(const Json& json, std::string_view key,
                                          UnknownKeys unknown = UnknownKeys::refuse);

  bool operator==(const SaveConfigMode&) const = default;
};

class SaveConfig final {
 public:
  using Modes = std::array<std::optional<SaveConfigMode>, kModes.size()>;

  // The default in every mode.
  SaveConfig() = default;
  // The same in every mode.
  static Result<SaveConfig> broadcast(SaveConfigMode all);
  // One entry per mode, at index_of(mode); nullopt means "inherit".
  static Result<SaveConfig> from_modes(Modes modes);

  // nullptr: the mode inherits.
  const SaveConfigMode* mode(Mode mode) const {
    const Own& own = modes_[index_of(mode)];
    return own.inherits ? nullptr : &own.config;
  }
  Status set_mode(Mode mode, std::optional<SaveConfigMode> config);
  // To be changed in place, kept normalized by whoever does; nullptr: the mode inherits. The
  // pointer stays usable as long as this object lives, whatever the mode is set to.
  SaveConfigMode* mutable_mode(Mode mode) {
    Own& own = modes_[index_of(mode)];
    return own.inherits ? nullptr : &own.config;
  }

  // Fills the modes that inherit: from `defaults`, or with default values where that inherits too.
  void merge_defaults(const SaveConfig& defaults);
  // True if no mode inherits.
  bool complete() const;

  // A mode that inherits behaves like a default SaveConfigMode.
  bool should_save(Mode mode, Step mode_step) const;
  std::optional<Step> next_save(Mode mode, Step from) const;

  // The value that all modes have in common; an error that lists the values when they differ.
  Result<int64_t> save_interval() const;
  Result<Step> start_step() const;
  Result<std::optional<Step>> end_step() const;
  Result<std::vector<Step>> save_steps() const;
  Result<std::vector<std::string>> when_nan() const;

  // Set the value in all modes; a mode that inherited gets default values for the others. On an
  // error nothing changes.
  Status set_save_interval(int64_t interval);
  Status set_start_step(Step step);
  Status set_end_step(std::optional<Step> step);
  Status set_save_steps(std::vector<Step> steps);
  Status set_when_nan(std::vector<std::string> names);

  // {"TRAIN": {…}, "EVAL": {…}, "PREDICT": {…}, "GLOBAL": {…}}; null = inherit.
  Json to_json() const;
  // From a map of modes, or from an object of parameters that hold for every mode. Mixing both is
  // an error. Modes that are missing or null inherit.
  static Result<SaveConfig> from_json(const Json& json, std::string_view key = "save_config",
                                      UnknownKeys unknown = UnknownKeys::refuse);

  bool operator==(const SaveConfig&) const = default;

 private:
  template <typename T>
  Result<T> same_in_all(T SaveConfigMode::*field, std::string_view name) const;
  template <typename T>
  Status set_in_all(T SaveConfigMode::*field, T value);

  struct Own {
    SaveConfigMode config = {};
    bool inherits = false;  // `config` is then what it was before, and means nothing

    bool operator==(const Own& other) const {
      return inherits == other.inherits && (inherits || config == other.config);
    }
  };

  std::array<Own, kModes.size()> modes_;
};

}  // namespace smd
