#pragma once

// Makes a hook from a directory and, if wanted, a JSON text: the shortest way to record.

#include <memory>
#include <string_view>

#include "smd/base/result.h"
#include "smd/hook/hook.h"

namespace smd {

// `json` is what a configuration file holds, {"HookParameters": {…}, "CollectionConfigurations":
// […]}; empty means {}. `out_dir` wins over its "LocalPath"; an empty `out_dir` leaves the choice
// to it. `options.config` is replaced, the rest is used. Hook::create and Hook::from_json take a
// configuration in C++ and a file.
Result<std::unique_ptr<Hook>> create_hook(std::string_view out_dir, std::string_view json = {},
                                          HookOptions options = {});

}  // namespace smd
