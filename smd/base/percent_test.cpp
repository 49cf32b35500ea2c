#include "smd/base/percent.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(Percent, letters_digits_and_what_is_plain_stay) {
  EXPECT_EQ(percent_encoded("aZ09-._~"), "aZ09-._~");
  EXPECT_EQ(percent_encoded("a b+c=d/é"), "a%20b%2Bc%3Dd%2F%C3%A9");
  EXPECT_EQ(percent_encoded("a/b c", "/"), "a/b%20c");
}

TEST(Percent, every_byte_comes_back) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decoded(percent_encoded(all), true), all);
  EXPECT_EQ(percent_decoded(percent_encoded(all), false), all);
  EXPECT_EQ(percent_decoded("%c3%A9", false), "é");
}

TEST(Percent, a_plus_is_a_blank_where_it_is_one) {
  EXPECT_EQ(percent_decoded("a+b%2Bc", true), "a b+c");
  EXPECT_EQ(percent_decoded("a+b%2Bc", false), "a+b+c");
}

TEST(Percent, refuses_what_is_no_escape) {
  for (const char* text : {"%", "a%", "%4", "%zz", "%4z", "%-1", "%+1", "% 1", "%%41"}) {
    EXPECT_EQ(percent_decoded(text, false), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace smd
