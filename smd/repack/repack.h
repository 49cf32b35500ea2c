#pragma once

// Copies a run into another place, in either layout and without loss: every value bit for bit with
// its element type, modes and mode steps, workers, saved shapes, texts, reductions, collections
// files and the end marker. What a reader sees is what is copied, incomplete steps included: of
// several incarnations of a worker, those steps that count. Two functions over storages; one thread
// at a time per destination.
//
// What a layout cannot hold: the numbers of a packed step share one time, that of its first value.
// Steps that hold nothing at all are left out. Files of other programs are not copied.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/types/run_layout.h"

namespace smd {

struct RepackOptions {
  RunLayout layout = RunLayout::packed;
  // Read both runs afterwards and compare them bit for bit.
  bool verify = true;
  // Names the writers of a packed run.
  std::shared_ptr<const Clock> clock = system_clock();
  // Told after each step of a worker; comparing counts like copying.
  std::function<void(uint64_t done, uint64_t total)> progress;
};

struct RepackReport {
  uint64_t steps = 0;    // global
  uint64_t workers = 0;  // that wrote them
  uint64_t values = 0;   // texts included
  uint64_t reductions = 0;
  uint64_t shapes = 0;
  uint64_t element_bytes = 0;  // of values and reductions
  uint64_t collections_files = 0;
  uint64_t empty_left_out = 0;  // steps of a worker that hold nothing
  bool ended = false;           // the run has its end marker, and so has the copy
  bool verified = false;
};

// `to` must not hold a file; list() of it should give temporary files, too. unsupported: a tensor
// is too large for the layout, and nothing was written. Any other error leaves a part of the copy
// behind, which has no end marker and is known by its mark, see interrupted_repack().
Result<RepackReport> repack_run(std::shared_ptr<storage::Storage> from,
                                std::shared_ptr<storage::Storage> to, const RepackOptions& options);

// A sentence if the storage holds a part of a copy that was interrupted.
std::optional<std::string> interrupted_repack(storage::Storage& storage);

}  // namespace smd
