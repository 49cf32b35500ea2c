#include "smd/rules/runner.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

#include "smd/format/file_name.h"
#include "smd/rules/diagnosis.h"
#include "smd/writer/sinks/packed.h"

namespace smd::rules {
namespace {

constexpr std::string_view kReductions[] = {"min", "max",      "mean",    "std",
                                            "l2",  "abs_mean", "abs_max", "variance"};

void require(const auto& result) {
  if (!result.ok()) std::abort();
}

StoredReduction number(std::string_view name, double value) {
  const auto rounded = static_cast<float>(value);
  StoredReduction out{.name = name, .dtype = DType::float32};
  std::memcpy(out.bits.data(), &rounded, sizeof rounded);
  return out;
}

// A healthy run: a falling loss, and the reductions of weights and gradients at every step.
std::shared_ptr<storage::Storage> record(int64_t tensors, int64_t steps) {
  auto storage = storage::memory_storage();
  const auto sink = packed_sink({.storage = storage, .worker = "worker_0"});
  CollectionSet collections;
  require((*collections.create("losses"))->include("^loss$"));
  require((*collections.create("weights"))->include("^weight"));
  require((*collections.create("gradients"))->include("^gradient"));
  require(collections.set_num_workers(1));
  require(storage->put(format::collections_file_name("worker_0"), as_bytes(collections.to_json()),
                       storage::Put::always, {}));
  std::vector<std::string> names;
  for (int64_t i = 0; i < tensors; ++i) {
    names.push_back(fmt::format("{}/layer{}", i % 2 == 0 ? "weight" : "gradient", i / 2));
  }
  for (int64_t step = 0; step < steps; ++step) {
    require(sink->begin_step({.step = step, .mode = Mode::train, .mode_step = step}));
    const double wall = 1e9 + static_cast<double>(step);
    const float loss = 1.0F / (1.0F + 0.01F * static_cast<float>(step));
    require(sink->tensor({.name = "loss", .wall_secs = wall}, std::as_bytes(std::span(&loss, 1))));
    for (const std::string& name : names) {
      const double size = 1 + std::sin(static_cast<double>(step) * 0.01);
      const StoredReduction values[] = {number("min", -size),        number("max", size),
                                        number("mean", 0.01 * size), number("std", size),
                                        number("l2", size),          number("abs_mean", size),
                                        number("abs_max", size),     number("variance", size)};
      require(sink->reductions(name, wall, values));
    }
    require(sink->end_step());
  }
  require(sink->close());
  require(storage->put(format::kEndMarker, {}, storage::Put::always, {}));
  return storage;
}

void all_rules(benchmark::State& state) {
  const auto storage = record(state.range(0), state.range(1));
  uint64_t seen = 0;
  for (auto _ : state) {
    auto trial = Trial::open(storage, {.end_delay_secs = 0});
    require((*trial)->refresh());
    const auto found = diagnose(std::shared_ptr<Trial>(std::move(*trial)), {});
    if (!found.ok()) std::abort();
    seen += found->step_count;
  }
  if (seen != static_cast<uint64_t>(state.range(1) * state.iterations())) std::abort();
  state.counters["numbers"] =
      static_cast<double>(state.range(0) * state.range(1)) * std::size(kReductions);
}
BENCHMARK(all_rules)->Args({200, 1'000})->Args({200, 10'000})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace smd::rules
