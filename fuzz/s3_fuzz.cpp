// Any answer of a server, and any profile file, gives values or an error.

#include <string>

#include "fuzz/property.h"
#include "smd/base/percent.h"
#include "smd/storage/s3/answer.h"
#include "smd/storage/s3/credentials.h"
#include "smd/storage/s3/profile.h"
#include "smd/storage/s3/uri.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace smd;
  using namespace smd::storage;
  const std::string_view text = fuzz::input_text(data, size);
  if (const auto listing = parse_listing(text); listing.ok()) {
    for (const FileInfo& file : listing->objects) SMD_FUZZ_REQUIRE(file.size_bytes >= 0);
  } else {
    SMD_FUZZ_REQUIRE(!listing.error().message.empty());
  }
  (void)parse_fault(text);
  if (const auto id = parse_upload_id(text); id.ok()) SMD_FUZZ_REQUIRE(!id->empty());
  if (const auto keys = parse_container_credentials(text); keys.ok()) {
    SMD_FUZZ_REQUIRE(!keys->access_key.empty() && !keys->secret_key.empty());
  }
  (void)parse_ini(text);
  SMD_FUZZ_REQUIRE(percent_decoded(percent_encoded(text), true) == text);
  (void)percent_decoded(text, false);
  if (const auto uri = parse_s3_uri(text); uri.ok()) {
    const auto again = parse_s3_uri(uri->text());
    SMD_FUZZ_REQUIRE(again.ok() && *again == *uri);
  }
  return 0;
}
