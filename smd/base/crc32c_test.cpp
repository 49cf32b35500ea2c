#include "smd/base/crc32c.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(Crc32c, gives_the_standard_check_value) {
  EXPECT_EQ(crc32c(as_bytes("123456789")), 0xE3069283u);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32c, continues_over_pieces) {
  EXPECT_EQ(crc32c(as_bytes("6789"), crc32c(as_bytes("12345"))), 0xE3069283u);
}

TEST(Crc32c, masks_as_tfrecord_does) {
  // The constant footer of the events/ files: the crc of ten ASCII bytes, masked.
  EXPECT_EQ(crc32c(as_bytes("0x12345678")), 0x6AEDB1D5u);
  EXPECT_EQ(masked_crc32c(as_bytes("0x12345678")), 0x062DC0B3u);
}

}  // namespace
}  // namespace smd
