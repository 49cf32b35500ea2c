#pragma once

// Everything a hook can be told: by its constructor, or by the JSON file of a training job.
// Plain values; parsing is a pure function. Patterns are checked where they are compiled.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"
#include "smd/config/reduction_config.h"
#include "smd/config/save_config.h"
#include "smd/types/durability.h"
#include "smd/types/overflow.h"
#include "smd/types/run_layout.h"

namespace smd {

// Where a training container has them.
inline constexpr std::string_view kDefaultOutDir = "/opt/ml/output/tensors";
inline constexpr std::string_view kDefaultTensorboardDir = "/opt/ml/output/tensorboard";

// Which processes of a distributed job write.
enum class IncludeWorkers { one, all };

std::string_view name_of(IncludeWorkers workers);
std::string_view name_of(Durability durability);
std::string_view name_of(Overflow overflow);
std::string_view name_of(RunLayout layout);

// From the names above; the error names the nearest choice. `key` names the value in messages.
Result<IncludeWorkers> parse_include_workers(std::string_view text,
                                             std::string_view key = "include_workers");
Result<Durability> parse_durability(std::string_view text, std::string_view key = "durable");
Result<Overflow> parse_overflow(std::string_view text, std::string_view key = "overflow");
Result<RunLayout> parse_run_layout(std::string_view text, std::string_view key = "layout");

struct CollectionConfig {
  std::string name = {};
  std::vector<std::string> include_regex = {};
  std::vector<std::string> exclude_regex = {};
  std::optional<bool> save_histogram = {};
  std::optional<SaveConfig> save_config = {};            // nullopt: the hook's
  std::optional<ReductionConfig> reduction_config = {};  // nullopt: the hook's
  // False: save_config only repeats what holds for the hook, nobody asked for these steps.
  bool save_config_is_own = true;

  bool operator==(const CollectionConfig&) const = default;
};

struct HookConfig {
  std::string out_dir = {};
  bool export_tensorboard = false;
  std::optional<std::string> tensorboard_dir = {};
  bool dry_run = false;
  bool save_all = false;
  std::vector<std::string> include_regex = {};
  std::vector<std::string> exclude_regex = {};
  std::vector<std::string> include_collections = {};  // in order of mention, no duplicates
  IncludeWorkers include_workers = IncludeWorkers::one;
  Durability durable = Durability::off;
  Overflow overflow = Overflow::block;
  std::optional<RunLayout> layout = {};                  // nullopt: what the environment says
  std::optional<SaveConfig> save_config = {};            // nullopt: the default of the framework
  std::optional<ReductionConfig> reduction_config = {};  // nullopt: the values, no reductions
  std::vector<CollectionConfig> collections = {};

  // The share of the training time that recording may take: intervals that nobody pinned become
  // longer, up to max_interval steps. nullopt: no limit.
  std::optional<double> max_overhead = {};
  int64_t max_interval = 100;
  // So many steps are kept in memory and written when something goes wrong. 0: none.
  int64_t flight_recorder = 0;
  bool flight_recorder_raw = false;  // values, too
  int64_t flight_recorder_bytes = int64_t{256} << 20;
  // Looks for the first NaN or infinity at every step, not only where reductions are computed.
  bool first_bad_tensor = false;

  // invalid_argument: one of the numbers above makes no sense.
  Status check_limits() const;

  bool operator==(const HookConfig&) const = default;
};

// What a framework's adapter uses for values that nobody gave.
struct HookDefaults {
  int64_t save_interval = kDefaultSaveInterval;
};

struct ParsedHookConfig {
  HookConfig config;
  std::vector<std::string> warnings;  // full sentences: unknown keys, repeated collections
};

// Reads the job's JSON: {"LocalPath", "HookParameters", "CollectionConfigurations"}, all optional.
//
// Every value may be a string; a null is as good as absent. The save keys save_interval,
// save_steps, start_step, end_step and when_nan may carry a mode ("train.save_interval"). For one
// mode of one collection the first of these wins: collection "mode.key", collection "key", hook
// "mode.key", hook "key", default. A listed collection always gets a complete save config and
// becomes one of include_collections; listed again, its later save config replaces and its patterns
// accumulate.
//
// A reduction config exists when one of reductions, save_raw_tensor and save_shape is given. Unless
// save_raw_tensor says so, values are saved exactly when no reduction is listed.
//
// Errors name the JSON key.
Result<ParsedHookConfig> parse_hook_config(const Json& json, const HookDefaults& defaults = {});

}  // namespace smd
