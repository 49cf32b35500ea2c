#include "smd/hook/destination.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_manifest.h"
#include "smd/packed/delivery.h"

namespace smd {

Result<Destination> open_destination(std::string_view out_dir, DestinationOptions options) {
  storage::S3Options& s3 = options.s3;
  s3.interrupt = std::make_shared<storage::Interrupt>();
  s3.variables = [environment = options.environment](std::string_view name) {
    return std::string(environment.find(name).value_or(""));
  };
  const auto interrupt = s3.interrupt;
  SMD_TRY(auto place, storage::open_storage(out_dir, s3));
  if (!storage::is_object_store(out_dir) || !options.writes)
    return Destination{.storage = place, .spool = nullptr, .remote = nullptr};

  SMD_TRY(const double drain_secs, options.environment.spool_drain_secs());
  SMD_TRY(const int64_t max_bytes, options.environment.spool_max_bytes());
  SMD_TRY(auto spool, storage::Spool::open(place, {.root = options.environment.spool_directory(),
                                                   .max_bytes = static_cast<uint64_t>(max_bytes),
                                                   .drain_timeout = std::chrono::milliseconds(
                                                       static_cast<int64_t>(drain_secs * 1000)),
                                                   .delivery = packed::delivery_to(place),
                                                   .interrupt = interrupt}));
  return Destination{.storage = spool, .spool = spool, .remote = place};
}

Result<bool> check_unfinished(storage::Storage& storage, Log& log) {
  const auto marker = storage::read_all(storage, format::kEndMarker);
  if (marker.ok()) {
    return Error{
        ErrorCode::closed,
        fmt::format("The output directory already holds a finished job; choose another one or "
                    "remove it: {}",
                    storage.name())};
  }
  switch (marker.error().code) {
    case ErrorCode::not_found: return true;
    case ErrorCode::invalid_argument: return marker.error();
    default:
      log.warning(fmt::format("It is not known whether {} holds a finished job. {}", storage.name(),
                              marker.error().message));
      return false;
  }
}

namespace {

// Whether the place holds steps of this layout; false also if that cannot be known now.
bool holds(const Destination& place, RunLayout layout) {
  const bool packed = layout == RunLayout::packed;
  const std::string_view folder = packed ? format::kPackedFolder : "index";
  if (!place.spool) {
    const auto files = place.storage->list(folder, "");
    if (!files.ok() || files->empty()) return false;
    // An index that was exported from a packed run is no run of its own.
    return packed || !place.storage->stat(format::kExportMark).ok();
  }
  if (!place.spool->waiting(folder).empty()) return true;
  if (packed) return place.remote->stat(packed::journal_of(place.remote).head_path()).ok();
  const auto files = place.remote->list(folder, "");
  return files.ok() && !files->empty();
}

}  // namespace

Status check_layout(const Destination& place, RunLayout layout) {
  const bool packed = layout == RunLayout::packed;
  const RunLayout other = packed ? RunLayout::original : RunLayout::packed;
  if (holds(place, other)) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("The output directory holds a run with layout='{}', which cannot go on "
                    "with layout='{}'; choose another directory or the same layout: {}",
                    name_of(other), name_of(layout), place.storage->name())};
  }
  if (!packed || !place.spool) return {};
  const Status conditions = packed::journal_of(place.remote).check_storage();
  const bool refused = !conditions.ok() && conditions.error().code == ErrorCode::unsupported;
  return refused ? conditions : Status();
}

uint64_t newest_incarnation(const Destination& place) {
  if (!place.spool) return 0;
  uint64_t newest = 0;
  // First what waits: what is sent meanwhile is then seen at least once.
  for (const std::string& path : place.spool->waiting(format::kSegmentFolder)) {
    if (const auto name = format::parse_packed_file_name(path)) {
      newest = std::max(newest, name->micros);
    }
  }
  const auto entries = packed::journal_of(place.remote).read_new();
  if (!entries.ok()) return newest;  // recording tells of a place that cannot be reached
  for (const storage::JournalEntry& entry : *entries) {
    const auto manifest = format::parse_manifest(as_bytes(entry.content));
    if (!manifest.ok()) continue;
    const size_t dot = manifest->writer.rfind('.');
    if (dot == std::string::npos) continue;
    newest =
        std::max(newest, format::incarnation_micros(manifest->writer.substr(dot + 1)).value_or(0));
  }
  return newest;
}

}  // namespace smd
