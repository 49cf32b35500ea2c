#include "smd/writer/sinks/original.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "smd/base/crc32c.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tfrecord.h"
#include "smd/tensor/widen.h"
#include "smd/types/tensor_name.h"
#include "smd/writer/run_files.h"

namespace smd {
namespace {

// Small records gather in memory up to this size before they go to the file.
constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr uint64_t kAlignmentBytes = uint64_t{64} << 10;
// For records from this size on, space is reserved in the file.
constexpr uint64_t kLargeBytes = uint64_t{8} << 20;
// Elements of at most this many bytes are copied into the buffer, longer ones written from where
// they are.
constexpr size_t kCopyBytes = size_t{16} << 10;

class OriginalSink final : public Sink {
 public:
  explicit OriginalSink(OriginalSinkOptions options)
      : options_(std::move(options)),
        files_({.storage = options_.storage,
                .worker = options_.worker,
                .exclusive = options_.exclusive,
                .durable = options_.durable}) {}

  Status begin_step(const StepInfo& step) override {
    step_ = step;
    return admit();
  }

  Status tensor(const format::TensorHead& head, ByteSpan elements) override {
    const auto count = static_cast<uint64_t>(TensorView{.shape = head.shape}.size());
    const uint64_t bytes = count * size_of(head.dtype);
    SMD_RETURN_IF_ERROR(open_file());
    if (bytes == elements.size() && bytes <= kCopyBytes && !is_stored_widened(head.dtype)) {
      const size_t start = buffer_.size();
      format::append_record(buffer_, step_, head, elements);
      add_to_index(head, start);
      return flush_if_full();
    }
    const uint64_t length = format::record_bytes(step_, head, count);
    if (length >= kLargeBytes) {
      SMD_RETURN_IF_ERROR(flush());
      file_->expect(length);
    }
    pending_ =
        Pending{.names = names_of(head), .dtype = head.dtype, .length = length, .left = bytes};
    const size_t start = buffer_.size();
    format::append_record_start(buffer_, step_, head, count);
    pending_->crc = crc32c(as_bytes(buffer_).subspan(start + format::kRecordHeaderBytes));
    format::append_record_end(pending_->end, step_, head);
    return more(elements);
  }

  Status more(ByteSpan elements) override {
    SMD_RETURN_IF_ERROR(append_elements(pending_->dtype, elements));
    pending_->left -= elements.size();
    if (pending_->left > 0) return {};
    const ByteSpan end = as_bytes(pending_->end);
    pending_->crc = crc32c(end.first(end.size() - format::kRecordFooterBytes), pending_->crc);
    buffer_ += pending_->end;
    for (const std::string& name : pending_->names) {
      index_.add_tensor(name, offset_, pending_->length, pending_->crc);
    }
    offset_ += pending_->length;
    pending_.reset();
    return flush_if_full();
  }

  Status reductions(std::string_view tensor, double wall_secs,
                    std::span<const StoredReduction> values) override {
    static constexpr int64_t kOne[] = {1};
    SMD_RETURN_IF_ERROR(open_file());
    for (const StoredReduction& value : values) {
      name_.assign(kReductionPrefix).append(value.name).append("/").append(tensor);
      const size_t start = buffer_.size();
      format::append_record(
          buffer_, step_,
          {.name = name_, .dtype = value.dtype, .shape = kOne, .wall_secs = wall_secs},
          value.bytes());
      add_to_index({.name = name_}, start);
    }
    return flush_if_full();
  }

  Status strings(const format::TensorHead& head,
                 std::span<const std::string_view> strings) override {
    SMD_RETURN_IF_ERROR(open_file());
    const size_t start = buffer_.size();
    format::append_string_record(buffer_, step_, head, strings);
    add_to_index(head, start);
    return flush_if_full();
  }

  Status shape(std::string_view tensor, std::string_view original_name,
               std::span<const int64_t> shape) override {
    index_.add_shape(tensor, original_name, shape);
    return {};
  }

  Status end_step() override {
    if (index_.empty()) return {};
    files_.publish_missing();
    const std::string index_file = format::index_file_name(step_.step, options_.worker);
    std::string event_file;
    if (file_) {
      SMD_RETURN_IF_ERROR(flush());
      // An earlier run's index must not point into our event file, not even for a moment.
      if (resuming_) SMD_RETURN_IF_ERROR(options_.storage->remove(index_file));
      SMD_RETURN_IF_ERROR(file_->commit());
      event_file = format::event_file_name(step_.step, options_.worker);
    }
    const std::string json = index_.finish(step_, event_file);
    SMD_RETURN_IF_ERROR(files_.publish(index_file, json));
    abandon_step();
    return {};
  }

  void abandon_step() override {
    file_.reset();
    buffer_.clear();
    index_ = {};
    pending_.reset();
    offset_ = 0;
    written_ = 0;
  }

  Status put(std::string_view path, std::string_view content) override {
    return files_.put(path, content);
  }

  Status end_job(const JobEnd& end) override {
    SMD_RETURN_IF_ERROR(files_.end_job(end));
    return {};
  }

  Status close() override { return files_.close(); }

 private:
  // A tensor whose elements are arriving.
  struct Pending {
    std::vector<std::string> names;
    DType dtype = DType::float32;
    uint64_t length = 0;  // of the record
    uint64_t left = 0;    // bytes of elements to come
    uint32_t crc = 0;     // of the payload so far
    std::string end;
  };

  Status admit() {
    SMD_RETURN_IF_ERROR(files_.admit());
    if (looked_) return {};
    // A store that cannot be asked now may hold steps.
    const auto earlier = options_.storage->list("index", "");
    resuming_ = !earlier.ok() || !earlier->empty();
    looked_ = true;
    return {};
  }

  Status open_file() {
    if (file_) return {};
    SMD_TRY(file_, options_.storage->create(format::event_file_name(step_.step, options_.worker),
                                            files_.create_options()));
    return {};
  }

  static std::vector<std::string> names_of(const format::TensorHead& head) {
    std::vector<std::string> names{std::string(head.name)};
    names.insert(names.end(), head.other_names.begin(), head.other_names.end());
    return names;
  }

  // The record that begins at `start` of the buffer and ends with it.
  void add_to_index(const format::TensorHead& head, size_t start) {
    const ByteSpan record = as_bytes(buffer_).subspan(start);
    const ByteSpan payload =
        record.subspan(format::kRecordHeaderBytes, record.size() - format::kRecordOverheadBytes);
    const uint32_t crc = crc32c(payload);
    index_.add_tensor(head.name, offset_, record.size(), crc);
    for (std::string_view name : head.other_names) {
      index_.add_tensor(name, offset_, record.size(), crc);
    }
    offset_ += record.size();
  }

  Status append_elements(DType dtype, ByteSpan elements) {
    if (is_stored_widened(dtype)) return append_widened(dtype, elements);
    pending_->crc = crc32c(elements, pending_->crc);
    // Up to a boundary of the file only, as the kernel is fastest with whole aligned pages; the few
    // bytes past it wait in the buffer.
    const uint64_t end = written_ + buffer_.size() + elements.size();
    const uint64_t boundary = end / kAlignmentBytes * kAlignmentBytes;
    if (elements.size() <= kCopyBytes || boundary <= written_ + buffer_.size()) {
      buffer_ += as_text(elements);
      return flush_if_full();
    }
    const ByteSpan now = elements.first(elements.size() - (end - boundary));
    const ByteSpan pieces[] = {as_bytes(buffer_), now};
    SMD_RETURN_IF_ERROR(file_->append(pieces));
    written_ = boundary;
    buffer_ = as_text(elements.subspan(now.size()));
    return {};
  }

  Status append_widened(DType dtype, ByteSpan elements) {
    constexpr size_t kElements = 16 << 10;
    while (!elements.empty()) {
      const size_t count = std::min(kElements, elements.size() / size_of(dtype));
      const ByteSpan part = elements.first(count * size_of(dtype));
      wide_.resize(count);
      widen(dtype, part, wide_);
      const ByteSpan stored = std::as_bytes(std::span(wide_));
      pending_->crc = crc32c(stored, pending_->crc);
      buffer_ += as_text(stored);
      SMD_RETURN_IF_ERROR(flush_if_full());
      elements = elements.subspan(part.size());
    }
    return {};
  }

  Status flush_if_full() { return buffer_.size() >= kBufferBytes ? flush() : Status(); }

  Status flush() {
    if (buffer_.empty()) return {};
    SMD_RETURN_IF_ERROR(file_->append({{as_bytes(buffer_)}}));
    written_ += buffer_.size();
    buffer_.clear();
    return {};
  }

  const OriginalSinkOptions options_;
  RunFiles files_;
  bool looked_ = false;    // for steps of an earlier run
  bool resuming_ = false;  // there are some
  StepInfo step_;
  std::unique_ptr<storage::WriteFile> file_;  // of the open step, once it has a tensor
  std::string buffer_;                        // records that are not in the file yet
  uint64_t written_ = 0;                      // bytes in the file
  uint64_t offset_ = 0;                       // where the next record starts
  format::IndexBuilder index_;
  std::optional<Pending> pending_;
  std::string name_;
  std::vector<float> wide_;
};

}  // namespace

std::unique_ptr<Sink> original_sink(OriginalSinkOptions options) {
  return std::make_unique<OriginalSink>(std::move(options));
}

}  // namespace smd
