#pragma once

// The record that ends each step of a packed segment: all numbers of the step, densely, and in
// front of them the step's entries of the log, so that a segment explains itself when its log is
// lost. Pure functions over bytes; see docs/format/packed.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/format/packed_log.h"
#include "smd/types/step.h"

namespace smd::format {

inline constexpr std::string_view kBlockTag = "smdebug/block";

// Where the numbers of a schema stand in its block.
struct BlockPlaces {
  std::vector<uint32_t> offsets;  // one per value
  uint64_t size_bytes = 0;
};

// Numbers of up to 4 bytes take 4, the others 8; these begin at a multiple of 8.
BlockPlaces places_of(std::span<const PackedValue> values);

// Whether a tensor is one of the numbers that blocks hold: a single element of a real type.
bool is_block_value(DType dtype, std::span<const int64_t> shape);

struct BlockHead {
  StepInfo step;
  double wall_secs = 0;
  uint64_t offset = 0;       // of the record in the segment, whose beginning is aligned
  std::string_view entries;  // of the log; only their size matters to plan_block
  uint64_t values_bytes = 0;
};

struct BlockPlan {
  uint64_t values_offset = 0;  // of the first number, from the record's beginning; aligned in file
  uint64_t record_bytes = 0;   // the record's end is aligned, too
};

BlockPlan plan_block(const BlockHead& head);
// `values` has head.values_bytes bytes.
void append_block(std::string& out, const BlockHead& head, ByteSpan values);

// The entries of the log that a block's payload holds; nullopt: not a block.
std::optional<std::string_view> block_entries(ByteSpan payload);

}  // namespace smd::format
