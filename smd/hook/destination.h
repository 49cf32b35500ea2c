#pragma once

// Where a hook records: a local directory, or an object store behind a spool. Pure functions but
// for the network and the directories they open.

#include <memory>
#include <string_view>

#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/config/environment.h"
#include "smd/config/hook_config.h"
#include "smd/storage/s3/options.h"
#include "smd/storage/spool.h"
#include "smd/storage/storage.h"

namespace smd {

struct Destination {
  std::shared_ptr<storage::Storage> storage;
  std::shared_ptr<storage::Spool> spool;  // the same, if it is one
};

// A spool for s3://bucket/prefix, unless nothing will be written. `s3` gets its variables from the
// environment and an interrupt of its own.
struct DestinationOptions {
  const Environment& environment;
  storage::S3Options s3;
  bool writes = true;
};
Result<Destination> open_destination(std::string_view out_dir, DestinationOptions options);

// closed: the place holds a finished job. invalid_argument: it cannot be used, because of a wrong
// bucket or wrong keys. A place that cannot be reached at the moment is one line in the log.
Status check_unfinished(storage::Storage& storage, Log& log);
// Error if steps of this layout cannot be recorded here: it is an object store, which has no packed
// runs, or a directory that holds steps of the other layout.
Status check_layout(const Destination& place, RunLayout layout);

}  // namespace smd
