#include "smd/base/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace smd {

uint32_t crc32c(ByteSpan data, uint32_t crc) {
  // ISA-L takes an int length and works on the inverted register.
  constexpr size_t kChunk = size_t{1} << 30;
  crc = ~crc;
  while (!data.empty()) {
    const size_t n = std::min(data.size(), kChunk);
    auto* start = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data()));
    crc = crc32_iscsi(start, static_cast<int>(n), crc);
    data = data.subspan(n);
  }
  return ~crc;
}

}  // namespace smd
