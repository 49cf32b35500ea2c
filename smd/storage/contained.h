#pragma once

// A local run that somebody else may have tampered with: reading and writing through it never
// leaves its directory, whatever symbolic links lie there. Thread-safe.

#include <memory>
#include <string>

#include "smd/storage/storage.h"

namespace smd::storage {

struct ContainedOptions {
  // list() also gives what a reader of runs must not see: temporary files (*.tmp) and links that
  // cannot be followed. Those have size 0 here, and open() says what is wrong with them.
  bool everything = false;
};

// Links are followed as long as they lead to a regular file inside of `root`. Linked directories
// are never entered, so a cycle of links is harmless.
std::shared_ptr<Storage> contained_storage(std::string root, const ContainedOptions& options);

}  // namespace smd::storage
