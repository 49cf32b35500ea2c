// Any two files of a step can be verified and repaired; what a repair wrote needs no other.

#include <string>

#include "fuzz/property.h"
#include "smd/format/file_name.h"
#include "smd/trial/verify.h"

namespace {

using namespace smd;

VerifyReport verify(storage::Storage& storage, bool repair, bool deep) {
  auto report = verify_run(storage, {.repair = repair, .deep = deep});
  SMD_FUZZ_REQUIRE(report.ok());
  return std::move(*report);
}

void put(storage::Storage& storage, const std::string& path, std::string_view content) {
  SMD_FUZZ_REQUIRE(storage.put(path, as_bytes(content), storage::Put::always, {}).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input = fuzz::input_text(data, size);
  const size_t end = std::min(input.find('\xff'), input.size());
  const auto storage = storage::memory_storage();
  // Without an index the event file stands alone.
  if (end > 0) put(*storage, format::index_file_name(0, "worker_0"), input.substr(0, end));
  put(*storage, format::event_file_name(0, "worker_0"),
      input.substr(std::min(end + 1, input.size())));

  const VerifyReport plain = verify(*storage, false, false);
  SMD_FUZZ_REQUIRE(plain.repairs.empty());
  SMD_FUZZ_REQUIRE(verify(*storage, false, true).damage() >= plain.damage());
  const VerifyReport repaired = verify(*storage, true, false);
  SMD_FUZZ_REQUIRE(repaired.damage() <= plain.damage());
  const VerifyReport again = verify(*storage, true, false);
  SMD_FUZZ_REQUIRE(again.repairs.empty());
  return 0;
}
