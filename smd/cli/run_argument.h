#pragma once

// The RUN argument of commands: a directory or a URI becomes an opened storage, or one clear
// sentence says what is wrong with it and, where possible, what was meant.

#include <memory>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"

namespace smd::cli {

// `~` is the home directory. A local run is never left through symbolic links. Errors: a missing
// path, a file, an empty directory, a directory that holds something else.
Result<std::shared_ptr<storage::Storage>> open_run(std::string_view argument,
                                                   const storage::LocalOptions& options = {});

}  // namespace smd::cli
