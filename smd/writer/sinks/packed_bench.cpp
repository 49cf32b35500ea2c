// What a step costs the writer thread, in both layouts.

#include "smd/writer/sinks/packed.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "smd/writer/sinks/original.h"

namespace smd {
namespace {

// A folder for runs, below TMPDIR or /tmp; gone with its owner.
class Folder final {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sink_bench_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& root() const { return root_; }
  double size_bytes() const {
    double sum = 0;
    for (const auto& file : std::filesystem::recursive_directory_iterator(root_)) {
      if (file.is_regular_file()) sum += static_cast<double>(file.file_size());
    }
    return sum;
  }

 private:
  std::string root_;
};

void require(const Status& status) {
  if (!status.ok()) std::abort();
}

// 200 tensors with 10 reductions each.
void step_of_2000_reductions(benchmark::State& state, bool packed) {
  constexpr int kTensors = 200;
  constexpr std::string_view kNames[] = {"min",     "max",     "mean",     "std",    "l1",
                                         "abs_min", "abs_max", "abs_mean", "abs_l2", "sum"};
  Folder folder;
  const auto storage = storage::local_storage(folder.root());
  const auto sink = packed ? packed_sink({.storage = storage, .worker = "worker_0"})
                           : original_sink({.storage = storage, .worker = "worker_0"});
  std::vector<std::string> names;
  for (int i = 0; i < kTensors; ++i) names.push_back(fmt::format("encoder.layers.{}.weight", i));
  std::vector<StoredReduction> values;
  for (std::string_view name : kNames) values.push_back({.name = name, .dtype = DType::float32});
  Step step = 0;
  for (auto _ : state) {
    require(sink->begin_step({.step = step, .mode = Mode::train, .mode_step = step}));
    for (const std::string& name : names) {
      for (StoredReduction& value : values) {
        store_le(value.bits.data(), static_cast<float>(step) * 0.37f);
      }
      require(sink->reductions(name, 1.7e9 + static_cast<double>(step), values));
    }
    require(sink->end_step());
    ++step;
  }
  require(sink->close());
  state.counters["bytes_per_value"] =
      folder.size_bytes() / (static_cast<double>(step) * kTensors * std::size(kNames));
}
BENCHMARK_CAPTURE(step_of_2000_reductions, packed, true)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(step_of_2000_reductions, original, false)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace smd
