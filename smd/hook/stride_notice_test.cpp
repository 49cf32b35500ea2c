#include "smd/hook/stride_notice.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(StrideNotice, is_read_as_it_was_written) {
  const StrideNotice notice{.from_step = 40, .stride = 8};
  EXPECT_EQ(notice.to_json(), "{\"from_step\": 40, \"stride\": 8}\n");
  EXPECT_EQ(*StrideNotice::parse(notice.to_json()), notice);
}

TEST(StrideNotice, refuses_what_no_chief_writes) {
  for (const char* text :
       {"", "[]", "{}", R"({"from_step": 1})", R"({"from_step": 1, "stride": 0})",
        R"({"from_step": "x", "stride": 1})"}) {
    EXPECT_FALSE(StrideNotice::parse(text).ok()) << text;
  }
}

}  // namespace
}  // namespace smd
