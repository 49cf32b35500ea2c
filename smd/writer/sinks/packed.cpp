#include "smd/writer/sinks/packed.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "smd/base/crc32c.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_log.h"
#include "smd/format/packed_manifest.h"
#include "smd/format/tensor_record.h"
#include "smd/writer/internal/block_builder.h"
#include "smd/writer/internal/growing_segment.h"
#include "smd/writer/internal/record_builder.h"
#include "smd/writer/run_files.h"

namespace smd {
namespace {

// A log that has reached this ends with its segment, long before a footer could not hold it.
constexpr size_t kMostLogBytes = size_t{8} << 20;

class PackedSink final : public Sink {
 public:
  explicit PackedSink(PackedSinkOptions options)
      : options_(std::move(options)),
        files_({.storage = options_.storage,
                .worker = options_.worker,
                .exclusive = options_.exclusive,
                .durable = options_.durable}) {}

  Status begin_step(const StepInfo& step) override {
    step_ = step;
    wall_secs_ = 0;
    return files_.admit();
  }

  Status tensor(const format::TensorHead& head, ByteSpan elements) override {
    note_time(head.wall_secs);
    if (format::is_block_value(head.dtype, head.shape) && size_of(head.dtype) == elements.size()) {
      internal::BlockBuilder::Number number{.dtype = head.dtype,
                                            .rank = static_cast<uint8_t>(head.shape.size())};
      std::copy(elements.begin(), elements.end(), number.bits.begin());
      block_.add(head.name, number);
      for (std::string_view name : head.other_names) block_.add(name, number);
      return {};
    }
    SMD_RETURN_IF_ERROR(open_step());
    return records_.tensor(head, elements);
  }

  Status more(ByteSpan elements) override { return records_.more(elements); }

  Status reductions(std::string_view tensor, double wall_secs,
                    std::span<const StoredReduction> values) override {
    note_time(wall_secs);
    numbers_.clear();
    for (const StoredReduction& value : values) {
      numbers_.push_back({.op = value.name, .dtype = value.dtype, .bits = value.bits});
    }
    block_.add(tensor, numbers_);
    return {};
  }

  Status strings(const format::TensorHead& head,
                 std::span<const std::string_view> strings) override {
    note_time(head.wall_secs);
    SMD_RETURN_IF_ERROR(open_step());
    return records_.strings(head, strings);
  }

  Status shape(std::string_view tensor, std::string_view original_name,
               std::span<const int64_t> shape) override {
    shapes_.push_back({.tensor = names_.add(tensor),
                       .original_name = names_.add(original_name),
                       .shape = Shape(shape.begin(), shape.end())});
    return {};
  }

  Status end_step() override {
    if (block_.empty() && records_.empty() && shapes_.empty()) return {};
    files_.publish_missing();
    (void)publish_notes();  // its failures were reported before
    SMD_RETURN_IF_ERROR(open_step());
    internal::BlockBuilder::Schema& schema = block_.finish(values_);
    make_entries(schema);
    const bool is_first = !segment_->has_steps();
    SMD_RETURN_IF_ERROR(segment_->commit_step(entries_));
    // From here on the step is there, and so are the names and the schema that it brought.
    if (is_first) logged_.first_saved = options_.clock->now();
    logged_.names = names_.size();
    if (records_.has_parts()) logged_.features |= format::kSplitTensors;
    schema.logged = true;
    logged_.has_tensors = logged_.has_tensors || !records_.empty();
    reset_step();
    if (const auto at = due(); at && options_.clock->now() >= *at) (void)close_segment();
    return {};
  }

  std::optional<std::chrono::steady_clock::time_point> due() const override {
    if (!options_.spooled || !segment_ || segment_->in_step() || !segment_->has_steps()) {
      return std::nullopt;
    }
    return logged_.first_saved + options_.max_segment_age;
  }

  Status tick() override { return close_segment(); }

  void abandon_step() override {
    if (segment_) segment_->abandon_step();
    reset_step();
  }

  Status put(std::string_view path, std::string_view content) override {
    Status status = files_.put(path, content);
    if (!options_.spooled) return status;
    add_note({.files = {{std::string(path), std::string(content)}}});
    Status noted = publish_notes();
    return status.ok() ? std::move(noted) : std::move(status);
  }

  Status end_job(const JobEnd& end) override {
    // Before the end marker, so that readers who saw it find everything closed.
    const Status closed = close_segment();
    SMD_TRY(const bool ended, files_.end_job(end));
    if (ended && options_.spooled) add_note({.end_secs = options_.clock->unix_secs()});
    SMD_RETURN_IF_ERROR(publish_notes());
    return closed;
  }

  Status close() override {
    const Status segment = close_segment();
    const Status files = files_.close();
    return segment.ok() ? files : segment;
  }

 private:
  // What the open segment and its log hold.
  struct Logged {
    uint32_t names = 0;     // how many
    uint64_t features = 0;  // those that the log says are needed
    bool has_tensors = false;
    std::chrono::steady_clock::time_point first_saved;  // when the first step was
  };

  // The numbers of a step share one time, that of the first.
  void note_time(double wall_secs) {
    if (wall_secs_ == 0) wall_secs_ = wall_secs;
  }

  // Before the first byte of a step: a segment with room for it.
  Status open_step() {
    if (segment_ && segment_->in_step()) return {};
    const uint64_t most =
        logged_.has_tensors ? options_.max_tensor_segment_bytes : options_.max_number_segment_bytes;
    // What cannot be closed properly has its log all the same.
    if (segment_ && (segment_->size_bytes() >= most || segment_->log_bytes() >= kMostLogBytes)) {
      (void)close_segment();
    }
    if (!segment_) SMD_RETURN_IF_ERROR(open_segment());
    segment_->begin_step();
    records_.begin_step(*segment_, step_);
    return {};
  }

  Status open_segment() {
    if (writer_.empty()) SMD_RETURN_IF_ERROR(choose_writer());
    const uint32_t number = sequence_++;  // a name that did not work is not tried again
    SMD_TRY(segment_,
            internal::GrowingSegment::open(*options_.storage, {.writer = writer_, .number = number},
                                           options_.durable));
    return {};
  }

  // What readers need to know beside the steps; sent like a segment.
  void add_note(format::PackedManifest note) { notes_.push_back(std::move(note)); }

  // Those that cannot be written are kept for another try.
  Status publish_notes() {
    while (!notes_.empty()) {
      if (writer_.empty()) SMD_RETURN_IF_ERROR(choose_writer());
      notes_.front().writer = writer_;
      SMD_RETURN_IF_ERROR(files_.publish(format::note_file_name(writer_, note_sequence_),
                                         format::encode_manifest(notes_.front())));
      ++note_sequence_;
      notes_.pop_front();
    }
    return {};
  }

  // Later than every earlier life of this worker, even if a clock went back.
  Status choose_writer() {
    constexpr double kMicros = 1e6;
    auto micros = std::max(options_.least_micros,
                           static_cast<uint64_t>(options_.clock->unix_secs() * kMicros));
    const std::string prefix = std::string(format::kLogFolder) + "/" + options_.worker + ".";
    std::vector<storage::FileInfo> logs;
    if (!options_.spooled) {  // a listing of the store would make the writer wait for the network
      SMD_TRY(logs, options_.storage->list(format::kLogFolder, prefix));
    }
    for (const auto& log : logs) {
      if (!log.path.starts_with(prefix)) continue;
      if (const auto name = format::parse_packed_file_name(log.path)) {
        micros = std::max(micros, name->micros + 1);
      }
    }
    writer_ = format::writer_name(options_.worker,
                                  format::incarnation_text(micros, std::random_device()()));
    return {};
  }

  // Without an open segment nothing happens.
  Status close_segment() {
    auto segment = std::exchange(segment_, std::nullopt);
    if (!segment) return {};
    logged_ = {};
    block_.forget_logged();
    return segment->close();
  }

  // The step's entries, and the block that holds them, too, at the end of the buffer.
  void make_entries(const internal::BlockBuilder::Schema& schema) {
    entries_.clear();
    // Stands again before the first step that an older reader would misread.
    const uint64_t features = records_.has_parts() ? format::kSplitTensors : 0;
    if (!segment_->has_steps() || (features & ~logged_.features) != 0) {
      format::append_log_entry(entries_,
                               format::PackedHeader{.features = logged_.features | features,
                                                    .worker = options_.worker,
                                                    .writer = writer_,
                                                    .segment = segment_->path(),
                                                    .created_secs = options_.clock->unix_secs()});
    }
    if (names_.size() > logged_.names) {
      format::PackedNames fresh{.first_id = logged_.names};
      for (uint32_t id = logged_.names; id < names_.size(); ++id) fresh.names.push_back(names_[id]);
      format::append_log_entry(entries_, std::move(fresh));
    }
    if (!schema.logged) format::append_log_entry(entries_, schema.packed);

    format::PackedStep step{.info = step_,
                            .wall_secs = wall_secs_,
                            .base = segment_->base(),
                            .schema = schema.packed.id,
                            .block_crc32c = crc32c(values_),
                            .raws = std::move(records_.raws()),
                            .shapes = std::move(shapes_)};
    const size_t before = entries_.size();
    format::append_log_entry(entries_, step);  // for its size
    const uint64_t begin = segment_->position();
    const uint64_t before_block = begin - segment_->base();
    format::BlockHead block{.step = step_,
                            .wall_secs = wall_secs_,
                            .offset = begin,
                            .entries = entries_,
                            .values_bytes = values_.size()};
    const format::BlockPlan plan = format::plan_block(block);
    step.block_offset = before_block + plan.values_offset;
    step.length = before_block + plan.record_bytes;
    entries_.resize(before);
    format::append_log_entry(entries_, step);
    block.entries = entries_;
    format::append_block(segment_->buffer(), block, values_);
    records_.raws() = std::move(step.raws);
  }

  void reset_step() {
    records_.clear();
    shapes_.clear();
    block_.clear();
  }

  const PackedSinkOptions options_;
  RunFiles files_;
  std::string writer_;                        // once there is something to write
  uint32_t sequence_ = 0;                     // of the next segment
  std::deque<format::PackedManifest> notes_;  // that could not be published yet
  uint32_t note_sequence_ = 0;                // of the next one

  std::optional<internal::GrowingSegment> segment_;
  Logged logged_;

  // Of the open step.
  StepInfo step_;
  double wall_secs_ = 0;
  std::vector<format::PackedShape> shapes_;

  internal::NameTable names_;
  internal::BlockBuilder block_{names_};
  internal::RecordBuilder records_{names_, options_.max_record_bytes};
  std::vector<internal::BlockBuilder::Number> numbers_;
  Bytes values_;
  std::string entries_;
};

}  // namespace

std::unique_ptr<Sink> packed_sink(PackedSinkOptions options) {
  return std::make_unique<PackedSink>(std::move(options));
}

}  // namespace smd
