#include "smd/format/tfrecord.h"

#include <fmt/format.h>

#include "smd/base/crc32c.h"

namespace smd::format {

std::array<std::byte, kRecordHeaderBytes> record_header(uint64_t payload_bytes) {
  std::array<std::byte, kRecordHeaderBytes> header;
  store_le(header.data(), payload_bytes);
  store_le(header.data() + 8, masked_crc32c(ByteSpan(header).first(8)));
  return header;
}

void append_checked_record(std::string& out, std::string_view payload) {
  const auto header = record_header(payload.size());
  std::array<std::byte, kRecordFooterBytes> footer;
  store_le(footer.data(), masked_crc32c(as_bytes(payload)));
  out += as_text(header);
  out += payload;
  out += as_text(footer);
}

Result<RecordView> parse_record(ByteSpan bytes, uint64_t offset) {
  if (bytes.size() < kRecordHeaderBytes) {
    return Error{ErrorCode::truncated,
                 fmt::format("The record at offset {} ends after {} bytes of its header.", offset,
                             bytes.size())};
  }
  const auto length = load_le<uint64_t>(bytes.data());
  const auto expected = masked_crc32c(bytes.first(8));
  if (const auto found = load_le<uint32_t>(bytes.data() + 8); found != expected) {
    return Error{
        ErrorCode::corrupt,
        fmt::format("The length of the record at offset {} has the checksum {:#010x}, expected "
                    "{:#010x}.",
                    offset, found, expected)};
  }
  if (length > bytes.size() - kRecordHeaderBytes ||
      bytes.size() - kRecordHeaderBytes - length < kRecordFooterBytes) {
    return Error{
        ErrorCode::truncated,
        fmt::format("The record at offset {} has {} bytes of payload, but only {} bytes follow "
                    "its header.",
                    offset, length, bytes.size() - kRecordHeaderBytes)};
  }
  RecordView record{.payload = bytes.subspan(kRecordHeaderBytes, length),
                    .size_bytes = length + kRecordOverheadBytes};
  const auto footer = load_le<uint32_t>(bytes.data() + kRecordHeaderBytes + length);
  if (footer == kConstantFooter) return record;
  if (const uint32_t checksum = masked_crc32c(record.payload); footer != checksum) {
    return Error{
        ErrorCode::corrupt,
        fmt::format("The record at offset {} has the footer {:#010x}, expected {:#010x} or its "
                    "checksum {:#010x}.",
                    offset, footer, kConstantFooter, checksum)};
  }
  record.footer = Footer::checksum;
  return record;
}

}  // namespace smd::format
