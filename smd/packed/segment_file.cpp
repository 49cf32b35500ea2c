#include "smd/packed/segment_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/format/event_name.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_footer.h"
#include "smd/format/tfrecord.h"

namespace smd::packed {
namespace {

// Protobuf messages end here.
constexpr uint64_t kMostRecordBytes = uint64_t{2} << 30;

}  // namespace

Result<Bytes> read_bytes(storage::ReadFile& file, uint64_t offset, uint64_t length) {
  Bytes bytes;
  try {
    bytes.resize(length);
  } catch (const std::exception&) {  // there is no other way to be told
    return Error{ErrorCode::io,
                 fmt::format("There is no memory for {} bytes at offset {}.", length, offset)};
  }
  SMD_TRY(const size_t got, file.read_at(offset, bytes));
  bytes.resize(got);
  return bytes;
}

Result<std::string> log_of_footer(storage::ReadFile& file, uint64_t size_bytes) {
  if (size_bytes < format::kFooterTailBytes) {
    return Error{ErrorCode::not_found, "The segment has no footer."};
  }
  SMD_TRY(const Bytes tail,
          read_bytes(file, size_bytes - format::kFooterTailBytes, format::kFooterTailBytes));
  SMD_TRY(const auto place, format::parse_footer_tail(tail, size_bytes));
  if (place.length > format::kMostLogBytes) {
    return Error{ErrorCode::corrupt,
                 fmt::format("The footer has {} bytes, more than any has.", place.length)};
  }
  SMD_TRY(const Bytes compressed, read_bytes(file, place.offset, place.length));
  return format::unpack_footer(place, compressed);
}

Result<SegmentScan> scan_segment(storage::ReadFile& file, uint64_t size_bytes) {
  constexpr uint64_t kHeadBytes = 256;  // enough for the name of a block
  SegmentScan scan;
  for (uint64_t at = 0; at < size_bytes;) {
    SMD_TRY(const Bytes head, read_bytes(file, at, format::kRecordHeaderBytes + kHeadBytes));
    if (head.size() < format::kRecordHeaderBytes) break;
    const auto payload = load_le<uint64_t>(head.data());
    const auto header = format::record_header(payload);
    const uint64_t left = size_bytes - at - format::kRecordHeaderBytes;
    if (!std::equal(header.begin(), header.end(), head.begin()) || payload > left ||
        left - payload < format::kRecordFooterBytes || payload > kMostRecordBytes) {
      break;
    }
    const uint64_t length = payload + format::kRecordOverheadBytes;
    if (format::peek_name(ByteSpan(head).subspan(format::kRecordHeaderBytes)) ==
        format::kBlockTag) {
      SMD_TRY(const Bytes bytes, read_bytes(file, at, length));
      const auto record = format::parse_record(bytes, at);
      if (!record.ok()) break;
      if (const auto entries = format::block_entries(record->payload)) {
        scan.log += *entries;
        scan.end = at + length;
      }
    }
    at += length;
  }
  return scan;
}

Result<std::string> log_of_segment(storage::ReadFile& file) {
  SMD_TRY(const uint64_t size_bytes, file.size());
  auto log = log_of_footer(file, size_bytes);
  if (log.ok() || log.error().code == ErrorCode::unsupported) return log;
  SMD_TRY(SegmentScan scan, scan_segment(file, size_bytes));
  return std::move(scan.log);
}

}  // namespace smd::packed
