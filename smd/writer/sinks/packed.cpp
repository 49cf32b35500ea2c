#include "smd/writer/sinks/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "smd/base/crc32c.h"
#include "smd/base/signals_blocked.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_log.h"
#include "smd/format/packed_manifest.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "smd/writer/internal/block_builder.h"
#include "smd/writer/internal/growing_segment.h"
#include "smd/writer/run_files.h"

namespace smd {
namespace {

// From here on a thread of its own for the checksum pays.
constexpr size_t kApartBytes = size_t{4} << 20;
// A log that has reached this ends with its segment, long before a footer could not hold it.
constexpr size_t kMostLogBytes = size_t{8} << 20;

// No record of a large tensor has more.
constexpr uint32_t kMostPadding = 1024;

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
    const uint64_t bytes = element_bytes(head);
    if (format::is_block_value(head.dtype, head.shape) && bytes == elements.size()) {
      internal::BlockBuilder::Number number{.dtype = head.dtype,
                                            .rank = static_cast<uint8_t>(head.shape.size())};
      std::copy(elements.begin(), elements.end(), number.bits.begin());
      block_.add(head.name, number);
      for (std::string_view name : head.other_names) block_.add(name, number);
      return {};
    }
    SMD_RETURN_IF_ERROR(open_step());
    format::TensorHead packed = head;
    packed.as_is = true;
    const uint64_t count = bytes / size_of(head.dtype);
    incoming_ = Incoming{.name = std::string(head.name),
                         .other_names = {head.other_names.begin(), head.other_names.end()},
                         .first_raw = raws_.size(),
                         .dtype = head.dtype,
                         .shape = Shape(head.shape.begin(), head.shape.end()),
                         .wall_secs = head.wall_secs,
                         .count = count};
    packed.padding =
        bytes >= format::kLargeTensorBytes ? kMostPadding : uint32_t{format::kPackedAlignment};
    const uint64_t record = format::record_bytes(step_, packed, count);
    if (record > options_.max_record_bytes && count > 1) plan_parts(record - bytes);
    begin_record();
    return more(elements);
  }

  Status more(ByteSpan elements) override {
    for (;;) {
      const ByteSpan now = elements.first(std::min<uint64_t>(pending_->left, elements.size()));
      SMD_RETURN_IF_ERROR(append_checked(now));
      pending_->left -= now.size();
      if (pending_->left > 0) return {};
      elements = elements.subspan(now.size());
      SMD_RETURN_IF_ERROR(end_record());
      if (incoming_->next == incoming_->count) break;
      begin_record();
    }
    list_other_names();
    incoming_.reset();
    return {};
  }

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
    format::TensorHead packed = head;
    packed.dtype = DType::string;
    std::string& buffer = segment_->buffer();
    const size_t start = buffer.size();
    begin_raw(packed, 0);
    format::append_string_record(buffer, step_, packed, strings);
    const ByteSpan record = as_bytes(buffer).subspan(start);
    raws_.back().length = record.size();
    raws_.back().crc32c = crc32c(
        record.subspan(format::kRecordHeaderBytes, record.size() - format::kRecordOverheadBytes));
    return segment_->flush_if_full();
  }

  Status shape(std::string_view tensor, std::string_view original_name,
               std::span<const int64_t> shape) override {
    shapes_.push_back({.tensor = names_.add(tensor),
                       .original_name = names_.add(original_name),
                       .shape = Shape(shape.begin(), shape.end())});
    return {};
  }

  Status end_step() override {
    if (block_.empty() && raws_.empty() && shapes_.empty()) return {};
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
    if (split_) logged_.features |= format::kSplitTensors;
    schema.logged = true;
    logged_.has_tensors = logged_.has_tensors || !raws_.empty();
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
  // A tensor whose elements are arriving.
  struct Incoming {
    std::string name;
    std::vector<std::string> other_names;
    size_t first_raw = 0;  // of its records
    DType dtype = DType::float32;
    Shape shape;
    double wall_secs = 0;
    uint64_t count = 0;     // of elements
    uint64_t per_part = 0;  // 0: it is one record
    uint64_t next = 0;      // the first element of the next record
  };
  // The record that takes them.
  struct Pending {
    uint64_t left = 0;  // bytes of elements to come
    uint32_t crc = 0;   // of the payload so far
    std::string end;
  };

  // What the open segment and its log hold.
  struct Logged {
    uint32_t names = 0;     // how many
    uint64_t features = 0;  // those that the log says are needed
    bool has_tensors = false;
    std::chrono::steady_clock::time_point first_saved;  // when the first step was
  };

  // As many whole rows as fit into a record, or elements where not even one row does.
  void plan_parts(uint64_t overhead) {
    const size_t size = size_of(incoming_->dtype);
    const uint64_t most = options_.max_record_bytes;
    const uint64_t fit = std::max<uint64_t>((most - std::min(most, overhead)) / size, 1);
    const uint64_t rows = static_cast<uint64_t>(incoming_->shape.front());
    const uint64_t row = incoming_->count / rows;
    incoming_->per_part = row <= fit ? fit / row * row : fit;
    split_ = true;
  }

  void begin_record() {
    const uint64_t left = incoming_->count - incoming_->next;
    const bool split = incoming_->per_part > 0;
    const uint64_t count = split ? std::min(left, incoming_->per_part) : left;
    Shape part = incoming_->shape;
    if (split) {
      const uint64_t row = incoming_->count / static_cast<uint64_t>(part.front());
      if (count % row == 0) {
        part.front() = static_cast<int64_t>(count / row);
      } else {
        part = {static_cast<int64_t>(count)};
      }
    }
    const std::vector<std::string_view> other_names(incoming_->other_names.begin(),
                                                    incoming_->other_names.end());
    format::TensorHead head{.name = incoming_->name,
                            .dtype = incoming_->dtype,
                            .shape = part,
                            .wall_secs = incoming_->wall_secs,
                            .other_names = other_names,
                            .as_is = true};
    std::string& buffer = segment_->buffer();
    if (count * size_of(head.dtype) >= format::kLargeTensorBytes) {
      format::append_filling(buffer, step_, head, count, segment_->position());
      head.padding = format::aligning_padding(step_, head, count, segment_->position(),
                                              format::kLargeAlignment);
    }
    if (head.padding.value_or(UINT32_MAX) > kMostPadding) {
      head.padding = format::aligning_padding(step_, head, count, segment_->position());
    }
    begin_raw(head, format::record_bytes(step_, head, count));
    if (split) {
      raws_.back().shape = incoming_->shape;
      raws_.back().first = incoming_->next;
      raws_.back().count = count;
    }
    incoming_->next += count;
    const size_t start = buffer.size();
    format::append_record_start(buffer, step_, head, count);
    pending_ = Pending{.left = count * size_of(incoming_->dtype)};
    pending_->crc = crc32c(as_bytes(buffer).subspan(start + format::kRecordHeaderBytes));
    format::append_record_end(pending_->end, step_, head);
  }

  // The same records under the other names of the tensor.
  void list_other_names() {
    const size_t end = raws_.size();
    for (const std::string& name : incoming_->other_names) {
      for (size_t i = incoming_->first_raw; i < end; ++i) {
        format::PackedRaw raw = raws_[i];
        raw.tensor = names_.add(name);
        raws_.push_back(std::move(raw));
      }
    }
  }

  Status end_record() {
    const ByteSpan end = as_bytes(pending_->end);
    raws_.back().crc32c = crc32c(end.first(end.size() - format::kRecordFooterBytes), pending_->crc);
    segment_->buffer() += pending_->end;
    pending_.reset();
    return segment_->flush_if_full();
  }

  static uint64_t element_bytes(const format::TensorHead& head) {
    const auto count = static_cast<uint64_t>(TensorView{.shape = head.shape}.size());
    return count * size_of(head.dtype);
  }

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
    const uint64_t features = split_ ? format::kSplitTensors : 0;
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
                            .raws = std::move(raws_),
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
    raws_ = std::move(step.raws);
  }

  // A record of this length begins here.
  void begin_raw(const format::TensorHead& head, uint64_t length) {
    raws_.push_back({.tensor = names_.add(head.name),
                     .offset = segment_->position() - segment_->base(),
                     .length = length,
                     .dtype = head.dtype,
                     .shape = Shape(head.shape.begin(), head.shape.end())});
  }

  // Appends elements and takes them into the checksum: of many at the same time, as each takes a
  // good part of the other's time.
  Status append_checked(ByteSpan elements) {
    if (elements.size() < kApartBytes) {
      pending_->crc = crc32c(elements, pending_->crc);
      return segment_->append(elements);
    }
    std::thread checksum;
    {
      const SignalsBlocked inherited_by_the_thread;
      checksum = std::thread([this, elements] { pending_->crc = crc32c(elements, pending_->crc); });
    }
    Status appended = segment_->append(elements);
    checksum.join();
    return appended;
  }

  void reset_step() {
    incoming_.reset();
    pending_.reset();
    split_ = false;
    raws_.clear();
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
  std::optional<Incoming> incoming_;
  std::optional<Pending> pending_;
  bool split_ = false;  // a tensor of the step is stored in parts
  std::vector<format::PackedRaw> raws_;
  std::vector<format::PackedShape> shapes_;

  internal::NameTable names_;
  internal::BlockBuilder block_{names_};
  std::vector<internal::BlockBuilder::Number> numbers_;
  Bytes values_;
  std::string entries_;
};

}  // namespace

std::unique_ptr<Sink> packed_sink(PackedSinkOptions options) {
  return std::make_unique<PackedSink>(std::move(options));
}

}  // namespace smd
