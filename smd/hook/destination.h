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
  std::shared_ptr<storage::Spool> spool;     // the same, if it is one
  std::shared_ptr<storage::Storage> remote;  // where the spool sends to
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
// bucket or wrong keys. False: the place cannot be reached at the moment, which is one line in the
// log.
Result<bool> check_unfinished(storage::Storage& storage, Log& log);
// Error if steps of this layout cannot be recorded here: the place holds steps of the other layout,
// or it is an object store without the conditional writes that packed runs need. A place that
// cannot be reached passes.
Status check_layout(const Destination& place, RunLayout layout);
// The microseconds in the newest name of a writer of the packed run that is there; 0: none is
// known.
uint64_t newest_incarnation(const Destination& place);

}  // namespace smd
