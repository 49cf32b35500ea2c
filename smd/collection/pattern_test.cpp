#include "smd/collection/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

bool found(std::string_view pattern, std::string_view name) {
  const auto compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled.ok()) << compiled.error().message;
  return compiled.ok() && compiled->found_in(name);
}

struct Row {
  const char* pattern;
  const char* name;
  bool found;
};

TEST(Pattern, built_in_patterns_find_their_tensors) {
  const Row rows[] = {
      {"^(?!gradient).*weight", "conv1.weight", true},
      {"^(?!gradient).*weight", "gradient/conv1.weight", false},
      {"^(?!gradient).*weight", "conv1.bias", false},
      {"^(?!gradient).*bias", "fc.bias", true},
      {"^(?!gradient).*bias", "gradient/fc.bias", false},
      {"^gradient", "gradient/fc.bias", true},
      {"^gradient", "my/gradient", false},
      {"[Ll]oss_(?!input).*output", "CrossEntropyLoss_output_0", true},
      {"[Ll]oss_(?!input).*output", "CrossEntropyLoss_input_0", false},
      {"[Ll]oss_(?!input).*output", "nll_loss_output_0", true},
      {".*loss._(?!input).*output", "softmaxcrossentropyloss0_output_0", true},
      {".*loss._(?!input).*output", "softmaxcrossentropyloss0_input_0", false},
      {"^hyperparameters/.*$", "hyperparameters/max_depth", true},
      {"^[a-zA-z]+-[a-zA-z0-9]+$", "train-rmse", true},
      {"^[a-zA-z]+-[a-zA-z0-9]+$", "train-ndcg@5", false},
      {"^[a-zA-z]+-.+(?<!(auc|map))$", "train-rmse", true},
      {"^[a-zA-z]+-.+(?<!(auc|map))$", "train-auc", false},
      {"^[a-zA-z]+-.+(?<!(auc|map))$", "validation-map", false},
      {"^predictions$", "predictions", true},
      {"^predictions$", "predictions/0", false},
      {"^labels$", "labels", true},
      {"^feature_importance/.*", "feature_importance/weight/f0", true},
      {"^average_shap/.*[^/bias]$", "average_shap/f0", true},
      {"^average_shap/.*[^/bias]$", "average_shap/bias", false},
      {"^full_shap/.*[^/bias]$", "full_shap/f1", true},
      {"^trees/.*", "trees/Gain", true},
      {"bias", "dense/bias:0", true},
      {"^weights/.*/((?!bias).)*$", "weights/dense/kernel:0", true},
      {"^weights/.*/((?!bias).)*$", "weights/dense/bias:0", false},
      {".*loss.*", "total_loss:0", true},
      {".*", "", true},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(found(row.pattern, row.name), row.found) << row.pattern << " in " << row.name;
  }
}

// Expected values are what Python's re.search answers.
TEST(Pattern, means_what_it_means_in_python) {
  const Row rows[] = {
      {"", "x", true},
      {"b", "abc", true},
      {"B", "abc", false},
      {"(?i)B", "abc", true},
      {"(?iu)B", "abc", true},
      {"(?s)(?i)B.", "ab\n", true},
      {"(?u)b", "abc", true},
      {"a(?i:B)c", "abc", true},
      {"a(?i:B)c", "abC", false},
      {"(?i)a(?-i:b)", "Ab", true},
      {"(?i)a(?-i:b)", "AB", false},
      {"a$", "a\n", true},
      {"a\\Z", "a\n", false},
      {"a\\Z", "ba", true},
      {"^ab{,2}c$", "ac", true},
      {"^ab{,2}c$", "abbc", true},
      {"^ab{,2}c$", "abbbc", false},
      {"^ab{,}c$", "abbbc", true},
      {"^ab{2,}c$", "abc", false},
      {"a{,x}", "a{,x}", true},
      {"a{}", "a{}", true},
      {"[{,2}]", ",", true},
      {"(?P<n>a)(?P=n)", "aa", true},
      {"(?P<n>a)?(?(n)b|c)", "c", true},
      {"^(a)?(?(1)b|c)$", "ab", true},
      {"^(a)?(?(1)b|c)$", "ac", false},
      {"(a)\\1", "aa", true},
      {"(a)(?#one)\\1", "aa", true},
      {"\\x41", "A", true},
      {"\\u00e9", "\xc3\xa9", true},
      {"\\U0001F600", "\xf0\x9f\x98\x80", true},
      {"\\101", "A", true},
      {"\\0", "a", false},
      {"[\\101]", "A", true},
      {"\\v", "\x0b", true},
      {"\\v", "\n", false},
      {"[[:alpha:]]", "a", false},
      {"[[:alpha:]]", "x:]", true},
      {"[]a]", "]", true},
      {"[^]a]", "]", false},
      {"[\\]]", "]", true},
      {"^\\w+$", "\xc3\xa9t\xc3\xa9", true},
      {"^.$", "\xc3\xa9", true},
      {"^\\d$", "\xd9\xa3", true},
      {"\\.weight\\-", ".weight-", true},
      {"\\bfc\\b", "a/fc/b", true},
      {"a.c", "a\nc", false},
      {"(?s)a.c", "a\nc", true},
      {"(?m)^b", "a\nb", true},
      {"^b", "a\nb", false},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(found(row.pattern, row.name), row.found) << row.pattern << " in " << row.name;
  }
}

TEST(Pattern, says_what_has_no_exact_counterpart) {
  for (const char* text : {"(?a)\\w",     "(?a:\\w)", "(?L)x",      "(?x) a b", "\\N{DIGIT ONE}",
                           "\\N",         "\\Qa\\E",  "\\R",        "\\h",      "\\p{L}",
                           "\\K",         "\\z",      "\\G",        "[\\Z]",    "[\\8]",
                           "(*UTF)a",     "(?|a|b)",  "(?R)",       "(?<n>a)",  "(?P>n)",
                           "(?&n)",       "a(?i)b",   "(?i:(?s)a)", "(?-i)a",   "(?i",
                           "\\xg",        "\\x4",     "\\x{41}",    "\\u12",    "\\ud800",
                           "\\U00110000", "\\777",    "(?(?=a)b)",  "(?'n'a)",  "(?C1)"}) {
    const auto compiled = Pattern::compile(text);
    ASSERT_FALSE(compiled.ok()) << text;
    EXPECT_EQ(compiled.error().code, ErrorCode::unsupported) << text;
    EXPECT_THAT(compiled.error().message, HasSubstr(text));
  }
}

TEST(Pattern, an_invalid_pattern_is_refused_with_its_text) {
  for (const char* text :
       {"(a", "a)", "[a", "*a", "a\\", "(?P<n>a)(?P<n>b)", "\\2", "[b-a]", "(?<=a*)b", "(?#a"}) {
    const auto compiled = Pattern::compile(text);
    ASSERT_FALSE(compiled.ok()) << text;
    EXPECT_EQ(compiled.error().code, ErrorCode::invalid_argument) << text;
    EXPECT_THAT(compiled.error().message, AllOf(HasSubstr(text), HasSubstr("not a valid pattern")));
  }
  EXPECT_EQ(Pattern::compile("(a").error().message,
            "'(a' is not a valid pattern: missing closing parenthesis at offset 2.");
}

TEST(Pattern, gives_up_a_catastrophic_search) {
  const auto pattern = Pattern::compile("^(a+)+$");
  const std::string name = std::string(200, 'a') + "b";
  EXPECT_FALSE(pattern->found_in(name));
  const auto outcome = pattern->search(name);
  ASSERT_FALSE(outcome.ok());
  EXPECT_THAT(outcome.error().message, HasSubstr("'^(a+)+$'"));
}

TEST(Pattern, long_names_do_not_exhaust_the_stack) {
  EXPECT_TRUE(found("^(?:a|b)*c$", std::string(30000, 'a') + "c"));
}

TEST(Pattern, bytes_that_are_not_utf8_do_not_match) {
  EXPECT_FALSE(found("^.$", "\xff"));
  EXPECT_TRUE(found("weight", "\xff.weight"));
}

TEST(Pattern, a_pattern_that_is_not_utf8_is_refused) {
  EXPECT_FALSE(Pattern::compile("\xff").ok());
}

TEST(Pattern, copies_share_the_compiled_form) {
  const auto pattern = Pattern::compile("a{,2}");
  const Pattern copy = *pattern;
  EXPECT_EQ(copy.text(), "a{,2}");
  EXPECT_EQ(copy, *pattern);
}

}  // namespace
}  // namespace smd
