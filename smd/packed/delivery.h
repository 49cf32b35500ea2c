#pragma once

// Brings packed runs to an object store: segments are cut to what their logs say and closed, sent
// under their names, and committed to the journal of the run with their logs. Logs stay behind.
// One thread at a time.

#include <memory>
#include <string>

#include "smd/base/result.h"
#include "smd/storage/delivery.h"
#include "smd/storage/journal.h"
#include "smd/storage/storage.h"
#include "smd/storage/sync.h"

namespace smd::packed {

// The journal of the run in this storage.
storage::Journal journal_of(std::shared_ptr<storage::Storage> storage);

// For a spool that sends to `remote`.
std::shared_ptr<storage::Delivery> delivery_to(std::shared_ptr<storage::Storage> remote);

// See storage::sync_to, for runs of each layout and for what a spool left behind.
Result<storage::SyncReport> sync_run(const std::string& root,
                                     const std::shared_ptr<storage::Storage>& remote,
                                     storage::SyncOptions options);

}  // namespace smd::packed
