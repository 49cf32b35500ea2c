// Walks arbitrary bytes as a stream of records, as a reader of a growing file does.

#include "fuzz/property.h"
#include "smd/base/crc32c.h"
#include "smd/format/tfrecord.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smd;
  const ByteSpan bytes = fuzz::input_bytes(data, size);
  for (size_t at = 0; at <= bytes.size();) {
    const auto record = format::parse_record(bytes.subspan(at), at);
    if (!record.ok()) {
      const ErrorCode code = record.error().code;
      SMD_FUZZ_REQUIRE(code == ErrorCode::truncated || code == ErrorCode::corrupt);
      SMD_FUZZ_REQUIRE(!record.error().message.empty());
      break;
    }
    SMD_FUZZ_REQUIRE(record->size_bytes == record->payload.size() + format::kRecordOverheadBytes);
    SMD_FUZZ_REQUIRE(record->size_bytes <= bytes.size() - at);
    SMD_FUZZ_REQUIRE(record->payload.data() == bytes.data() + at + format::kRecordHeaderBytes);
    // A record is whole with its last byte and not before.
    const auto cut = format::parse_record(bytes.subspan(at, record->size_bytes - 1), at);
    SMD_FUZZ_REQUIRE(!cut.ok() && cut.error().code == ErrorCode::truncated);
    at += record->size_bytes;
  }
  return 0;
}

// Random lengths never carry the right checksum, so the mutator repairs the first header.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  using namespace smd;
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 4 == 0) return size;
  auto* bytes = reinterpret_cast<std::byte*>(data);
  for (size_t at = 0; size - at >= format::kRecordOverheadBytes;) {
    const size_t room = size - at - format::kRecordOverheadBytes;
    uint64_t length = load_le<uint64_t>(bytes + at);
    if (length > room && seed % 3 != 0) length = room == 0 ? 0 : length % room;
    const auto header = format::record_header(length);
    std::memcpy(bytes + at, header.data(), header.size());
    if (length > room) break;
    std::byte* footer = bytes + at + format::kRecordHeaderBytes + length;
    const ByteSpan payload(bytes + at + format::kRecordHeaderBytes, length);
    if (seed % 5 != 0) {
      store_le(footer, seed % 2 == 0 ? format::kConstantFooter : masked_crc32c(payload));
    }
    at += length + format::kRecordOverheadBytes;
  }
  return size;
}
