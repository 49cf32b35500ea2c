#pragma once

// A sink of either layout, for C++ tests that read runs back. One thread at a time.

#include <memory>
#include <string>

#include "smd/writer/sinks/original.h"
#include "smd/writer/sinks/packed.h"

namespace smd {

struct PlantedSinkOptions {
  std::shared_ptr<storage::Storage> storage;
  bool packed = false;
  // Of a packed segment of numbers, after which the next one begins.
  uint64_t max_segment_bytes = uint64_t{8} << 20;
};

inline std::unique_ptr<Sink> planted_sink(const PlantedSinkOptions& options) {
  if (options.packed) {
    return packed_sink({.storage = options.storage,
                        .worker = "worker_0",
                        .max_number_segment_bytes = options.max_segment_bytes});
  }
  return original_sink({.storage = options.storage, .worker = "worker_0"});
}

}  // namespace smd
