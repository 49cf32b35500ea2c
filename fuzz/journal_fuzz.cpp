// Any bytes give the objects of a journal and what is committed to it, or an error; what parses is
// written and read back the same. The input is taken as an object, and as the message in one, since
// hardly any bytes have the right checksum.

#include <zstd.h>

#include <string>

#include "fuzz/property.h"
#include "smd/base/crc32c.h"
#include "smd/format/packed_manifest.h"
#include "smd/storage/journal_bytes.h"

using namespace smd;

namespace {

template <typename T>
bool is_plain(const Result<T>& result) {
  if (result.ok()) return true;
  const ErrorCode code = result.error().code;
  return code == ErrorCode::corrupt || code == ErrorCode::truncated ||
         code == ErrorCode::unsupported;
}

void check_object(ByteSpan bytes) {
  const auto head = storage::parse_head(bytes);
  SMD_FUZZ_REQUIRE(is_plain(head));
  if (head.ok()) {
    const auto again = storage::parse_head(as_bytes(*storage::encode_head(*head)));
    SMD_FUZZ_REQUIRE(again.ok() && *again == *head);
  }
  const auto entries = storage::parse_entries(bytes);
  SMD_FUZZ_REQUIRE(is_plain(entries));
  if (entries.ok()) {
    const auto again = storage::parse_entries(as_bytes(*storage::encode_entries(*entries)));
    SMD_FUZZ_REQUIRE(again.ok() && *again == *entries);
  }
}

std::string object_of(std::string_view magic, ByteSpan message) {
  std::string out(24 + ZSTD_compressBound(message.size()), '\0');
  const size_t length =
      ZSTD_compress(out.data() + 24, out.size() - 24, message.data(), message.size(), 1);
  out.resize(24 + length);
  out.replace(0, magic.size(), magic);
  auto* const bytes = reinterpret_cast<std::byte*>(out.data());
  store_le(bytes + 8, uint16_t{1});
  store_le(bytes + 16, static_cast<uint32_t>(length));
  store_le(bytes + 20, static_cast<uint32_t>(message.size()));
  store_le(bytes + 12, crc32c(as_bytes(out).subspan(16)));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes = fuzz::input_bytes(data, size);
  check_object(bytes);
  check_object(as_bytes(object_of("SMDHEAD1", bytes)));
  check_object(as_bytes(object_of("SMDLIST1", bytes)));
  const auto manifest = format::parse_manifest(bytes);
  SMD_FUZZ_REQUIRE(is_plain(manifest));
  if (manifest.ok()) {
    const std::string text = format::encode_manifest(*manifest);
    const auto again = format::parse_manifest(as_bytes(text));
    // Numbers that are no numbers are not equal to themselves.
    SMD_FUZZ_REQUIRE(again.ok() && format::encode_manifest(*again) == text);
  }
  return 0;
}
