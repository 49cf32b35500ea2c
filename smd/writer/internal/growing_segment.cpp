#include "smd/writer/internal/growing_segment.h"

#include <utility>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"

namespace smd::internal {
namespace {

// Small records gather in memory up to this size before they go to the segment.
constexpr size_t kBufferBytes = size_t{256} << 10;
// Elements of at most this many bytes are copied into the buffer, longer ones written from where
// they are.
constexpr size_t kCopyBytes = size_t{16} << 10;

}  // namespace

GrowingSegment::GrowingSegment(std::string path, std::unique_ptr<storage::AppendFile> segment,
                               std::unique_ptr<storage::AppendFile> log, Durability durable)
    : path_(std::move(path)),
      segment_(std::move(segment)),
      log_(std::move(log)),
      durable_(durable) {}

Result<GrowingSegment> GrowingSegment::open(storage::Storage& storage, const Name& name,
                                            Durability durable) {
  std::string path = format::segment_file_name(name.writer, name.number);
  SMD_TRY(auto segment, storage.append(path));
  SMD_TRY(auto log, storage.append(format::log_file_name(name.writer, name.number)));
  return GrowingSegment(std::move(path), std::move(segment), std::move(log), durable);
}

void GrowingSegment::begin_step() {
  base_ = segment_->size();
  in_step_ = true;
}

Status GrowingSegment::flush_if_full() {
  if (buffer_.size() < kBufferBytes) return {};
  SMD_RETURN_IF_ERROR(segment_->append({{as_bytes(buffer_)}}));
  buffer_.clear();
  return {};
}

Status GrowingSegment::append(ByteSpan elements) {
  if (elements.size() <= kCopyBytes) {
    buffer_ += as_text(elements);
    return flush_if_full();
  }
  const ByteSpan pieces[] = {as_bytes(buffer_), elements};
  SMD_RETURN_IF_ERROR(segment_->append(pieces));
  buffer_.clear();
  return {};
}

Status GrowingSegment::append_durably(storage::AppendFile& file, std::string_view text) const {
  SMD_RETURN_IF_ERROR(file.append({{as_bytes(text)}}));
  return durable_ == Durability::step ? file.sync() : Status();
}

Status GrowingSegment::commit_step(std::string_view entries) {
  SMD_RETURN_IF_ERROR(append_durably(*segment_, buffer_));
  SMD_RETURN_IF_ERROR(append_durably(*log_, entries));
  log_text_ += entries;
  buffer_.clear();
  in_step_ = false;
  return {};
}

void GrowingSegment::abandon_step() {
  buffer_.clear();
  if (!std::exchange(in_step_, false)) return;
  segment_->truncate(base_);
  log_->truncate(log_text_.size());
}

Status GrowingSegment::close() {
  abandon_step();
  const Status ended = write_end();
  // Also if its end could not be written: the steps are there.
  const Status sent = segment_->finish();
  SMD_RETURN_IF_ERROR(log_->finish());
  return ended.ok() ? sent : ended;
}

Status GrowingSegment::write_end() {
  if (!has_steps()) return {};
  std::string end;
  format::append_log_entry(end, format::PackedEnd());
  std::string footer;
  SMD_RETURN_IF_ERROR(format::append_footer(footer, segment_->size(), log_text_ + end));
  SMD_RETURN_IF_ERROR(append_durably(*segment_, footer));
  return append_durably(*log_, end);
}

}  // namespace smd::internal
