#pragma once

// Finishes what the writer of a packed segment left half done: the footer and the log, as far as
// whole steps go. Never while the writer may be at work. One thread at a time.

#include <vector>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/internal/segment_check.h"
#include "smd/trial/verify.h"

namespace smd::internal {

// `found` is what check_segment() said with the same options; its problems then say whether they
// are mended, or why nothing was done. Returns what was written.
Result<std::vector<RunRepair>> repair_segment(storage::Storage& storage, const SegmentFiles& files,
                                              const SegmentCheckOptions& options,
                                              SegmentFinding& found);

}  // namespace smd::internal
