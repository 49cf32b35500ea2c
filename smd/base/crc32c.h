#pragma once

// CRC-32C (Castagnoli) of any length, and the masking that TFRecord applies to it.
// Pure functions, thread-safe.

#include <cstdint>

#include "smd/base/bytes.h"

namespace smd {

// Continues `crc` (0 to start) over `data`.
uint32_t crc32c(ByteSpan data, uint32_t crc = 0);

constexpr uint32_t mask_crc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u; }

inline uint32_t masked_crc32c(ByteSpan data) { return mask_crc32c(crc32c(data)); }

}  // namespace smd
