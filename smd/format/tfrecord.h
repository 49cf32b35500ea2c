#pragma once

// TFRecord framing: 8 bytes length, 4 bytes masked crc of the length, payload, 4 bytes footer.
// Records under events/ carry a constant footer (the original's reader rejects anything else);
// TensorBoard files carry the true checksum. Pure functions over bytes.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"

namespace smd::format {

inline constexpr size_t kRecordHeaderBytes = 12;
inline constexpr size_t kRecordFooterBytes = 4;
inline constexpr size_t kRecordOverheadBytes = kRecordHeaderBytes + kRecordFooterBytes;
// The masked crc of the ten characters "0x12345678".
inline constexpr uint32_t kConstantFooter = 0x062DC0B3u;

std::array<std::byte, kRecordHeaderBytes> record_header(uint64_t payload_bytes);

// A record whose footer is the true checksum.
void append_checked_record(std::string& out, std::string_view payload);

enum class Footer {
  constant,  // the payload is not checksummed
  checksum,  // the true checksum, and it is right
};

struct RecordView {
  ByteSpan payload;  // into the bytes that were parsed
  Footer footer = Footer::constant;
  uint64_t size_bytes = 0;  // of the whole record
};

// The record at the start of `bytes`; `offset` is its place in the file, for messages.
// truncated: the rest is not there (yet). corrupt: the length's checksum is wrong, so nothing after
// it can be read, or the footer is neither the constant nor the payload's checksum.
Result<RecordView> parse_record(ByteSpan bytes, uint64_t offset);

}  // namespace smd::format
