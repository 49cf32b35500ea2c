#include "smd/hook/destination.h"

#include <fmt/format.h>

#include "smd/format/file_name.h"

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

}  // namespace smd
