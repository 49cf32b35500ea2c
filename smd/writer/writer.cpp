#include "smd/writer/writer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "smd/base/bounded_queue.h"
#include "smd/base/pending_writes.h"
#include "smd/base/signals_blocked.h"
#include "smd/writer/executor.h"
#include "smd/writer/writer_progress.h"

namespace smd {
namespace {

// Snapshot blocks kept for reuse, 128 MiB of those that were ever needed at once. Writing is slower
// than copying, so this is how far the training thread runs ahead before it waits for a block.
constexpr size_t kWarmBlocks = 64;
// Writing a block to the page cache takes a fraction of this.
constexpr std::chrono::microseconds kBlockPatience{2000};
// A batch is handed over when it reaches this size, long before a step ends.
constexpr size_t kBatchBytes = kBlockBytes;
// The same of tensors that are on their way from a device: there is nothing to be written yet, and
// each batch takes a block for the names alone.
constexpr size_t kLateBatchBytes = 32 * kBlockBytes;
// Of the queue, for what is smaller than this.
constexpr size_t kSmallBytes = 64 << 10;
constexpr size_t kSmallShare = 8;

}  // namespace

struct Writer::Shared final : PendingWrites {
  Shared(std::unique_ptr<Sink> sink, std::vector<std::unique_ptr<Output>> outputs, size_t limit)
      : executor(std::move(sink), std::move(outputs), progress), queue(limit) {}

  void settle(std::chrono::milliseconds most) override {
    if (std::this_thread::get_id() == thread) return;  // a rule that looks at another run
    (void)queue.wait_until_done(most);
  }

  WriterProgress progress;
  Executor executor;  // writer thread only
  BoundedQueue<Batch> queue;
  std::atomic<std::thread::id> thread;  // the writer's, once it runs
};

Writer::Writer(std::unique_ptr<Sink> sink, const WriterOptions& options,
               std::vector<std::unique_ptr<Output>> outputs)
    : options_(options),
      has_outputs_(!outputs.empty()),
      pool_(std::make_shared<BlockPool>(kWarmBlocks, kBlockPatience)),
      batch_(pool_),
      shared_(
          std::make_shared<Shared>(std::move(sink), std::move(outputs), options.max_queue_bytes)) {}

Writer::~Writer() { (void)close(); }

void Writer::run(std::shared_ptr<Shared> shared) {
  pthread_setname_np(pthread_self(), "smdebug-writer");
  // Waking up must not push the training thread off its processor. Where this is not allowed,
  // writing works as well.
  const sched_param priority{};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &priority);
  shared->thread = std::this_thread::get_id();
  Executor& executor = shared->executor;
  while (true) {
    if (const auto due = executor.due(); due && !shared->queue.wait_until(*due)) {
      executor.tick();
      continue;
    }
    auto item = shared->queue.pop();
    if (!item) break;
    {
      const Batch batch = std::move(item->first);
      for (const Command& command : batch.commands()) executor.run(command);
    }
    shared->queue.done(item->second);
    shared->progress.batch_done();
  }
  executor.finish();
  shared->progress.finish();
}

void Writer::flush() {
  if (batch_.empty()) return;
  if (!started_) {
    const SignalsBlocked inherited_by_the_thread;
    std::thread(&Writer::run, shared_).detach();
    announce(shared_);
    started_ = true;
  }
  const size_t weight = std::max<size_t>(batch_.weight(), 1);
  Batch full = std::exchange(batch_, Batch(pool_));
  const auto wait = stalled_ ? std::chrono::milliseconds(0) : options_.max_wait;
  if (shared_->queue.push(std::move(full), weight, wait)) {
    stalled_ = false;
    return;
  }
  if (!stalled_) {
    shared_->progress.report(
        {ErrorCode::io,
         fmt::format("Writing is too slow: {} bytes are pending and none was written for "
                     "{} s; the step is dropped.",
                     options_.max_queue_bytes, options_.max_wait.count() / 1000)});
  }
  stalled_ = true;
  dropping_ = true;
}

void Writer::flush_if_large() {
  if (batch_.weight() >= kBatchBytes && batch_.room() < kBlockBytes / 16) flush();
}

bool Writer::has_room(size_t bytes) const {
  const size_t limit = options_.max_queue_bytes;
  const size_t most = bytes < kSmallBytes ? limit : limit - limit / kSmallShare;
  // Copies take whole blocks.
  const size_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  const size_t more = bytes <= batch_.room() ? 0 : blocks * kBlockBytes;
  return shared_->queue.weight() + batch_.weight() + more <= most;
}

void Writer::begin_step(const StepInfo& step) {
  dropping_ = false;
  batch_.add(BeginStep{step});
}

void Writer::tensor(std::string_view name, const TensorView& view, double wall_secs,
                    std::span<const std::string_view> other_names) {
  if (dropping_) return;
  const format::TensorHead head{.name = batch_.copy(name),
                                .dtype = view.dtype,
                                .shape = batch_.copy(view.shape),
                                .wall_secs = wall_secs,
                                .other_names = batch_.copy_texts(other_names)};
  const auto item = static_cast<int64_t>(size_of(view.dtype));
  const int64_t count = view.size();
  const bool large = static_cast<uint64_t>(count * item) >= format::kLargeTensorBytes;
  int64_t done = 0;
  do {
    // At least a few elements, so that a nearly full block does not make tiny parts; whole blocks
    // of a large tensor.
    const auto room = static_cast<int64_t>(batch_.room()) / item;
    const int64_t part = std::min(
        count - done, room >= 1024 && !large ? room : static_cast<int64_t>(kBlockBytes) / item);
    const auto memory = batch_.reserve(static_cast<size_t>(part * item));
    gather(view, done, memory);
    if (done == 0) {
      batch_.add(TensorData{head, memory});
    } else {
      batch_.add(MoreData{memory});
    }
    done += part;
    if (done < count) flush();
  } while (done < count && !dropping_);
  flush_if_large();
}

void Writer::tensor(std::string_view name, const OwnedTensor& tensor, double wall_secs) {
  if (dropping_) return;
  const TensorView view = tensor.view();
  batch_.keep(tensor.owner, view.bytes().size());
  batch_.add(TensorData{{.name = batch_.copy(name),
                         .dtype = tensor.dtype,
                         .shape = batch_.copy(view.shape),
                         .wall_secs = wall_secs},
                        view.bytes()});
  if (view.bytes().size() >= kBatchBytes) flush();
}

void Writer::late_tensor(std::string_view name, const OwnedTensor& tensor, double wall_secs,
                         std::shared_ptr<LateMemory> memory) {
  if (dropping_) return;
  const TensorView view = tensor.view();
  batch_.add(AwaitMemory{memory.get()});
  batch_.keep(std::move(memory), 0);
  batch_.keep(tensor.owner, view.bytes().size());
  batch_.add(TensorData{{.name = batch_.copy(name),
                         .dtype = tensor.dtype,
                         .shape = batch_.copy(view.shape),
                         .wall_secs = wall_secs},
                        view.bytes()});
  if (batch_.weight() >= kLateBatchBytes) flush();
}

void Writer::reductions(std::string_view tensor, double wall_secs,
                        std::span<const StoredReduction> values) {
  if (dropping_) return;
  batch_.add(ReductionData{batch_.copy(tensor), wall_secs, batch_.copy(values)});
  flush_if_large();
}

void Writer::late_numbers(double wall_secs, std::shared_ptr<LateNumbers> numbers, size_t bytes) {
  if (dropping_) return;
  batch_.add(LateData{wall_secs, numbers.get()});
  batch_.keep(std::move(numbers), bytes);
}

void Writer::strings(std::string_view name, std::span<const int64_t> shape,
                     std::span<const std::string_view> strings, double wall_secs) {
  if (dropping_) return;
  batch_.add(
      StringData{{.name = batch_.copy(name), .shape = batch_.copy(shape), .wall_secs = wall_secs},
                 batch_.copy_texts(strings)});
  flush_if_large();
}

void Writer::shape(std::string_view tensor, std::string_view original_name,
                   std::span<const int64_t> shape) {
  if (dropping_) return;
  batch_.add(ShapeData{batch_.copy(tensor), batch_.copy(original_name), batch_.copy(shape)});
  flush_if_large();
}

void Writer::scalar(const SavedScalar& scalar) {
  if (dropping_ || !has_outputs_) return;
  SavedScalar copy = scalar;
  copy.name = batch_.copy(scalar.name);
  batch_.add(ScalarData{copy});
}

void Writer::histogram(const SavedHistogram& histogram) {
  if (dropping_ || !has_outputs_) return;
  SavedHistogram copy = histogram;
  copy.name = batch_.copy(histogram.name);
  copy.histogram.limits = batch_.copy(histogram.histogram.limits);
  copy.histogram.counts = batch_.copy(histogram.histogram.counts);
  batch_.add(HistogramData{copy});
  flush_if_large();
}

void Writer::text(const SavedText& text) {
  if (dropping_ || !has_outputs_) return;
  SavedText copy = text;
  copy.name = batch_.copy(text.name);
  copy.markdown = batch_.copy(text.markdown);
  batch_.add(TextData{copy});
}

void Writer::membership(const SavedMembership& membership) {
  if (dropping_ || !has_outputs_) return;
  std::vector<std::string_view> copies;
  copies.reserve(membership.collections.size());
  for (std::string_view name : membership.collections) copies.push_back(batch_.copy(name));
  batch_.add(
      MembershipData{{.tensor = batch_.copy(membership.tensor),
                      .collections = batch_.copy(std::span<const std::string_view>(copies))}});
}

void Writer::end_step() {
  if (!dropping_) batch_.add(EndStep{});
  flush();
}

void Writer::put(std::string_view path, std::string_view content) {
  batch_.add(PutFile{batch_.copy(path), batch_.copy(content)});
  flush();
}

void Writer::end_job(const JobEnd& end) {
  batch_.add(EndJob{end});
  flush();
}

bool Writer::wait_until_written(std::chrono::milliseconds most) {
  flush();
  return shared_->queue.wait_until_done(most);
}

std::optional<Error> Writer::take_error() { return shared_->progress.take_error(); }

std::optional<Error> Writer::take_output_error() { return shared_->progress.take_output_error(); }

Status Writer::close() {
  flush();
  shared_->queue.close();
  if (started_ && !shared_->progress.wait_for_the_end(options_.max_wait)) {
    return Error{
        ErrorCode::io,
        fmt::format("Closing gave up: nothing was written for {} s; what is pending is lost.",
                    options_.max_wait.count() / 1000)};
  }
  return shared_->progress.result();
}

int64_t Writer::committed_steps() const { return shared_->progress.committed_steps(); }

size_t Writer::peak_queue_bytes() const { return shared_->queue.peak(); }

}  // namespace smd
