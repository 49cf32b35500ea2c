#pragma once

// The log of a packed segment: a file of checksummed records, each one entry that tells what the
// segment holds. Names and schemas stand once; a step refers to them by number. Entries come in the
// order header, then for each step its new names, its schema if that is new, and the step itself.
// Pure functions over bytes; see docs/format/packed.md.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/tensor/tensor_view.h"
#include "smd/types/step.h"

namespace smd::format {

inline constexpr uint32_t kPackedVersion = 1;
// Bits of PackedHeader::features.
inline constexpr uint64_t kSplitTensors = 1;  // tensors that are several records
// Those that this reader understands.
inline constexpr uint64_t kPackedFeatures = kSplitTensors;

struct PackedHeader {
  uint32_t version = kPackedVersion;
  // What a reader must understand to read the rest rightly.
  uint64_t features = 0;
  std::string_view worker;   // as it stands in file names
  std::string_view writer;   // <worker>.<incarnation>
  std::string_view segment;  // path of the segment
  double created_secs = 0;   // Unix time

  bool operator==(const PackedHeader&) const = default;
};

// Names of tensors and original names, numbered from first_id on.
struct PackedNames {
  uint32_t first_id = 0;
  std::vector<std::string_view> names;

  bool operator==(const PackedNames&) const = default;
};

// One number of a block.
struct PackedValue {
  uint32_t tensor = 0;  // number of a name
  uint32_t op = 0;      // 0: the value itself; n: reduction number n - 1 of the schema
  DType dtype = DType::float32;
  uint8_t rank = 1;  // 0: shape [], 1: shape [1]

  bool operator==(const PackedValue&) const = default;
};

// Which numbers a block holds, in the order of the block: first those of up to 4 bytes.
struct PackedSchema {
  uint32_t id = 0;
  std::vector<std::string_view> ops;  // "min", "abs_l2"
  std::vector<PackedValue> values;

  bool operator==(const PackedSchema&) const = default;
};

// A tensor that is a record of its own, or a part of one that takes several, in their order.
struct PackedRaw {
  uint32_t tensor = 0;
  uint64_t offset = 0;  // of the record, from the step's base
  uint64_t length = 0;  // of the whole record
  uint32_t crc32c = 0;  // of its payload
  DType dtype = DType::float32;
  Shape shape = {};    // of the whole tensor
  uint64_t first = 0;  // number of the first element of this part
  uint64_t count = 0;  // elements of this part; 0: it is no part

  bool operator==(const PackedRaw&) const = default;
};

// The shape of a tensor that was saved without its values.
struct PackedShape {
  uint32_t tensor = 0;
  uint32_t original_name = 0;  // number of a name
  Shape shape = {};

  bool operator==(const PackedShape&) const = default;
};

struct PackedStep {
  StepInfo info;
  double wall_secs = 0;
  uint64_t base = 0;    // where the step begins in the segment
  uint64_t length = 0;  // to the end of its block record
  uint32_t schema = 0;
  uint64_t block_offset = 0;  // of the first number, from the base
  uint32_t block_crc32c = 0;  // of all numbers
  std::vector<PackedRaw> raws;
  std::vector<PackedShape> shapes;

  bool operator==(const PackedStep&) const = default;
};

// The segment gets no more steps.
struct PackedEnd {
  bool operator==(const PackedEnd&) const = default;
};

// An entry of a kind that came later; readers pass over it.
struct PackedUnknown {
  bool operator==(const PackedUnknown&) const = default;
};

using PackedEntry =
    std::variant<PackedUnknown, PackedHeader, PackedNames, PackedSchema, PackedStep, PackedEnd>;

// Appends the framed entry. The size of a step's entry does not depend on base, length,
// block_offset and the checksums, so it can be known before them.
void append_log_entry(std::string& out, const PackedEntry& entry);

// From the payload of a record; the texts of the entry point into it. corrupt: not such an entry.
// unsupported: a newer version, or features that must be understood and are not.
Result<PackedEntry> parse_log_entry(ByteSpan payload);

}  // namespace smd::format
