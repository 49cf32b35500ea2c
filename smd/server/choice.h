#pragma once

// What a request is about: its parameters become runs, tensors, workers and steps, or one sentence
// that says what is wrong and names the nearest choice. Functions, which any thread may call.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/server/query.h"
#include "smd/server/route.h"
#include "smd/server/served_run.h"
#include "smd/server/statistic.h"

namespace smd::server {

// Parameters that several routes have.
inline constexpr ParameterSpec kModeParameter{.name = "mode", .default_text = "GLOBAL"};
inline constexpr ParameterSpec kWorkerParameter{.name = "worker"};
inline constexpr ParameterSpec kFromParameter{.name = "from"};
inline constexpr ParameterSpec kToParameter{.name = "to"};
inline constexpr ParameterSpec kTensorParameter{.name = "tensor"};
inline constexpr ParameterSpec kIdParameter{.name = "id"};
inline constexpr ParameterSpec kPointsParameter{.name = "points", .default_text = "1000"};
inline constexpr int64_t kDefaultPoints = 1000;
inline constexpr int64_t kMostPoints = 4000;

// A run and what is known of it now.
struct ChosenRun {
  std::shared_ptr<ServedRun> run;
  std::shared_ptr<const RunFacts> facts;

  // Of an answer that depends on nothing but the run and the parameters.
  std::string version() const;
};
// not_found: no such run.
Result<ChosenRun> choose_run(const Site& site, std::string_view id);
// The same for what has to be read from its files. not_found also if they were removed.
Result<ChosenRun> choose_readable_run(const Site& site, std::string_view id);

// By name or id. not_found: none. invalid_argument: neither or both are given.
Result<uint32_t> choose_tensor(const Query& query, const RunFacts& facts);
// All that are named, each once. invalid_argument: none, or more than 64.
Result<std::vector<uint32_t>> choose_tensors(const Query& query, const RunFacts& facts);
// Empty: the first that has it. not_found: no such worker.
Result<std::string> choose_worker(const Query& query, const RunFacts& facts);
Status check_worker(const RunFacts& facts, const std::string& worker);
// invalid_argument: the end is not after the beginning.
Result<StepRange> choose_steps(const Query& query);

// Which cells of a heat map somebody wants to see.
struct HeatMapChoice {
  Mode mode = Mode::global;
  std::string worker;
  StepRange range;
  std::optional<Role> role;
  std::string collection;  // empty: all
  std::string module;
  uint32_t first = 0;
  uint32_t count = UINT32_MAX;
  uint32_t rows = 1000;
  uint32_t columns = 1000;
  uint32_t channels = 1;
};
// What every heat map understands.
inline constexpr std::array<ParameterSpec, 13> kHeatMapParameters = {{
    {.name = "statistic"},
    {.name = "role"},
    {.name = "collection"},
    {.name = "module"},
    kModeParameter,
    kWorkerParameter,
    kFromParameter,
    kToParameter,
    {.name = "first", .default_text = "0"},
    {.name = "count"},
    {.name = "rows", .default_text = "1000"},
    {.name = "columns", .default_text = "1000"},
    {.name = "channels", .default_text = "mean"},
}};
Result<HeatMapChoice> choose_heat_map(const Query& query, const RunFacts& facts);
// Tensors that the choice names and the statistic may have, in the order of the model; without
// `first` and `count`. not_found: no such collection or module.
Result<std::vector<uint32_t>> tensors_of(const HeatMapChoice& choice, const RunFacts& facts,
                                         const Statistic& statistic);

// The number of a finding, a difference and the like; null: not finite.
Json finite(double number);

}  // namespace smd::server
