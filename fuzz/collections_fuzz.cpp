// Any text gives collections or an error; what parses is written and read back the same.

#include <vector>

#include "fuzz/property.h"
#include "smd/collection/collection_set.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smd;
  std::vector<std::string> warnings;
  const auto set =
      CollectionSet::from_json(fuzz::input_text(data, size), "x_collections.json", &warnings);
  if (!set.ok()) {
    SMD_FUZZ_REQUIRE(!set.error().message.empty());
    return 0;
  }
  const std::string written = set->to_json();
  const auto again = CollectionSet::from_json(written, "", &warnings);
  SMD_FUZZ_REQUIRE(again.ok());
  SMD_FUZZ_REQUIRE(*again == *set);
  SMD_FUZZ_REQUIRE(again->num_workers() == set->num_workers());
  SMD_FUZZ_REQUIRE(again->to_json() == written);
  return 0;
}
