#include "smd/native/create_hook.h"

#include <string>
#include <utility>

#include "smd/base/json.h"

namespace smd {

Result<std::unique_ptr<Hook>> create_hook(std::string_view out_dir, std::string_view json,
                                          HookOptions options) {
  SMD_TRY(const Json document, parse_json(json.empty() ? "{}" : json, ""));
  SMD_TRY(ParsedHookConfig parsed,
          parse_hook_config(document, {.save_interval = options.default_save_interval}));
  for (const std::string& warning : parsed.warnings) options.log->warning(warning);
  options.config = std::move(parsed.config);
  if (!out_dir.empty()) options.config.out_dir = out_dir;
  return Hook::create(std::move(options));
}

}  // namespace smd
