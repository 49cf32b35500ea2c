#pragma once

// A recorded run, finished or growing. Thread-safe: any number of threads read snapshots and values
// while one refreshes. Nothing happens in the background.
//
//   auto trial = smd::Trial::open("run");
//   auto loss = (*trial)->series("loss", {});           // steps and values
//   auto now = (*trial)->snapshot();                     // what is known; refresh() reads more

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/clock.h"
#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/reduce/number.h"
#include "smd/storage/storage.h"
#include "smd/trial/snapshot.h"
#include "smd/trial/tensor_value.h"

namespace smd {

class Source;
class Staging;

struct TrialOptions {
  // Only these global steps.
  StepRange range{};
  // Verify each payload's checksum where one is recorded.
  bool check = false;
  // How long after the end marker files may still arrive; 0 for those who look once.
  double end_delay_secs = 1;
  // See StagingOptions.
  int64_t wait_window = 1000;
  std::shared_ptr<const Clock> clock = system_clock();
  std::shared_ptr<Log> log = null_log();
};

// Which value of a tensor. Steps and modes as in Snapshot.
struct ValueQuery {
  Step step = 0;
  Mode mode = Mode::global;
  std::string_view worker{};  // empty: the first that has it
};

// Numbers over time.
struct Series {
  std::vector<Step> steps;
  std::vector<double> values;
};

struct SeriesQuery {
  // "min", "abs_mean", "l2"; empty: the value itself, which must be a single number.
  std::string_view reduction{};
  Mode mode = Mode::global;
  std::string_view worker{};  // empty: at each step the first that has it
  bool incomplete = false;    // with steps that some worker lacks
};

class Trial final {
 public:
  // A local directory or a URI. The run need not have begun: see is_open().
  static Result<std::unique_ptr<Trial>> open(std::string_view path, TrialOptions options = {});
  static Result<std::unique_ptr<Trial>> open(std::shared_ptr<storage::Storage> storage,
                                             TrialOptions options);

  // What people call the run's place.
  std::string name() const { return storage_->name(); }
  // Where its files are.
  storage::Storage& storage() const { return *storage_; }

  std::shared_ptr<const Snapshot> snapshot() const;
  // Reads what is new; does nothing once everything was read. Steps that a hook of this process has
  // ended are waited for. When the job has ended, waits until end_delay_secs have passed since.
  Status refresh();
  // Whether the collections of all workers are there: before that nobody knows what is complete.
  bool is_open() const;
  // Whether the job said that it has ended.
  bool has_ended() const;
  // True when refresh() may find something, false at the deadline or after a signal.
  bool wait(std::chrono::steady_clock::time_point deadline);

  // --- values. `not_found`: no such tensor, step or worker, or the value was not saved: ask the
  // snapshot which. Other errors tell of damaged files. All use the newest snapshot.
  Result<TensorValue> value(std::string_view tensor, const ValueQuery& query);
  // Stored, or computed from the value.
  Result<Number> reduction(std::string_view tensor, std::string_view reduction,
                           const ValueQuery& query);
  Result<Series> series(std::string_view tensor, const SeriesQuery& query);

  // The same for what somebody found in a snapshot of this trial. `not_found`: a file is missing.
  Result<TensorValue> read(const Snapshot& snapshot, const Location& at) const;
  // Element type, shape and time of it; reads a few bytes, however large the tensor is.
  Result<TensorDescription> describe(const Snapshot& snapshot, const Location& at) const;
  // Single numbers, into `out` of the same size; neighbours are read together.
  Status read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                      std::span<double> out) const;
  // The same for values that may be something else than a single number: those are nullopt.
  Status read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                             std::span<std::optional<double>> out) const;
  ~Trial();

 private:
  Trial(std::shared_ptr<storage::Storage> storage, TrialOptions options);

  void publish();

  const std::shared_ptr<storage::Storage> storage_;
  const TrialOptions options_;
  const std::unique_ptr<Source> source_;
  std::mutex refreshing_;                   // held while reading new files
  const std::unique_ptr<Staging> staging_;  // guarded by refreshing_
  struct Published;
  const std::shared_ptr<Published> published_;
};

}  // namespace smd
