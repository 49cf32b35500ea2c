#pragma once

// A long run with nothing wrong in it, for benchmarks of reading and judging. One thread at a time.

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "smd/collection/collection_set.h"
#include "smd/format/file_name.h"
#include "smd/storage/storage.h"
#include "smd/writer/sinks/packed.h"

namespace smd {

inline constexpr int kHealthyReductions = 8;  // of each tensor at each step

inline void require_ok(const auto& result) {
  if (!result.ok()) std::abort();
}

inline StoredReduction healthy_number(std::string_view name, double value) {
  const auto rounded = static_cast<float>(value);
  StoredReduction out{.name = name, .dtype = DType::float32};
  std::memcpy(out.bits.data(), &rounded, sizeof rounded);
  return out;
}

// A healthy run: a falling loss, and the reductions of weights and gradients at every step.
inline std::shared_ptr<storage::Storage> record_healthy_run(int64_t tensors, int64_t steps) {
  auto storage = storage::memory_storage();
  const auto sink = packed_sink({.storage = storage, .worker = "worker_0"});
  CollectionSet collections;
  require_ok((*collections.create("losses"))->include("^loss$"));
  require_ok((*collections.create("weights"))->include("^weight"));
  require_ok((*collections.create("gradients"))->include("^gradient"));
  require_ok(collections.set_num_workers(1));
  require_ok(storage->put(format::collections_file_name("worker_0"),
                          as_bytes(collections.to_json()), storage::Put::always, {}));
  std::vector<std::string> names;
  for (int64_t i = 0; i < tensors; ++i) {
    names.push_back(fmt::format("{}/layer{}", i % 2 == 0 ? "weight" : "gradient", i / 2));
  }
  for (int64_t step = 0; step < steps; ++step) {
    require_ok(sink->begin_step({.step = step, .mode = Mode::train, .mode_step = step}));
    const double wall = 1e9 + static_cast<double>(step);
    const float loss = 1.0F / (1.0F + 0.01F * static_cast<float>(step));
    require_ok(
        sink->tensor({.name = "loss", .wall_secs = wall}, std::as_bytes(std::span(&loss, 1))));
    for (const std::string& name : names) {
      const double size = 1 + std::sin(static_cast<double>(step) * 0.01);
      const StoredReduction values[] = {
          healthy_number("min", -size),        healthy_number("max", size),
          healthy_number("mean", 0.01 * size), healthy_number("std", size),
          healthy_number("l2", size),          healthy_number("abs_mean", size),
          healthy_number("abs_max", size),     healthy_number("variance", size)};
      require_ok(sink->reductions(name, wall, values));
    }
    require_ok(sink->end_step());
  }
  require_ok(sink->close());
  require_ok(storage->put(format::kEndMarker, {}, storage::Put::always, {}));
  return storage;
}

}  // namespace smd
