#pragma once

// How far the writer thread has come and what went wrong on its way, for the training thread to
// look at and to wait for. Thread-safe.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

#include "smd/base/result.h"

namespace smd {

class WriterProgress final {
 public:
  void report(Error error);
  // Of an output. Success is no news.
  void report_output(Status status);
  void step_committed();
  void step_lost();
  void batch_done();
  // Nothing more will come.
  void finish();

  // Waits for finish() as long as batches are dealt with; false: none was for `patience`.
  bool wait_for_the_end(std::chrono::milliseconds patience);

  // The first error since the last call.
  std::optional<Error> take_error();
  std::optional<Error> take_output_error();
  // The first error ever, if any, with the number of steps that were lost.
  Status result() const;
  int64_t committed_steps() const;

 private:
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::optional<Error> first_error_;
  std::optional<Error> new_error_;
  std::optional<Error> output_error_;
  int64_t lost_steps_ = 0;
  int64_t committed_steps_ = 0;
  uint64_t batches_ = 0;  // dealt with
  bool finished_ = false;
};

}  // namespace smd
