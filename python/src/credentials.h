#pragma once

// Credentials for object stores that a Python callable finds.

#include <nanobind/nanobind.h>

#include "smd/storage/s3/options.h"

namespace smdebug {

// `callable` gives (access key, secret key, session token or "", expiry in Unix seconds or None),
// or None. It is called without the GIL held, from any thread, and takes it meanwhile.
void use_credentials_of(smd::storage::S3Options& options, nanobind::object callable);

}  // namespace smdebug
