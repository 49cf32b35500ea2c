#pragma once

// Where the steps of a run come from: one implementation per layout on disk.
// refresh() and ended() are called by one thread at a time; everything else is thread-safe.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/staging.h"
#include "smd/trial/tensor_value.h"

namespace smd {

class Source {
 public:
  virtual ~Source() = default;

  // Adds to `staging` what appeared since the last call, the collections first.
  virtual Status refresh(Staging& staging) = 0;
  // Whether the job said that it has ended, and at what Unix time. Asked before a refresh.
  virtual Result<std::optional<double>> ended() = 0;
  // True when refresh() may find something, false at the deadline or after a signal.
  virtual bool wait(std::chrono::steady_clock::time_point deadline) = 0;

  // not_found: the file that should hold it is not there. truncated, corrupt: it is damaged; the
  // message names the file and the offset.
  virtual Result<TensorValue> read(const Snapshot& snapshot, const Location& at) = 0;
  // What the record says besides its elements, of which as few as possible are read.
  virtual Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at) = 0;
  // Single numbers, such as reductions and scalars, into `out`, which has the same size.
  // Reads neighbours together. On an error the content of `out` is undefined.
  virtual Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                              std::span<double> out) = 0;
  // The same for records of which some may hold something else: nullopt for those.
  virtual Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                                     std::span<std::optional<double>> out) = 0;
};

struct SourceOptions {
  std::shared_ptr<storage::Storage> storage;
  // For damaged files that are left out until they are whole.
  std::shared_ptr<Log> log;
  // Verify the payload's checksum wherever one is recorded.
  bool check = false;
};

// The original's layout: an event and an index file per step and worker.
std::unique_ptr<Source> original_source(SourceOptions options);
// The packed layout: segments that grow, each with a log.
std::unique_ptr<Source> packed_source(SourceOptions options);
// The packed layout in an object store, from the journal of what was committed. nullptr: there is
// none. Costs the same few requests however many writers there are.
Result<std::unique_ptr<Source>> committed_source(SourceOptions options);
// The layout that is found; one that has not begun yet is looked for at each refresh. unsupported:
// a directory that holds both.
std::unique_ptr<Source> found_source(SourceOptions options);

}  // namespace smd
