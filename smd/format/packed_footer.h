#pragma once

// The last record of a closed packed segment: its log, compressed, so that one read from the end
// opens a segment whose log is gone. Pure functions over bytes; see docs/format/packed.md.

#include <cstdint>
#include <string>
#include <string_view>

#include "smd/base/bytes.h"
#include "smd/base/result.h"

namespace smd::format {

inline constexpr std::string_view kFooterTag = "smdebug/footer";
// From the trailer, which says where the compressed log is, to the end of the file.
inline constexpr uint64_t kFooterTailBytes = 65;
// Logs end long before this, as segments are rolled.
inline constexpr uint64_t kMostLogBytes = uint64_t{64} << 20;

// Appends the record, which begins at `offset` of the segment.
Status append_footer(std::string& out, uint64_t offset, std::string_view log);

struct FooterPlace {
  uint64_t offset = 0;  // of the compressed log in the segment
  uint32_t length = 0;
  uint32_t crc32c = 0;
  uint32_t log_bytes = 0;  // uncompressed
};

// `tail` is the last kFooterTailBytes of a segment of this size. not_found: it has no footer.
// unsupported: a later version.
Result<FooterPlace> parse_footer_tail(ByteSpan tail, uint64_t file_bytes);
// The log. corrupt: the checksum is wrong, or the bytes are not such a footer.
Result<std::string> unpack_footer(const FooterPlace& place, ByteSpan compressed);

}  // namespace smd::format
