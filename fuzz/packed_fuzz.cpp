// Any bytes give entries of a packed log, a block or a footer, or an error; an entry that parses is
// written and read back the same.

#include "fuzz/property.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/format/tfrecord.h"

using namespace smd;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteSpan bytes = fuzz::input_bytes(data, size);
  (void)format::parse_packed_file_name(fuzz::input_text(data, size));
  (void)format::block_entries(bytes);
  if (size >= format::kFooterTailBytes) {
    const auto place = format::parse_footer_tail(bytes.last(format::kFooterTailBytes), size);
    if (place.ok())
      (void)format::unpack_footer(*place, bytes.subspan(place->offset, place->length));
  }
  const auto entry = format::parse_log_entry(bytes);
  if (!entry.ok()) {
    const ErrorCode code = entry.error().code;
    SMD_FUZZ_REQUIRE(code == ErrorCode::corrupt || code == ErrorCode::unsupported);
    return 0;
  }
  if (const auto* schema = std::get_if<format::PackedSchema>(&*entry)) {
    const auto places = format::places_of(schema->values);
    SMD_FUZZ_REQUIRE(places.offsets.size() == schema->values.size());
    SMD_FUZZ_REQUIRE(places.size_bytes <= 8 * schema->values.size() + 4);
  }
  if (std::holds_alternative<format::PackedUnknown>(*entry)) return 0;
  std::string written;
  format::append_log_entry(written, *entry);
  const auto record = format::parse_record(as_bytes(written), 0);
  SMD_FUZZ_REQUIRE(record.ok() && record->footer == format::Footer::checksum);
  const auto again = format::parse_log_entry(record->payload);
  SMD_FUZZ_REQUIRE(again.ok());
  std::string twice;
  format::append_log_entry(twice,
                           *again);  // numbers that are no numbers are not equal to themselves
  SMD_FUZZ_REQUIRE(twice == written);
  return 0;
}
