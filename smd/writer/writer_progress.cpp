#include "smd/writer/writer_progress.h"

#include <fmt/format.h>

#include <utility>

namespace smd {

void WriterProgress::report(Error error) {
  std::lock_guard lock(mutex_);
  if (!first_error_) first_error_ = error;
  if (!new_error_) new_error_ = std::move(error);
}

void WriterProgress::report_output(Status status) {
  if (status.ok()) return;
  std::lock_guard lock(mutex_);
  if (!output_error_) output_error_ = std::move(status.error());
}

void WriterProgress::step_committed() {
  std::lock_guard lock(mutex_);
  ++committed_steps_;
}

void WriterProgress::step_lost() {
  std::lock_guard lock(mutex_);
  ++lost_steps_;
}

void WriterProgress::batch_done() {
  {
    std::lock_guard lock(mutex_);
    ++batches_;
  }
  changed_.notify_all();
}

void WriterProgress::finish() {
  {
    std::lock_guard lock(mutex_);
    finished_ = true;
  }
  changed_.notify_all();
}

bool WriterProgress::wait_for_the_end(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  while (!finished_) {
    const uint64_t seen = batches_;
    const auto moved = [&] { return finished_ || batches_ != seen; };
    if (!changed_.wait_for(lock, patience, moved)) return false;
  }
  return true;
}

std::optional<Error> WriterProgress::take_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(new_error_, std::nullopt);
}

std::optional<Error> WriterProgress::take_output_error() {
  std::lock_guard lock(mutex_);
  return std::exchange(output_error_, std::nullopt);
}

Status WriterProgress::result() const {
  std::lock_guard lock(mutex_);
  if (!first_error_) return {};
  Error error = *first_error_;
  if (lost_steps_ > 0) {
    error.message +=
        fmt::format(" ({} step{} could not be saved.)", lost_steps_, lost_steps_ == 1 ? "" : "s");
  }
  return error;
}

int64_t WriterProgress::committed_steps() const {
  std::lock_guard lock(mutex_);
  return committed_steps_;
}

}  // namespace smd
