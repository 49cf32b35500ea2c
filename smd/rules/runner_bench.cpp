#include "smd/rules/runner.h"

#include <benchmark/benchmark.h>

#include <cstdlib>

#include "smd/rules/diagnosis.h"
#include "tests/support/healthy_run.h"

namespace smd::rules {
namespace {

void all_rules(benchmark::State& state) {
  const auto storage = record_healthy_run(state.range(0), state.range(1));
  uint64_t seen = 0;
  for (auto _ : state) {
    auto trial = Trial::open(storage, {.end_delay_secs = 0});
    require_ok((*trial)->refresh());
    const auto found = diagnose(std::shared_ptr<Trial>(std::move(*trial)), {});
    if (!found.ok()) std::abort();
    seen += found->step_count;
  }
  if (seen != static_cast<uint64_t>(state.range(1) * state.iterations())) std::abort();
  state.counters["numbers"] =
      static_cast<double>(state.range(0) * state.range(1)) * kHealthyReductions;
}
BENCHMARK(all_rules)->Args({200, 1'000})->Args({200, 10'000})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace smd::rules
