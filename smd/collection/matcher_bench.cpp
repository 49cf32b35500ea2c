#include "smd/collection/matcher.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

namespace smd {
namespace {

// Twenty collections with one pattern each: some built-in ones and many of a user.
std::vector<std::shared_ptr<Collection>> collections() {
  std::vector<std::string> patterns = {"^(?!gradient).*weight", "^(?!gradient).*bias", "^gradient",
                                       "[Ll]oss_(?!input).*output", "relu"};
  while (patterns.size() < 20) {
    patterns.push_back(fmt::format("^encoder\\.layers\\.{}\\..*_output_\\d+$", patterns.size()));
  }
  std::vector<std::shared_ptr<Collection>> made;
  for (size_t i = 0; i < patterns.size(); ++i) {
    made.push_back(std::make_shared<Collection>(fmt::format("collection_{}", i)));
    if (!made.back()->include(patterns[i]).ok()) std::abort();
  }
  return made;
}

std::vector<std::string> names(int64_t count) {
  std::vector<std::string> made;
  for (int64_t i = 0; i < count; ++i) {
    made.push_back(fmt::format("encoder.layers.{}.self_attn.out_proj.{}.weight", i % 48, i));
  }
  return made;
}

void known_name(benchmark::State& state) {
  Matcher matcher(collections());
  const auto list = names(state.range(0));
  for (const std::string& name : list) matcher.match(name);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&matcher.match(list[next]));
    if (++next == list.size()) next = 0;
  }
}
BENCHMARK(known_name)->Arg(100)->Arg(1000)->Arg(100000);

void new_name_against_20_patterns(benchmark::State& state) {
  const auto list = names(10000);
  const auto shared = collections();
  auto matcher = std::make_unique<Matcher>(shared);
  size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(&matcher->match(list[next]));
    if (++next == list.size()) {
      state.PauseTiming();
      next = 0;
      for (const auto& collection : shared) collection->set_tensor_names({});
      matcher = std::make_unique<Matcher>(shared);
      state.ResumeTiming();
    }
  }
}
BENCHMARK(new_name_against_20_patterns);

}  // namespace
}  // namespace smd
