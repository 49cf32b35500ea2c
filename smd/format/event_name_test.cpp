#include "smd/format/event_name.h"

#include <gtest/gtest.h>

#include "smd/format/internal/hex.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

const StepInfo kStep{.step = 7, .mode = Mode::train, .mode_step = 3};

std::string record_of(std::string_view name) {
  const std::vector<float> values(1000);
  const int64_t shape[] = {1000};
  std::string out;
  append_record(out, kStep, {.name = name, .shape = shape, .wall_secs = 1},
                std::as_bytes(std::span(values)));
  return out;
}

TEST(EventName, is_found_in_the_first_bytes) {
  for (const std::string& name :
       {std::string("w"), std::string(300, 'n'), std::string("t\u00e9")}) {
    const std::string record = record_of(name);
    const ByteSpan payload = parse_record(as_bytes(record), 0)->payload;
    EXPECT_EQ(peek_name(payload), name);
    EXPECT_EQ(peek_name(payload.first(name.size() + 40)), name);
  }
}

TEST(EventName, is_nothing_when_it_is_cut_off) {
  const std::string record = record_of(std::string(300, 'n'));
  const ByteSpan payload = parse_record(as_bytes(record), 0)->payload;
  for (size_t n = 0; n < 300; ++n) EXPECT_EQ(peek_name(payload.first(n)), std::nullopt) << n;
}

TEST(EventName, is_nothing_in_events_without_a_tensor_and_in_noise) {
  using internal::from_hex;
  // file_version "brain.Event:2"
  const std::string version = from_hex("1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32");
  EXPECT_EQ(peek_name(as_bytes(version)), std::nullopt);
  // A length beyond the bytes, an endless varint, a wire type that does not exist.
  for (const char* hex : {"2a ff 0a ff 0a ff ff ff ff ff ff ff ff ff 01 78",
                          "ff ff ff ff ff ff ff ff ff ff ff ff", "2f 01 02 03"}) {
    EXPECT_EQ(peek_name(as_bytes(from_hex(hex))), std::nullopt) << hex;
  }
}

}  // namespace
}  // namespace smd::format
