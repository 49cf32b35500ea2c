#pragma once

// A packed segment read without its log. Trusts nothing that it reads; takes no more memory than
// the file has bytes. Functions over a file that one thread uses.

#include <cstdint>
#include <string>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::packed {

// Up to `length` bytes; fewer at the end of the file. io: there is no memory for so many.
Result<Bytes> read_bytes(storage::ReadFile& file, uint64_t offset, uint64_t length);

// The log that the footer of a closed segment holds. not_found: no footer. unsupported: that of a
// later release.
Result<std::string> log_of_footer(storage::ReadFile& file, uint64_t size_bytes);

struct SegmentScan {
  std::string log;   // the entries that stand in the blocks, joined
  uint64_t end = 0;  // where the last whole block ends
};
// Walks through the records up to the first that is not whole.
Result<SegmentScan> scan_segment(storage::ReadFile& file, uint64_t size_bytes);

// The log as far as the segment knows it: from the footer, or else from the blocks.
Result<std::string> log_of_segment(storage::ReadFile& file);

}  // namespace smd::packed
