#include "smd/hook/hook.h"

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <numeric>

namespace smd {
namespace {

using Seconds = std::chrono::duration<double>;

// A folder for runs, below TMPDIR or /tmp; gone with its owner.
class Folder final {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hook_bench_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
  }
  ~Folder() { std::filesystem::remove_all(root_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // A path that was not given before.
  std::string next() { return fmt::format("{}/{}", root_, count_++); }

 private:
  std::string root_;
  int count_ = 0;
};

std::unique_ptr<Hook> make(std::string out_dir, int64_t interval, ReductionConfig reductions,
                           RunLayout layout = RunLayout::original,
                           Durability durable = Durability::off) {
  HookOptions options;
  options.environment = Environment();
  options.log = null_log();
  options.config.out_dir = std::move(out_dir);
  options.config.save_all = true;
  options.config.save_config = *SaveConfig::broadcast({.save_interval = interval});
  options.config.reduction_config = std::move(reductions);
  options.config.layout = layout;
  options.config.durable = durable;
  return std::move(*Hook::create(std::move(options)));
}

std::vector<std::string> names(int64_t count) {
  std::vector<std::string> made;
  for (int64_t i = 0; i < count; ++i) made.push_back(fmt::format("encoder.layers.{}.weight", i));
  return made;
}

void require(const Status& status) {
  if (!status.ok()) std::abort();
}

void step_that_saves_nothing(benchmark::State& state) {
  Folder folder;
  auto hook = make(folder.next(), int64_t{1} << 40, ReductionConfig::raw_only());
  require(hook->begin_step());
  for (auto _ : state) require(hook->begin_step());
}
BENCHMARK(step_that_saves_nothing);

void step_that_saves_nothing_of_150_tensors(benchmark::State& state) {
  Folder folder;
  auto hook = make(folder.next(), int64_t{1} << 40, ReductionConfig::raw_only());
  const auto list = names(150);
  const std::vector<float> values(16);
  const int64_t shape[] = {16};
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
  require(hook->begin_step());
  for (auto _ : state) {
    require(hook->begin_step());
    for (const std::string& name : list) require(hook->save(name, view));
  }
}
BENCHMARK(step_that_saves_nothing_of_150_tensors);

void wants(benchmark::State& state, int64_t interval) {
  Folder folder;
  auto hook = make(folder.next(), interval, ReductionConfig::raw_only());
  const auto list = names(1000);
  require(hook->begin_step());
  for (const std::string& name : list) benchmark::DoNotOptimize(hook->wants(name));
  if (interval > 1) require(hook->begin_step());
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(hook->wants(list[next]));
    if (++next == list.size()) next = 0;
  }
}
BENCHMARK_CAPTURE(wants, at_a_step_that_saves_nothing, int64_t{1} << 40);
BENCHMARK_CAPTURE(wants, at_a_saved_step, int64_t{1});

// From creating the hook to close(): everything is in files at the end.
void thousand_scalars(benchmark::State& state, int steps, RunLayout layout, Durability durable) {
  Folder folder;
  const auto list = names(1000);
  double calling_secs = 0;
  for (auto _ : state) {
    auto hook = make(folder.next(), 500, ReductionConfig::raw_only(), layout, durable);
    const auto begun = std::chrono::steady_clock::now();
    for (int step = 0; step < steps; ++step) {
      require(hook->begin_step());
      for (const std::string& name : list) require(hook->save_scalar(name, step));
    }
    calling_secs += Seconds(std::chrono::steady_clock::now() - begun).count();
    require(hook->close());
  }
  const double calls = static_cast<double>(state.iterations()) * steps * 1000;
  state.counters["calls_per_s"] = benchmark::Counter(calls, benchmark::Counter::kIsRate);
  state.counters["caller_ns_per_call"] = calling_secs / calls * 1e9;
}
BENCHMARK_CAPTURE(thousand_scalars, in_100_steps, 100, RunLayout::original, Durability::off)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();
BENCHMARK_CAPTURE(thousand_scalars, packed_in_3000_steps_durable, 3000, RunLayout::packed,
                  Durability::close)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void ten_thousand_small_reductions(benchmark::State& state) {
  Folder folder;
  const auto list = names(10'000);
  const float value = 1;
  const int64_t shape[] = {1};
  const TensorView view{.data = &value, .dtype = DType::float32, .shape = shape};
  const ReductionConfig min = *ReductionConfig::create({.reductions = {"min"}});
  const int64_t steps = state.range(0);
  double calling_secs = 0;
  for (auto _ : state) {
    auto hook = make(folder.next(), 1, min);
    const auto begun = std::chrono::steady_clock::now();
    for (int64_t step = 0; step < steps; ++step) {
      require(hook->begin_step());
      for (const std::string& name : list) require(hook->save(name, view));
    }
    calling_secs += Seconds(std::chrono::steady_clock::now() - begun).count();
    require(hook->close());
  }
  const double saved = static_cast<double>(state.iterations() * steps) * 10'000;
  state.counters["tensors_per_s"] = benchmark::Counter(saved, benchmark::Counter::kIsRate);
  state.counters["caller_ns_per_tensor"] = calling_secs / saved * 1e9;
}
BENCHMARK(ten_thousand_small_reductions)
    ->Arg(1)
    ->Arg(10)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime();

void plain_write(const std::string& path, ByteSpan bytes) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) std::abort();
  while (!bytes.empty()) {
    const ssize_t done = write(file, bytes.data(), bytes.size());
    if (done <= 0) std::abort();
    bytes = bytes.subspan(static_cast<size_t>(done));
  }
  if (close(file) != 0) std::abort();
}

// Against write() of the same bytes into a file beside it; the two take turns.
void tensor_of_256_mib(benchmark::State& state, bool owned) {
  Folder folder;
  std::vector<float> numbers(size_t{64} << 20);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const auto tensor = own(std::move(numbers), DType::float32, Shape{int64_t{64} << 20});
  double hook_secs = 0;
  double write_secs = 0;
  for (auto _ : state) {
    const std::string run = folder.next();
    const auto begun = std::chrono::steady_clock::now();
    auto hook = make(run, 1, ReductionConfig::raw_only());
    require(hook->begin_step());
    require(owned ? hook->save_owned("w", tensor) : hook->save("w", tensor.view()));
    require(hook->close());
    const Seconds spent = std::chrono::steady_clock::now() - begun;
    state.SetIterationTime(spent.count());
    hook_secs += spent.count();
    std::filesystem::remove_all(run);

    const std::string file = folder.next();
    const auto begun_writing = std::chrono::steady_clock::now();
    plain_write(file, tensor.view().bytes());
    write_secs += Seconds(std::chrono::steady_clock::now() - begun_writing).count();
    std::filesystem::remove(file);
  }
  state.SetBytesProcessed(state.iterations() * tensor.view().size_bytes());
  state.counters["times_plain_write"] = hook_secs / write_secs;
}
BENCHMARK_CAPTURE(tensor_of_256_mib, copied, false)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(8);
BENCHMARK_CAPTURE(tensor_of_256_mib, owned, true)
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(8);

}  // namespace
}  // namespace smd
