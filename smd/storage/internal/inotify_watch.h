#pragma once

// Watch on a local directory through the kernel's inotify. One thread at a time.

#include <memory>
#include <span>
#include <string>

#include "smd/storage/watch.h"

namespace smd::storage::internal {

// Watches the files directly in `root` and everything below root/<folder>; files that grow are
// reported below root/<growing>, which lies in one of the folders. nullptr: the directory is not
// there, lies on a file system whose other hosts' changes the kernel does not see, or the
// user's limit of watches is reached.
std::unique_ptr<Watch> inotify_watch(const std::string& root, std::span<const std::string> folders,
                                     std::span<const std::string> growing);

}  // namespace smd::storage::internal
