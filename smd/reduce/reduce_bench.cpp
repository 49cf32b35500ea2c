// How fast tensors are reduced, beside how fast this machine can read them at all:
// the counter `of_read` is the fraction of the read bandwidth of one thread, measured in this run.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/reduce.h"

namespace smd {
namespace {

constexpr int64_t kLargeBytes = int64_t{256} << 20;

// Random elements that are normal numbers in every format.
Bytes random_bytes(DType dtype, size_t size_bytes) {
  Bytes bytes(size_bytes);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> period(1 << 16);
  for (float& x : period) x = normal(random);
  const size_t item = size_of(dtype);
  for (size_t i = 0; i * item < size_bytes; ++i) {
    const float x = period[(i * 2654435761u) % period.size()];
    std::byte* to = bytes.data() + i * item;
    switch (dtype) {
      case DType::float32: store_le(to, x); break;
      case DType::float64: store_le(to, static_cast<double>(x)); break;
      case DType::bfloat16:
        store_le(to, static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
        break;
      case DType::float16:
        store_le(to, static_cast<uint16_t>(0x3000 + (i * 2654435761u >> 8) % 0x1000));
        break;
      default: store_le(to, static_cast<int32_t>(x * 1e6f)); break;
    }
  }
  return bytes;
}

ReductionSet set_of(std::initializer_list<const char*> names) {
  ReductionSet set;
  for (const char* name : names) set.add(*parse_reduction(name));
  return set;
}

ReductionSet typical() { return set_of({"min", "max", "mean", "std", "l2", "abs_mean"}); }

// Everything but the medians, which sort.
ReductionSet fused() {
  ReductionSet set;
  all_reductions().for_each([&](Reduction r) {
    if (r.op() != "median") set.add(r);
  });
  return set;
}

__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) uint64_t read_all(
    const uint64_t* data, size_t count) {
  uint64_t lanes[32] = {};
  for (size_t i = 0; i + 32 <= count; i += 32) {
    for (size_t lane = 0; lane < 32; ++lane) lanes[lane] |= data[i + lane];
  }
  uint64_t all = 0;
  for (uint64_t lane : lanes) all |= lane;
  return all;
}

// Bytes per second, the best of a few reads of a large block.
double read_bandwidth() {
  static const double best = [] {
    const Bytes bytes = random_bytes(DType::float32, kLargeBytes);
    const auto* words = reinterpret_cast<const uint64_t*>(bytes.data());
    double least_secs = 1e9;
    for (int i = 0; i < 12; ++i) {
      const auto start = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(read_all(words, bytes.size() / sizeof(uint64_t)));
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      least_secs = std::min(least_secs, took.count());
    }
    return static_cast<double>(bytes.size()) / least_secs;
  }();
  return best;
}

void run(benchmark::State& state, DType dtype, int64_t size_bytes, ReductionRequest request) {
  const double bandwidth = size_bytes == kLargeBytes ? read_bandwidth() : 0;
  const Bytes bytes = random_bytes(dtype, static_cast<size_t>(size_bytes));
  const int64_t shape[] = {size_bytes / static_cast<int64_t>(size_of(dtype))};
  const TensorView view{.data = bytes.data(), .dtype = dtype, .shape = shape};
  ReductionResult result;
  double least_secs = 1e9;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    if (!reduce(view, request, result).ok()) state.SkipWithError("reduce failed");
    benchmark::DoNotOptimize(result.values.data());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least_secs = std::min(least_secs, took.count());
  }
  state.SetBytesProcessed(state.iterations() * size_bytes);
  if (bandwidth == 0) return;
  state.counters["of_read"] = static_cast<double>(size_bytes) / least_secs / bandwidth;
  state.SetLabel(std::string(internal::best_kernels().target));
}

void read(benchmark::State& state) {
  for (auto _ : state) state.SetIterationTime(static_cast<double>(kLargeBytes) / read_bandwidth());
  state.SetBytesProcessed(state.iterations() * kLargeBytes);
}
BENCHMARK(read)->UseManualTime()->Iterations(1);

const int kRegistered = [] {
  const auto add = [](const std::string& name, DType dtype, int64_t bytes,
                      ReductionRequest request) {
    return benchmark::RegisterBenchmark(
        name.c_str(), [=](benchmark::State& state) { run(state, dtype, bytes, request); });
  };
  for (DType dtype :
       {DType::float32, DType::float16, DType::bfloat16, DType::float64, DType::int32}) {
    const std::string name(name_of(dtype));
    for (auto& [label, set] : {std::pair("typical", typical()), std::pair("all_fused", fused())}) {
      add("large/" + name + "/" + label, dtype, kLargeBytes, {.reductions = set})
          ->Unit(benchmark::kMillisecond);
    }
  }
  add("large/float32/extrema", DType::float32, kLargeBytes, {.reductions = set_of({"min", "max"})})
      ->Unit(benchmark::kMillisecond);
  add("large/float32/mean", DType::float32, kLargeBytes, {.reductions = set_of({"mean"})})
      ->Unit(benchmark::kMillisecond);
  add("large/float32/typical_and_counts", DType::float32, kLargeBytes,
      {.reductions = typical(), .count_special = true})
      ->Unit(benchmark::kMillisecond);
  // In the first-level cache: what the loops cost without waiting for memory.
  constexpr int64_t kCachedBytes = 8 << 10;
  add("cached/float32/extrema", DType::float32, kCachedBytes, {.reductions = set_of({"min"})});
  add("cached/float32/mean", DType::float32, kCachedBytes, {.reductions = set_of({"mean"})});
  add("cached/float32/std", DType::float32, kCachedBytes, {.reductions = set_of({"std"})});
  add("cached/float32/prod", DType::float32, kCachedBytes, {.reductions = set_of({"prod"})});
  add("cached/float32/typical", DType::float32, kCachedBytes, {.reductions = typical()});
  add("cached/float32/all_fused", DType::float32, kCachedBytes, {.reductions = fused()});
  for (int64_t count : {10, 1000}) {
    add("small/float32/" + std::to_string(count) + "/typical", DType::float32, 4 * count,
        {.reductions = typical()});
    add("small/float32/" + std::to_string(count) + "/all_fused", DType::float32, 4 * count,
        {.reductions = fused()});
  }
  return 0;
}();

void find_nan(benchmark::State& state) {
  const Bytes bytes = random_bytes(DType::float32, kLargeBytes);
  const int64_t shape[] = {kLargeBytes / 4};
  const TensorView view{.data = bytes.data(), .shape = shape};
  for (auto _ : state) benchmark::DoNotOptimize(*contains_nan(view));
  state.SetBytesProcessed(state.iterations() * kLargeBytes);
}
BENCHMARK(find_nan)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace smd
