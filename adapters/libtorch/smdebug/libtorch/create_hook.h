#pragma once

// Makes hooks with the collections that the Python package has for PyTorch. Pure functions.

#include <memory>
#include <string_view>
#include <utility>

#include "smd/smd.h"

namespace smdebug::torch_adapter {

// `options` with the built-in collections for PyTorch, for smd::Hook::create and from_json.
inline smd::HookOptions hook_options(smd::HookOptions options = {}) {
  options.builtin_collections = {
      {.name = "all"},
      {.name = "default"},
      {.name = "weights", .patterns = {"^(?!gradient).*weight"}},
      {.name = "biases", .patterns = {"^(?!gradient).*bias"}},
      {.name = "gradients", .patterns = {"^gradient"}},
      {.name = "losses", .patterns = {"[Ll]oss_(?!input).*output"}, .raw_only = true},
  };
  options.default_collections = {"losses"};
  return options;
}

// As smd::create_hook: `json` is what a configuration file holds, empty for the defaults.
inline smd::Result<std::unique_ptr<smd::Hook>> create_hook(std::string_view out_dir,
                                                           std::string_view json = {},
                                                           smd::HookOptions options = {}) {
  return smd::create_hook(out_dir, json, hook_options(std::move(options)));
}

}  // namespace smdebug::torch_adapter
