// Any text gives a hook configuration or an error that says something; JSON survives a rewrite.

#include "fuzz/property.h"
#include "smd/base/json.h"
#include "smd/config/hook_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smd;
  const auto json = parse_json(fuzz::input_text(data, size), "config.json");
  if (!json.ok()) {
    SMD_FUZZ_REQUIRE(json.error().code == ErrorCode::invalid_argument);
    return 0;
  }
  const auto again = parse_json(dump_json(*json), "");
  SMD_FUZZ_REQUIRE(again.ok() && *again == *json);
  const auto parsed = parse_hook_config(*json);
  const auto parsed_again = parse_hook_config(*again);
  SMD_FUZZ_REQUIRE(parsed.ok() == parsed_again.ok());
  if (!parsed.ok()) {
    SMD_FUZZ_REQUIRE(!parsed.error().message.empty());
    return 0;
  }
  SMD_FUZZ_REQUIRE(parsed->config == parsed_again->config);
  SMD_FUZZ_REQUIRE(parsed->warnings == parsed_again->warnings);
  return 0;
}
