#pragma once

// The log of a packed segment whose own log is missing or damaged, taken from the segment. Used by
// one thread at a time per file.

#include <cstdint>
#include <string>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::packed {

// Bytes as they stand in the log: from the footer, or else from the blocks up to the first record
// that is not whole. unsupported: written by a later release.
Result<std::string> log_of_segment(storage::ReadFile& segment);

}  // namespace smd::packed
