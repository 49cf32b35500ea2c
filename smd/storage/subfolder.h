#pragma once

// A folder of a storage as a storage of its own: a run inside of another run. Thread-safe.

#include <memory>
#include <string>

#include "smd/storage/storage.h"

namespace smd::storage {

// `folder` is a relative path without a slash at its end.
std::shared_ptr<Storage> subfolder_storage(std::shared_ptr<Storage> whole, std::string folder);

}  // namespace smd::storage
