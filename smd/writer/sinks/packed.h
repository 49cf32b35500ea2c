#pragma once

// The packed layout: per writer a few segments, files that grow by one step at a time, each with a
// log that says what it holds. Data is in the segment before the log names it. Needs a storage
// whose files can grow; a spool's do until they are complete. See docs/format/packed.md.

#include <chrono>
#include <memory>
#include <string>

#include "smd/base/clock.h"
#include "smd/storage/storage.h"
#include "smd/types/durability.h"
#include "smd/writer/sink.h"

namespace smd {

struct PackedSinkOptions {
  std::shared_ptr<storage::Storage> storage;
  std::string worker;  // as it stands in file names
  // One worker writes here: refuse when another process does.
  bool exclusive = false;
  Durability durable = Durability::off;
  // A segment that has reached this is closed before the next step: one that holds tensors, and one
  // that holds numbers only.
  uint64_t max_tensor_segment_bytes = uint64_t{256} << 20;
  uint64_t max_number_segment_bytes = uint64_t{8} << 20;
  // The storage is a spool: segments reach readers when they are closed, which happens so long
  // after their first step at the latest, and notes tell of the files beside the steps.
  bool spooled = false;
  std::chrono::milliseconds max_segment_age{10'000};
  // The writer's name holds at least these microseconds, so that it comes after those before.
  uint64_t least_micros = 0;
  // A tensor whose record would be longer is stored in parts; protobuf messages end at 2 GiB - 1.
  uint64_t max_record_bytes = (uint64_t{2} << 30) - 4096;
  // Names the writer, together with chance.
  std::shared_ptr<const Clock> clock = system_clock();
};

std::unique_ptr<Sink> packed_sink(PackedSinkOptions options);

}  // namespace smd
