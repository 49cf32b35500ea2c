#include "smd/hook/destination.h"

#include <fmt/format.h>

#include "smd/format/file_name.h"
#include "smd/format/packed_file_name.h"

namespace smd {

Result<Destination> open_destination(std::string_view out_dir, DestinationOptions options) {
  storage::S3Options& s3 = options.s3;
  s3.interrupt = std::make_shared<storage::Interrupt>();
  s3.variables = [environment = options.environment](std::string_view name) {
    return std::string(environment.find(name).value_or(""));
  };
  const auto interrupt = s3.interrupt;
  SMD_TRY(auto place, storage::open_storage(out_dir, s3));
  if (!storage::is_object_store(out_dir) || !options.writes) return Destination{place, nullptr};

  SMD_TRY(const double drain_secs, options.environment.spool_drain_secs());
  SMD_TRY(const int64_t max_bytes, options.environment.spool_max_bytes());
  SMD_TRY(auto spool,
          storage::Spool::open(std::move(place), {.root = options.environment.spool_directory(),
                                                  .max_bytes = static_cast<uint64_t>(max_bytes),
                                                  .drain_timeout = std::chrono::milliseconds(
                                                      static_cast<int64_t>(drain_secs * 1000)),
                                                  .interrupt = interrupt}));
  return Destination{spool, spool};
}

Status check_unfinished(storage::Storage& storage, Log& log) {
  const auto marker = storage::read_all(storage, format::kEndMarker);
  if (marker.ok()) {
    return Error{
        ErrorCode::closed,
        fmt::format("The output directory already holds a finished job; choose another one or "
                    "remove it: {}",
                    storage.name())};
  }
  switch (marker.error().code) {
    case ErrorCode::not_found: return {};
    case ErrorCode::invalid_argument: return marker.error();
    default:
      log.warning(fmt::format("It is not known whether {} holds a finished job. {}", storage.name(),
                              marker.error().message));
      return {};
  }
}

Status check_layout(const Destination& place, RunLayout layout) {
  storage::Storage& storage = *place.storage;
  const bool packed = layout == RunLayout::packed;
  if (place.spool || storage.is_remote()) {
    if (!packed) return {};
    return Error{ErrorCode::unsupported,
                 fmt::format("layout='packed' is for local directories; record to an object store "
                             "with layout='original': {}",
                             storage.name())};
  }
  const auto others = storage.list(packed ? "index" : format::kPackedFolder, "");
  if (!others.ok() || others->empty()) return {};  // recording tells of a place that cannot be read
  if (packed && storage.stat(format::kExportMark).ok()) return {};
  return Error{ErrorCode::invalid_argument,
               fmt::format("The output directory holds a run with layout='{}', which cannot go on "
                           "with layout='{}'; choose another directory or the same layout: {}",
                           name_of(packed ? RunLayout::original : RunLayout::packed),
                           name_of(layout), storage.name())};
}

}  // namespace smd
