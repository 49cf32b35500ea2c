#include "smd/packed/segment_text.h"

#include <algorithm>

#include "smd/format/event_name.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_footer.h"
#include "smd/format/tfrecord.h"

namespace smd::packed {
namespace {

// Up to `length` bytes; fewer at the end of the file.
Result<Bytes> read_bytes(storage::ReadFile& file, uint64_t offset, uint64_t length) {
  Bytes bytes(length);
  SMD_TRY(const size_t got, file.read_at(offset, bytes));
  bytes.resize(got);
  return bytes;
}

Result<std::string> log_of_footer(storage::ReadFile& file, uint64_t size) {
  if (size < format::kFooterTailBytes) {
    return Error{ErrorCode::not_found, "The segment has no footer."};
  }
  SMD_TRY(const Bytes tail,
          read_bytes(file, size - format::kFooterTailBytes, format::kFooterTailBytes));
  SMD_TRY(const auto place, format::parse_footer_tail(tail, size));
  SMD_TRY(const Bytes compressed, read_bytes(file, place.offset, place.length));
  return format::unpack_footer(place, compressed);
}

// The entries that stand in the blocks of a segment, up to the first record that is not whole.
Result<std::string> log_of_blocks(storage::ReadFile& file, uint64_t size) {
  constexpr uint64_t kHeadBytes = 256;  // enough for the name of a block
  std::string log;
  for (uint64_t at = 0; at < size;) {
    SMD_TRY(const Bytes head, read_bytes(file, at, format::kRecordHeaderBytes + kHeadBytes));
    if (head.size() < format::kRecordHeaderBytes) break;
    const auto payload = load_le<uint64_t>(head.data());
    const auto header = format::record_header(payload);
    if (!std::equal(header.begin(), header.end(), head.begin()) ||
        payload > size - at - format::kRecordHeaderBytes ||
        size - at - format::kRecordHeaderBytes - payload < format::kRecordFooterBytes) {
      break;
    }
    const uint64_t length = payload + format::kRecordOverheadBytes;
    if (format::peek_name(ByteSpan(head).subspan(format::kRecordHeaderBytes)) ==
        format::kBlockTag) {
      SMD_TRY(const Bytes bytes, read_bytes(file, at, length));
      const auto record = format::parse_record(bytes, at);
      if (!record.ok()) break;
      if (const auto entries = format::block_entries(record->payload)) log += *entries;
    }
    at += length;
  }
  return log;
}

}  // namespace

Result<std::string> log_of_segment(storage::ReadFile& segment) {
  SMD_TRY(const uint64_t size, segment.size());
  auto log = log_of_footer(segment, size);
  if (log.ok() || log.error().code == ErrorCode::unsupported) return log;
  return log_of_blocks(segment, size);
}

}  // namespace smd::packed
