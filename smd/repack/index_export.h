#pragma once

// Writes the original's index files beside the segments of a packed run, so that its reader opens
// the run without a copy of the tensors: the index points into the segments. What has no record of
// its own there, or one that the original cannot read, gets a record in an event file: numbers of
// blocks, and bfloat16 and float8 tensors, widened. One thread at a time per run.
//
// The original takes one event file from each index, so a step with both kinds has two: one ends in
// .csv, which its reader accepts as well and reads first, and names the segment; the other names
// the event file.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd {

struct IndexExportReport {
  uint64_t steps = 0;    // global
  uint64_t workers = 0;  // that wrote them
  uint64_t index_files = 0;
  uint64_t event_files = 0;
  uint64_t event_bytes = 0;  // of these files
  uint64_t in_place = 0;     // tensors that the index names in the segments
  uint64_t copied = 0;       // numbers and widened tensors
  // Tensors that are too large for the original, each once, and how many values of them there are.
  std::vector<std::string> too_large;
  uint64_t left_out = 0;
};

// Of what the run holds now; a later call brings an export up to date. invalid_argument: not a
// packed run. The run stays a packed one for our readers and hooks, which know an exported index by
// format::kExportMark. `progress` is called after each step of a worker.
Result<IndexExportReport> export_index(
    std::shared_ptr<storage::Storage> run,
    const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace smd
