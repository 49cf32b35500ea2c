#include "smd/trial/verify.h"

#include <algorithm>
#include <array>

#include "smd/format/packed_file_name.h"
#include "smd/trial/internal/run_check.h"

namespace smd {
namespace {

constexpr std::array<std::string_view, 25> kFaultNames = {"link",
                                                          "file_name",
                                                          "temporary_file",
                                                          "index_unreadable",
                                                          "event_file_outside",
                                                          "event_file_missing",
                                                          "event_file_unindexed",
                                                          "record_outside",
                                                          "record_broken",
                                                          "name_differs",
                                                          "payload_differs",
                                                          "tensor_unreadable",
                                                          "bytes_unindexed",
                                                          "collections_missing",
                                                          "collections_unreadable",
                                                          "workers_differ",
                                                          "end_marker_missing",
                                                          "copy_incomplete",
                                                          "log_missing",
                                                          "log_broken",
                                                          "log_incomplete",
                                                          "segment_missing",
                                                          "segment_torn",
                                                          "segment_unfinished",
                                                          "footer_broken"};
static_assert(kFaultNames.size() == static_cast<size_t>(RunFault::footer_broken) + 1);

}  // namespace

std::string_view name_of(RunFault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

uint64_t VerifyReport::damage() const {
  uint64_t count = damage_not_listed;
  for (const RunProblem& problem : problems) {
    if (problem.is_damage && !problem.mended) ++count;
  }
  return count;
}

Result<VerifyReport> verify_run(storage::Storage& storage, const VerifyOptions& options) {
  SMD_TRY(const auto packed, storage.list(format::kPackedFolder, ""));
  return packed.empty() ? internal::verify_original(storage, options)
                        : internal::verify_packed(storage, options);
}

}  // namespace smd
