#pragma once

// The RUN argument of commands: a directory or a URI becomes an opened storage, or one clear
// sentence says what is wrong with it and, where possible, what was meant.

#include <memory>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/trial.h"

namespace smd::cli {

// `~` is the home directory. A local run is never left through symbolic links. Errors: a missing
// path, a file, an empty directory, a directory that holds something else.
Result<std::shared_ptr<storage::Storage>> open_run(std::string_view argument,
                                                   const storage::LocalOptions& options = {});

// The same for those who wait for this run to begin: a path that is not there yet, or an empty
// directory, is a run without steps, and `note` gets a sentence about it.
Result<std::shared_ptr<storage::Storage>> open_future_run(std::string_view argument,
                                                          std::string& note);

// What those are told who wait for runs at a place, or below it: that nothing is there yet, and
// which name is nearest. "": there is a run, or only an object store could tell.
std::string waiting_note(std::string_view argument);

// The argument as a path: `~` is the home directory. A URI stays as it is.
std::string expanded(std::string_view argument);

// The run as it is now; does not wait for anything.
Result<std::unique_ptr<Trial>> open_trial(std::string_view argument);

}  // namespace smd::cli
