#include "smd/writer/internal/record_builder.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "smd/base/crc32c.h"
#include "smd/base/signals_blocked.h"
#include "smd/format/tfrecord.h"
#include "smd/tensor/tensor_view.h"

namespace smd::internal {
namespace {

// From here on a thread of its own for the checksum pays.
constexpr size_t kApartBytes = size_t{4} << 20;
// No record of a large tensor has more.
constexpr uint32_t kMostPadding = 1024;

}  // namespace

void RecordBuilder::begin_step(GrowingSegment& segment, const StepInfo& step) {
  segment_ = &segment;
  step_ = step;
}

Status RecordBuilder::tensor(const format::TensorHead& head, ByteSpan elements) {
  const auto count = static_cast<uint64_t>(TensorView{.shape = head.shape}.size());
  const uint64_t bytes = count * size_of(head.dtype);
  format::TensorHead packed = head;
  packed.as_is = true;
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
  if (record > max_record_bytes_ && count > 1) plan_parts(record - bytes);
  begin_record();
  return more(elements);
}

Status RecordBuilder::more(ByteSpan elements) {
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

Status RecordBuilder::strings(const format::TensorHead& head,
                              std::span<const std::string_view> strings) {
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

void RecordBuilder::clear() {
  segment_ = nullptr;
  raws_.clear();
  has_parts_ = false;
  incoming_.reset();
  pending_.reset();
}

// As many whole rows as fit into a record, or elements where not even one row does.
void RecordBuilder::plan_parts(uint64_t overhead) {
  const size_t size = size_of(incoming_->dtype);
  const uint64_t most = max_record_bytes_;
  const uint64_t fit = std::max<uint64_t>((most - std::min(most, overhead)) / size, 1);
  const uint64_t rows = static_cast<uint64_t>(incoming_->shape.front());
  const uint64_t row = incoming_->count / rows;
  incoming_->per_part = row <= fit ? fit / row * row : fit;
  has_parts_ = true;
}

void RecordBuilder::begin_record() {
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
    head.padding =
        format::aligning_padding(step_, head, count, segment_->position(), format::kLargeAlignment);
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

// A record of this length begins here.
void RecordBuilder::begin_raw(const format::TensorHead& head, uint64_t length) {
  raws_.push_back({.tensor = names_.add(head.name),
                   .offset = segment_->position() - segment_->base(),
                   .length = length,
                   .dtype = head.dtype,
                   .shape = Shape(head.shape.begin(), head.shape.end())});
}

// Appends elements and takes them into the checksum: of many at the same time, as each takes a
// good part of the other's time.
Status RecordBuilder::append_checked(ByteSpan elements) {
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

Status RecordBuilder::end_record() {
  const ByteSpan end = as_bytes(pending_->end);
  raws_.back().crc32c = crc32c(end.first(end.size() - format::kRecordFooterBytes), pending_->crc);
  segment_->buffer() += pending_->end;
  pending_.reset();
  return segment_->flush_if_full();
}

// The same records under the other names of the tensor.
void RecordBuilder::list_other_names() {
  const size_t end = raws_.size();
  for (const std::string& name : incoming_->other_names) {
    for (size_t i = incoming_->first_raw; i < end; ++i) {
      format::PackedRaw raw = raws_[i];
      raw.tensor = names_.add(name);
      raws_.push_back(std::move(raw));
    }
  }
}

}  // namespace smd::internal
