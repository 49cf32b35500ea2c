#include "smd/collection/internal/python_pattern.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(PythonPattern, leaves_alone_what_both_languages_share) {
  for (const char* text : {"", "^(?!gradient).*weight", "[Ll]oss_(?!input).*output",
                           "^[a-zA-z]+-.+(?<!(auc|map))$", "a{2}b{1,}c{1,3}?", "(?P<n>a)(?P=n)",
                           "\\d\\.\\w\\b", "(?i)x", "(?i:x)", "[^/bias]$", "{"}) {
    EXPECT_EQ(*pcre_from_python(text), text);
  }
}

TEST(PythonPattern, respells_what_only_looks_different) {
  EXPECT_EQ(*pcre_from_python("a\\Z"), "a\\z");
  EXPECT_EQ(*pcre_from_python("a{,3}"), "a{0,3}");
  EXPECT_EQ(*pcre_from_python("\\\\Z"), "\\\\Z") << "an escaped backslash and a letter";
  EXPECT_EQ(*pcre_from_python("\\{,3}"), "\\{,3}");
  EXPECT_EQ(*pcre_from_python("[{,3}[]"), "[{,3}\\[]");
  EXPECT_EQ(*pcre_from_python("\\u00e9\\v"), "\\x{e9}\\x0b");
  EXPECT_EQ(*pcre_from_python("(a)\\1"), "(a)\\g{1}");
  EXPECT_EQ(*pcre_from_python("(?u)a"), "a");
  EXPECT_EQ(*pcre_from_python("(?P<n>a)(?(n)b)"), "(?P<n>a)(?(<n>)b)");
}

TEST(PythonPattern, survives_patterns_that_end_in_the_middle) {
  for (const char* text : {"\\", "[", "[^", "[\\", "(?", "(?P", "(?(", "(?#", "(?(n", "{,", "\\x",
                           "\\u1", "(?i", "(?-"}) {
    const auto translated = pcre_from_python(text);
    EXPECT_TRUE(translated.ok() || translated.error().code == ErrorCode::unsupported) << text;
  }
}

}  // namespace
}  // namespace smd
