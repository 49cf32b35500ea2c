#pragma once

// Moves steps from the training thread to a sink on a thread of its own.
// The caller's side is used by one thread at a time; it snapshots and returns, and waits only when
// max_queue_bytes are pending, at most max_wait. No method touches a file.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "smd/tensor/tensor_view.h"
#include "smd/writer/batch.h"
#include "smd/writer/output.h"
#include "smd/writer/sink.h"

namespace smd {

struct WriterOptions {
  size_t max_queue_bytes = size_t{1} << 30;
  // How long one call may wait for a full queue, and close() for a sink that makes no progress.
  std::chrono::milliseconds max_wait{30'000};
};

class Writer final {
 public:
  // The outputs get what is theirs of a step, and its reductions, beside what the sink does with
  // the step.
  Writer(std::unique_ptr<Sink> sink, const WriterOptions& options,
         std::vector<std::unique_ptr<Output>> outputs = {});
  // Closes without reporting.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Whether values of this size can be handed over without waiting. Small ones may have all of the
  // queue, large ones leave the last part of it to statistics.
  bool has_room(size_t bytes) const;

  void begin_step(const StepInfo& step);
  // Copies the elements before it returns.
  void tensor(std::string_view name, const TensorView& view, double wall_secs,
              std::span<const std::string_view> other_names = {});
  // Keeps the owner until the elements are written.
  void tensor(std::string_view name, const OwnedTensor& tensor, double wall_secs);
  // The same of memory that is still being filled: the writer thread waits for it.
  void late_tensor(std::string_view name, const OwnedTensor& tensor, double wall_secs,
                   std::shared_ptr<LateMemory> memory);
  void reductions(std::string_view tensor, double wall_secs,
                  std::span<const StoredReduction> values);
  // The writer thread waits for them. `bytes`: what they hold meanwhile.
  void late_numbers(double wall_secs, std::shared_ptr<LateNumbers> numbers, size_t bytes);
  void strings(std::string_view name, std::span<const int64_t> shape,
               std::span<const std::string_view> strings, double wall_secs);
  void shape(std::string_view tensor, std::string_view original_name,
             std::span<const int64_t> shape);
  // For the outputs only. Within a step; costs nothing if there are none.
  void scalar(const SavedScalar& scalar);
  void histogram(const SavedHistogram& histogram);
  void text(const SavedText& text);
  void membership(const SavedMembership& membership);
  bool has_outputs() const { return has_outputs_; }
  // Hands the step over; it becomes visible when the writer thread has published it.
  void end_step();
  void put(std::string_view path, std::string_view content);
  void end_job(const JobEnd& end);

  // Waits until everything handed over so far has been dealt with; false: not within `most`.
  bool wait_until_written(std::chrono::milliseconds most);

  // An error that happened since the last call: what failed first and what was lost.
  std::optional<Error> take_error();

  // The same of the outputs. Their errors are no errors of the writer: the run is not harmed.
  std::optional<Error> take_output_error();

  // Writes what is pending and ends the thread. The first error of the writer's life, if any.
  // A second call returns the same.
  Status close();

  // Steps published so far.
  int64_t committed_steps() const;
  // Greatest number of bytes that were ever pending.
  size_t peak_queue_bytes() const;

 private:
  struct Shared;  // lives as long as either thread needs it
  static void run(std::shared_ptr<Shared> shared);

  void flush();
  void flush_if_large();

  const WriterOptions options_;
  const bool has_outputs_;
  std::shared_ptr<BlockPool> pool_;
  Batch batch_;
  std::shared_ptr<Shared> shared_;
  bool started_ = false;
  bool dropping_ = false;  // the open step lost a batch: its rest is of no use
  bool stalled_ = false;   // the last batch found no room: do not wait again until one does
};

}  // namespace smd
