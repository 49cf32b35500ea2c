#include "smd/format/packed_footer.h"

#include <fmt/format.h>
#include <zstd.h>

#include <array>

#include "smd/base/crc32c.h"
#include "smd/format/packed_log.h"
#include "smd/format/tensor_record.h"

namespace smd::format {
namespace {

constexpr std::string_view kMagic = "SMDPACK1";
constexpr size_t kTrailerBytes = 32;

// offset u64, length u32, crc32c u32, log size u32, version u16, flags u16, magic.
constexpr size_t kLengthAt = 8;
constexpr size_t kCrcAt = 12;
constexpr size_t kLogBytesAt = 16;
constexpr size_t kVersionAt = 20;
constexpr size_t kFlagsAt = 22;
constexpr size_t kMagicAt = 24;

Error bad_footer(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("The footer of the segment is not valid: {}.", what)};
}

}  // namespace

Status append_footer(std::string& out, uint64_t offset, std::string_view log) {
  if (log.size() > kMostLogBytes) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The log of {} bytes is too large for a footer.", log.size())};
  }
  std::string content(ZSTD_compressBound(log.size()), '\0');
  constexpr int kLevel = 3;
  const size_t size = ZSTD_compress(content.data(), content.size(), log.data(), log.size(), kLevel);
  if (ZSTD_isError(size) != 0) return Error{ErrorCode::internal, ZSTD_getErrorName(size)};
  content.resize(size);

  const StepInfo step;
  const Shape shape = {static_cast<int64_t>(size + kTrailerBytes)};
  const TensorHead head{.name = kFooterTag, .dtype = DType::uint8, .shape = shape};
  SMD_CHECK(record_end_bytes(step, head) + kTrailerBytes == kFooterTailBytes);
  std::array<std::byte, kTrailerBytes> trailer{};
  store_le(trailer.data(), offset + record_start_bytes(step, head, size + kTrailerBytes));
  store_le(trailer.data() + kLengthAt, static_cast<uint32_t>(size));
  store_le(trailer.data() + kCrcAt, crc32c(as_bytes(content)));
  store_le(trailer.data() + kLogBytesAt, static_cast<uint32_t>(log.size()));
  store_le(trailer.data() + kVersionAt, static_cast<uint16_t>(kPackedVersion));
  store_le(trailer.data() + kFlagsAt, uint16_t{0});
  std::memcpy(trailer.data() + kMagicAt, kMagic.data(), kMagic.size());
  content += as_text(trailer);
  append_record(out, step, head, as_bytes(content));
  return {};
}

Result<FooterPlace> parse_footer_tail(ByteSpan tail, uint64_t file_bytes) {
  if (tail.size() != kFooterTailBytes || as_text(tail.subspan(kMagicAt, kMagic.size())) != kMagic) {
    return Error{ErrorCode::not_found, "The segment has no footer."};
  }
  const auto version = load_le<uint16_t>(tail.data() + kVersionAt);
  const auto flags = load_le<uint16_t>(tail.data() + kFlagsAt);
  if (version > kPackedVersion || flags != 0) {
    return Error{ErrorCode::unsupported,
                 fmt::format("The segment was written by a later release: its footer has version "
                             "{} and flags {:#x}.",
                             version, flags)};
  }
  const FooterPlace place{.offset = load_le<uint64_t>(tail.data()),
                          .length = load_le<uint32_t>(tail.data() + kLengthAt),
                          .crc32c = load_le<uint32_t>(tail.data() + kCrcAt),
                          .log_bytes = load_le<uint32_t>(tail.data() + kLogBytesAt)};
  if (place.offset > file_bytes || place.length > file_bytes - place.offset) {
    return bad_footer(fmt::format("it names {} bytes at {} of a file of {}", place.length,
                                  place.offset, file_bytes));
  }
  return place;
}

Result<std::string> unpack_footer(const FooterPlace& place, ByteSpan compressed) {
  if (compressed.size() != place.length || crc32c(compressed) != place.crc32c) {
    return bad_footer(fmt::format("the checksum is {:#010x}, expected {:#010x}", crc32c(compressed),
                                  place.crc32c));
  }
  if (place.log_bytes > kMostLogBytes) {
    return bad_footer(fmt::format("a log of {} bytes is too large", place.log_bytes));
  }
  // The stated size is trusted only as far as the compressed bytes agree.
  const unsigned long long stated = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (stated != place.log_bytes) return bad_footer("the sizes of the log differ");
  std::string log(place.log_bytes, '\0');
  const size_t size = ZSTD_decompress(log.data(), log.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(size) != 0) return bad_footer(ZSTD_getErrorName(size));
  if (size != log.size()) return bad_footer("the log is shorter than stated");
  return log;
}

}  // namespace smd::format
