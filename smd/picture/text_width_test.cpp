#include "smd/picture/text_width.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(TextWidth, counts_columns_not_bytes) {
  EXPECT_EQ(text_width(""), 0);
  EXPECT_EQ(text_width("abc"), 3);
  EXPECT_EQ(text_width("Gewächs"), 7);
  EXPECT_EQ(text_width("損失"), 4);
  EXPECT_EQ(text_width("e\u0301"), 1);  // with a combining accent
  EXPECT_EQ(text_width("🔥"), 2);
}

TEST(TextWidth, cuts_between_characters_and_says_so) {
  EXPECT_EQ(cut_to_width("abc", 3), "abc");
  EXPECT_EQ(cut_to_width("abcd", 3), "ab…");
  EXPECT_EQ(cut_to_width("損失関数", 4), "損…");
  EXPECT_EQ(cut_to_width("損失関数", 5), "損失…");
  EXPECT_EQ(cut_to_width("abcd", 1), "…");
}

TEST(TextWidth, nothing_printable_steers_a_terminal) {
  EXPECT_EQ(printable("w/é損🔥"), "w/é損🔥");
  EXPECT_EQ(printable("a\x1b[2Jb\n\t"), "a\\x1b[2Jb\\x0a\\x09");
  EXPECT_EQ(printable("\u009b31m"), "\\xc2\\x9b31m");     // the one-character form of ESC [
  EXPECT_EQ(printable("a\u202eb"), "a\\xe2\\x80\\xaeb");  // right to left
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");         // not UTF-8, cut off
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80"), "\\xc0\\xaf\\xed\\xa0\\x80");  // overlong, surrogate
}

}  // namespace
}  // namespace smd
