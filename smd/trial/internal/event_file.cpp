#include "smd/trial/internal/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "smd/base/crc32c.h"
#include "smd/format/event_name.h"
#include "smd/format/tfrecord.h"
#include "smd/types/tensor_name.h"

namespace smd::internal {
namespace {

using format::kRecordFooterBytes;
using format::kRecordHeaderBytes;
using format::kRecordOverheadBytes;

// Small records are read together.
constexpr uint64_t kWindowBytes = uint64_t{256} << 10;
// Names are shorter than this, except for very odd ones.
constexpr uint64_t kNameBytes = 1024;
// Protobuf messages end here.
constexpr uint64_t kMostPayloadBytes = std::numeric_limits<int32_t>::max();

}  // namespace

Result<EventFile> EventFile::open(storage::Storage& storage, std::string_view path) {
  SMD_TRY(auto file, storage.open(path));
  SMD_TRY(const uint64_t size, file->size());
  return EventFile(std::move(file), std::string(path), size);
}

Result<ByteSpan> EventFile::bytes(uint64_t offset, uint64_t count) {
  const bool held = offset >= window_offset_ && offset - window_offset_ <= window_.size() &&
                    window_.size() - (offset - window_offset_) >= count;
  if (!held) {
    window_.resize(std::min(std::max(count, kWindowBytes), size_ - offset));
    window_offset_ = offset;
    SMD_TRY(const size_t got, file_->read_at(offset, window_));
    window_.resize(got);
    if (got < count) {
      return Error{ErrorCode::truncated,
                   fmt::format("The file became shorter while it was read: {}", path_)};
    }
  }
  return ByteSpan(window_).subspan(offset - window_offset_, count);
}

Result<uint32_t> EventFile::checksum(uint64_t offset, uint64_t count) {
  uint32_t crc = 0;
  while (count > 0) {
    const uint64_t n = std::min(count, kWindowBytes);
    SMD_TRY(const ByteSpan piece, bytes(offset, n));
    crc = crc32c(piece, crc);
    offset += n;
    count -= n;
  }
  return crc;
}

Result<uint64_t> EventFile::payload_bytes(uint64_t offset) {
  const uint64_t left = size_ - offset;
  if (left < kRecordHeaderBytes) {
    return Error{ErrorCode::truncated,
                 fmt::format("The record at offset {} is cut off: the file ends after {} bytes of "
                             "its header.",
                             offset, left)};
  }
  SMD_TRY(const ByteSpan header, bytes(offset, kRecordHeaderBytes));
  const auto payload = load_le<uint64_t>(header.data());
  const auto expected = format::record_header(payload);
  if (!std::equal(header.begin(), header.end(), expected.begin())) {
    return Error{
        ErrorCode::corrupt,
        fmt::format("There is no record at offset {}: the checksum of its length is wrong.",
                    offset)};
  }
  if (left < kRecordOverheadBytes || payload > left - kRecordOverheadBytes) {
    return Error{ErrorCode::truncated,
                 fmt::format("The record at offset {} is cut off: it has {} bytes of payload, but "
                             "the file ends {} bytes after its header.",
                             offset, payload, left - kRecordHeaderBytes)};
  }
  if (payload > kMostPayloadBytes) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The record at offset {} has {} bytes of payload, more than any "
                             "record can have.",
                             offset, payload)};
  }
  return payload;
}

Result<std::string> EventFile::name_at(uint64_t offset, uint64_t payload,
                                       std::string_view expected) {
  const uint64_t start = offset + kRecordHeaderBytes;
  SMD_TRY(const ByteSpan beginning, bytes(start, std::min(payload, kNameBytes)));
  if (auto name = format::peek_name(beginning); name == expected) return std::move(*name);
  SMD_TRY(const ByteSpan all, bytes(start, payload));
  SMD_TRY(const auto event, format::view_event(all));
  return std::string(event.is_named(expected) ? expected : event.name);
}

EventFile::Check EventFile::check(const format::TensorLocation& location, bool deep) {
  Check result;
  const auto wrong = [&](RunFault fault, std::string message) {
    result.problem = RunProblem{
        .fault = fault, .file = path_, .offset = location.offset, .message = std::move(message)};
    return result;
  };
  if (location.offset > size_ || location.length > size_ - location.offset) {
    return wrong(RunFault::record_outside,
                 fmt::format("The index says that '{}' takes {} bytes from offset {}, but the file "
                             "has {} bytes: it was cut off, or the index is wrong.",
                             location.name, location.length, location.offset, size_));
  }
  const auto payload = payload_bytes(location.offset);
  if (!payload.ok()) return wrong(RunFault::record_broken, payload.error().message);
  if (*payload + kRecordOverheadBytes != location.length) {
    return wrong(RunFault::record_broken,
                 fmt::format("The record of '{}' has {} bytes, but the index says {}.",
                             location.name, *payload + kRecordOverheadBytes, location.length));
  }
  const uint64_t start = location.offset + kRecordHeaderBytes;
  const auto footer_bytes = bytes(start + *payload, kRecordFooterBytes);
  if (!footer_bytes.ok()) return wrong(RunFault::record_broken, footer_bytes.error().message);
  const auto footer = load_le<uint32_t>(footer_bytes->data());
  result.had_checksum = location.crc32c.has_value() || footer != format::kConstantFooter;
  if (result.had_checksum) {
    const auto found = checksum(start, *payload);
    if (!found.ok()) return wrong(RunFault::record_broken, found.error().message);
    if (footer != format::kConstantFooter && footer != mask_crc32c(*found)) {
      return wrong(RunFault::payload_differs,
                   fmt::format("The record of '{}' ends in {:#010x}, which is neither the usual "
                               "constant nor the checksum of its payload.",
                               location.name, footer));
    }
    if (location.crc32c && *location.crc32c != *found) {
      return wrong(RunFault::payload_differs,
                   fmt::format("The payload of '{}' has the checksum {:#010x}, but the index "
                               "says {:#010x}.",
                               location.name, *found, *location.crc32c));
    }
  }
  const auto name = name_at(location.offset, *payload, location.name);
  if (!name.ok()) return wrong(RunFault::tensor_unreadable, name.error().message);
  if (*name != location.name) {
    return wrong(RunFault::name_differs, fmt::format("The record holds '{}', but the index says "
                                                     "'{}'.",
                                                     *name, location.name));
  }
  if (!deep) return result;
  const auto all = bytes(start, *payload);
  if (!all.ok()) return wrong(RunFault::record_broken, all.error().message);
  const auto event = format::parse_event(*all);
  if (!event.ok()) return wrong(RunFault::tensor_unreadable, event.error().message);
  if (!event->tensor) {
    return wrong(RunFault::tensor_unreadable,
                 fmt::format("The record of '{}' holds no tensor.", location.name));
  }
  return result;
}

EventFile::Scan EventFile::scan() {
  Scan scan;
  while (scan.end < size_) {
    const auto payload = payload_bytes(scan.end);
    if (!payload.ok()) {
      scan.stopped_by = payload.error();
      break;
    }
    const uint64_t length = *payload + kRecordOverheadBytes;
    const auto all = bytes(scan.end, length);
    if (!all.ok()) {
      scan.stopped_by = all.error();
      break;
    }
    const auto record = format::parse_record(*all, scan.end);
    auto event =
        record.ok() ? format::parse_event(record->payload) : Result<format::Event>(record.error());
    // An index cannot hold every name and step that a broken record may claim.
    const bool fits =
        event.ok() && check_tensor_name(event->name).ok() && event->step.mode_step >= 0;
    if (fits && event->tensor) {
      if (!scan.step) scan.step = event->step;
      scan.tensors.push_back(
          {.name = std::move(event->name), .offset = scan.end, .length = length});
      for (std::string& name : event->other_names) {
        if (!check_tensor_name(name).ok()) continue;
        scan.tensors.push_back({.name = std::move(name), .offset = scan.end, .length = length});
      }
    } else if (!event.ok() || event->tensor) {
      ++scan.left_out;
    }
    scan.end += length;
  }
  return scan;
}

}  // namespace smd::internal
