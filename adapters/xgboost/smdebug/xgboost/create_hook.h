#pragma once

// Makes hooks with the collections that the Python package has for XGBoost. Pure functions.

#include <memory>
#include <string_view>
#include <utility>

#include "smd/smd.h"

namespace smdebug::xgb {

// `options` with the built-in collections for XGBoost, for smd::Hook::create and from_json.
inline smd::HookOptions hook_options(smd::HookOptions options = {}) {
  options.builtin_collections = {
      {.name = "all"},
      {.name = "default"},
      {.name = "hyperparameters", .patterns = {"^hyperparameters/.*$"}, .raw_only = true},
      {.name = "metrics", .patterns = {"^[^-/]+-.+$"}, .raw_only = true},
      {.name = "losses", .raw_only = true},
      {.name = "predictions", .patterns = {"^predictions$"}, .raw_only = true},
      {.name = "labels", .patterns = {"^labels$"}, .raw_only = true},
      {.name = "feature_importance", .patterns = {"^feature_importance/.*"}, .raw_only = true},
      {.name = "average_shap", .patterns = {"^(average|mean)_shap/(?!bias$).+"}, .raw_only = true},
      {.name = "full_shap", .patterns = {"^full_shap/(?!bias$).+"}, .raw_only = true},
      {.name = "trees", .patterns = {"^trees/.*"}, .raw_only = true},
  };
  options.default_collections = {"metrics"};
  options.default_save_interval = 10;
  return options;
}

// As smd::create_hook: `json` is what a configuration file holds, empty for the defaults.
inline smd::Result<std::unique_ptr<smd::Hook>> create_hook(std::string_view out_dir,
                                                           std::string_view json = {},
                                                           smd::HookOptions options = {}) {
  return smd::create_hook(out_dir, json, hook_options(std::move(options)));
}

}  // namespace smdebug::xgb
