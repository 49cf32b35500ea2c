#include "smd/format/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/event.h"
#include "smd/format/internal/hex.h"
#include "smd/format/tensor_record.h"

namespace smd::format {
namespace {

using internal::from_hex;
using testing::HasSubstr;

const StepInfo kStep{.step = 7, .mode = Mode::train, .mode_step = 3};

TEST(TfRecord, every_cut_is_truncated_and_every_header_flip_corrupt) {
  const float x = 1;
  std::string out;
  append_record(out, kStep, {.name = "x"}, std::as_bytes(std::span(&x, 1)));
  for (size_t n = 0; n < out.size(); ++n) {
    EXPECT_EQ(parse_record(as_bytes(out).first(n), 0).error().code, ErrorCode::truncated) << n;
  }
  for (size_t byte = 0; byte < kRecordHeaderBytes; ++byte) {
    std::string broken = out;
    broken[byte] = static_cast<char>(broken[byte] ^ 1);
    EXPECT_EQ(parse_record(as_bytes(broken), 42).error().code, ErrorCode::corrupt) << byte;
    EXPECT_THAT(parse_record(as_bytes(broken), 42).error().message, HasSubstr("offset 42"));
  }
  std::string broken = out;
  broken.back() = static_cast<char>(broken.back() ^ 1);
  EXPECT_EQ(parse_record(as_bytes(broken), 0).error().code, ErrorCode::corrupt);
}

TEST(TfRecord, a_true_checksum_is_accepted_and_reported) {
  // scalar/lr = 0.5 as TensorBoard files hold it.
  const std::string record = from_hex(
      "1f 00 00 00 00 00 00 00 51 4b 44 18 09 00 00 20"
      "00 84 d7 d7 41 10 03 2a 12 0a 10 0a 09 73 63 61"
      "6c 61 72 2f 6c 72 15 00 00 00 3f b1 26 c6 de");
  auto framed = parse_record(as_bytes(record), 0);
  ASSERT_TRUE(framed.ok()) << framed.error().message;
  EXPECT_EQ(framed->footer, Footer::checksum);
  EXPECT_EQ(parse_event(framed->payload)->name, "scalar/lr");
  std::string broken = record;
  broken[20] = static_cast<char>(broken[20] ^ 4);
  EXPECT_EQ(parse_record(as_bytes(broken), 0).error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace smd::format
