#include "smd/writer/writer.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "smd/base/bounded_queue.h"
#include "smd/base/signals_blocked.h"

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

}  // namespace

struct Writer::Shared {
  Shared(std::unique_ptr<Sink> s, std::vector<std::unique_ptr<Output>> o, size_t limit)
      : sink(std::move(s)), outputs(std::move(o)), queue(limit) {}

  std::unique_ptr<Sink> sink;                    // writer thread only
  std::vector<std::unique_ptr<Output>> outputs;  // writer thread only
  BoundedQueue<Batch> queue;

  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::optional<Error> first_error;
  std::optional<Error> new_error;
  std::optional<Error> output_error;
  int64_t lost_steps = 0;
  int64_t committed_steps = 0;
  uint64_t progress = 0;  // batches dealt with
  bool finished = false;

  void report(Error error) {
    std::lock_guard lock(mutex);
    if (!first_error) first_error = error;
    if (!new_error) new_error = std::move(error);
  }
  void report_output(Status status) {
    if (status.ok()) return;
    std::lock_guard lock(mutex);
    if (!output_error) output_error = std::move(status.error());
  }
  // Of the sink and the outputs, the earliest. Writer thread only, as tick().
  std::optional<std::chrono::steady_clock::time_point> due() const {
    auto first = sink->due();
    for (const auto& output : outputs) {
      const auto own = output->due();
      if (own && (!first || *own < *first)) first = own;
    }
    return first;
  }
  void tick() {
    const auto now = std::chrono::steady_clock::now();
    if (const auto own = sink->due(); own && *own <= now) {
      if (Status status = sink->tick(); !status.ok()) report(std::move(status.error()));
    }
    for (const auto& output : outputs) {
      if (const auto own = output->due(); own && *own <= now) report_output(output->tick());
    }
  }
  void lose_step() {
    std::lock_guard lock(mutex);
    ++lost_steps;
  }
};

namespace {

// Applies commands to the sink; a failure costs the open step and no other. Writer thread only.
class Executor final {
 public:
  template <typename Shared>
  void run(Shared& shared, const Command& command) {
    if (auto* late = std::get_if<LateData>(&command)) return run_late(shared, *late);
    if (auto* late = std::get_if<AwaitMemory>(&command)) {
      if (Status filled = late->memory->wait(); !filled.ok() && open_ && !broken_) {
        fail(shared, std::move(filled.error()));
      }
      return;
    }
    Sink& sink = *shared.sink;
    if (const auto apart = apply_apart(sink, command)) {
      if (!apart->ok()) shared.report(apart->error());
      return;
    }
    if (apply_to_outputs(shared, command)) return;
    if (std::holds_alternative<BeginStep>(command)) {
      if (open_) fail(shared, std::nullopt);  // its end was dropped
      open_ = true;
      broken_ = false;
    }
    run_on_sink(shared, command);
    if (!std::holds_alternative<EndStep>(command)) return;
    open_ = false;
    for (const auto& output : shared.outputs) shared.report_output(output->end_step());
  }

  template <typename Shared>
  void finish(Shared& shared) {
    if (open_ && !broken_) fail(shared, std::nullopt);
    if (Status status = shared.sink->close(); !status.ok())
      shared.report(std::move(status.error()));
    for (const auto& output : shared.outputs) shared.report_output(output->close());
  }

 private:
  template <typename Shared>
  void run_late(Shared& shared, const LateData& late) {
    auto values = late.reductions->wait();
    if (values.ok()) {
      if (const auto histogram = late.reductions->histogram()) {
        run(shared, HistogramData{*histogram});
      }
      if (!values->empty()) run(shared, ReductionData{late.tensor, late.wall_secs, *values});
    } else if (open_ && !broken_) {
      fail(shared, std::move(values.error()));
    }
  }

  template <typename Shared>
  void run_on_sink(Shared& shared, const Command& command) {
    if (!open_ || broken_) return;
    Sink& sink = *shared.sink;
    if (Status status = apply(sink, command); !status.ok()) {
      fail(shared, std::move(status.error()));
      return;
    }
    if (std::holds_alternative<EndStep>(command)) {
      std::lock_guard lock(shared.mutex);
      ++shared.committed_steps;
    }
  }

  // True: nobody else wants it.
  template <typename Shared>
  bool apply_to_outputs(Shared& shared, const Command& command) {
    if (auto* c = std::get_if<BeginStep>(&command)) step_ = c->step;
    const auto tell = [&](auto&& f) {
      for (const auto& output : shared.outputs) shared.report_output(f(*output));
      return true;
    };
    if (auto* c = std::get_if<ScalarData>(&command)) {
      return tell([&](Output& output) { return output.scalar(step_, c->scalar); });
    }
    if (auto* c = std::get_if<HistogramData>(&command)) {
      return tell([&](Output& output) { return output.histogram(step_, c->histogram); });
    }
    if (auto* c = std::get_if<TextData>(&command)) {
      return tell([&](Output& output) { return output.text(step_, c->text); });
    }
    if (auto* c = std::get_if<MembershipData>(&command)) {
      return tell([&](Output& output) { return output.membership(step_, c->membership); });
    }
    if (auto* c = std::get_if<ReductionData>(&command)) {
      const SavedReductions saved{c->tensor, c->wall_secs, c->values};
      tell([&](Output& output) { return output.reductions(step_, saved); });
    }
    if (auto* c = std::get_if<ShapeData>(&command)) {
      const SavedShape saved{c->tensor, c->shape};
      tell([&](Output& output) { return output.shape(step_, saved); });
    }
    if (auto* c = std::get_if<StringData>(&command)) {
      const SavedStrings saved{c->head.name, c->head.shape, c->head.wall_secs, c->strings};
      tell([&](Output& output) { return output.strings(step_, saved); });
    }
    if (auto* c = std::get_if<TensorData>(&command)) begin_tensor(shared, *c);
    if (auto* c = std::get_if<MoreData>(&command)) more_tensor(shared, c->elements);
    return false;
  }

  // A tensor comes whole, or in parts, which are put together for those who want it.
  template <typename Shared>
  void begin_tensor(Shared& shared, const TensorData& data) {
    partial_.clear();
    wanting_.clear();
    ask(shared, data.head.name);
    for (std::string_view name : data.head.other_names) ask(shared, name);
    if (wanting_.empty()) return;
    const auto count = element_count(data.head.shape);
    whole_bytes_ = count.ok() ? static_cast<size_t>(*count) * size_of(data.head.dtype) : 0;
    if (data.elements.size() >= whole_bytes_) return tell_tensor(shared, data.head, data.elements);
    // What the head points to lives in the batch of the first part.
    names_.clear();
    for (const Wanting& wanting : wanting_) names_.emplace_back(wanting.name);
    for (size_t i = 0; i < names_.size(); ++i) wanting_[i].name = names_[i];
    shape_.assign(data.head.shape.begin(), data.head.shape.end());
    head_ = {.dtype = data.head.dtype, .shape = shape_, .wall_secs = data.head.wall_secs};
    partial_.reserve(whole_bytes_);
    partial_.insert(partial_.end(), data.elements.begin(), data.elements.end());
  }

  template <typename Shared>
  void ask(Shared& shared, std::string_view name) {
    for (const auto& output : shared.outputs) {
      if (output->wants_tensor(name)) wanting_.push_back({output.get(), name});
    }
  }

  template <typename Shared>
  void more_tensor(Shared& shared, ByteSpan elements) {
    if (wanting_.empty()) return;
    partial_.insert(partial_.end(), elements.begin(), elements.end());
    if (partial_.size() < whole_bytes_) return;
    tell_tensor(shared, head_, partial_);
    partial_ = {};
  }

  template <typename Shared>
  void tell_tensor(Shared& shared, const format::TensorHead& head, ByteSpan elements) {
    for (const Wanting& wanting : wanting_) {
      const SavedTensor saved{wanting.name, head.dtype, head.shape, head.wall_secs, elements};
      shared.report_output(wanting.output->tensor(step_, saved));
    }
    wanting_.clear();
  }

  // What is no part of a step; nullopt: it is.
  static std::optional<Status> apply_apart(Sink& sink, const Command& command) {
    if (auto* c = std::get_if<PutFile>(&command)) return sink.put(c->path, c->content);
    if (auto* c = std::get_if<EndJob>(&command)) return sink.end_job(c->end);
    return std::nullopt;
  }

  static Status apply(Sink& sink, const Command& command) {
    if (auto* c = std::get_if<TensorData>(&command)) return sink.tensor(c->head, c->elements);
    if (auto* c = std::get_if<MoreData>(&command)) return sink.more(c->elements);
    if (auto* c = std::get_if<ReductionData>(&command)) {
      return sink.reductions(c->tensor, c->wall_secs, c->values);
    }
    if (auto* c = std::get_if<StringData>(&command)) return sink.strings(c->head, c->strings);
    if (auto* c = std::get_if<ShapeData>(&command)) {
      return sink.shape(c->tensor, c->original_name, c->shape);
    }
    if (auto* c = std::get_if<BeginStep>(&command)) return sink.begin_step(c->step);
    return sink.end_step();
  }

  template <typename Shared>
  void fail(Shared& shared, std::optional<Error> error) {
    shared.sink->abandon_step();
    if (!broken_) shared.lose_step();
    broken_ = true;
    if (error) shared.report(std::move(*error));
  }

  // Who wants a tensor, under which of its names.
  struct Wanting {
    Output* output;
    std::string_view name;
  };

  StepInfo step_;
  // Of a tensor that comes in parts.
  std::vector<Wanting> wanting_;
  format::TensorHead head_;
  std::vector<std::string> names_;
  std::vector<int64_t> shape_;
  size_t whole_bytes_ = 0;
  Bytes partial_;
  bool open_ = false;
  bool broken_ = false;
};

}  // namespace

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
  Executor executor;
  while (true) {
    if (const auto due = shared->due(); due && !shared->queue.wait_until(*due)) {
      shared->tick();
      continue;
    }
    auto item = shared->queue.pop();
    if (!item) break;
    {
      const Batch batch = std::move(item->first);
      for (const Command& command : batch.commands()) executor.run(*shared, command);
    }
    shared->queue.done(item->second);
    {
      std::lock_guard lock(shared->mutex);
      ++shared->progress;
    }
    shared->changed.notify_all();
  }
  executor.finish(*shared);
  {
    std::lock_guard lock(shared->mutex);
    shared->finished = true;
  }
  shared->changed.notify_all();
}

void Writer::flush() {
  if (batch_.empty()) return;
  if (!started_) {
    const SignalsBlocked inherited_by_the_thread;
    std::thread(&Writer::run, shared_).detach();
    started_ = true;
  }
  const size_t weight = std::max<size_t>(batch_.weight(), 1);
  Batch full = std::exchange(batch_, Batch(pool_));
  const auto wait = stalled_ ? std::chrono::milliseconds(0) : options_.max_wait;
  if (shared_->queue.push(std::move(full), weight, wait)) {
    ++handed_over_;
    stalled_ = false;
    return;
  }
  if (!stalled_) {
    shared_->report(
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

void Writer::late_reductions(std::string_view tensor, double wall_secs,
                             std::shared_ptr<LateReductions> reductions, size_t bytes) {
  if (dropping_) return;
  batch_.add(LateData{batch_.copy(tensor), wall_secs, reductions.get()});
  batch_.keep(std::move(reductions), bytes);
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
  shared_->queue.hurry();
  std::unique_lock lock(shared_->mutex);
  return shared_->changed.wait_for(lock, most, [&] { return shared_->progress >= handed_over_; });
}

std::optional<Error> Writer::take_error() {
  std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->new_error, std::nullopt);
}

std::optional<Error> Writer::take_output_error() {
  std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->output_error, std::nullopt);
}

Status Writer::close() {
  flush();
  shared_->queue.close();
  std::unique_lock lock(shared_->mutex);
  while (started_ && !shared_->finished) {
    const uint64_t seen = shared_->progress;
    const bool moved = shared_->changed.wait_for(
        lock, options_.max_wait, [&] { return shared_->finished || shared_->progress != seen; });
    if (!moved) {
      return Error{
          ErrorCode::io,
          fmt::format("Closing gave up: nothing was written for {} s; what is pending is lost.",
                      options_.max_wait.count() / 1000)};
    }
  }
  if (!shared_->first_error) return {};
  Error error = *shared_->first_error;
  if (shared_->lost_steps > 0) {
    error.message += fmt::format(" ({} step{} could not be saved.)", shared_->lost_steps,
                                 shared_->lost_steps == 1 ? "" : "s");
  }
  return error;
}

int64_t Writer::committed_steps() const {
  std::lock_guard lock(shared_->mutex);
  return shared_->committed_steps;
}

size_t Writer::peak_queue_bytes() const { return shared_->queue.peak(); }

}  // namespace smd
