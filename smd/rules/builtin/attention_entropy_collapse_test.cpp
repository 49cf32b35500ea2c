#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "AttentionEntropyCollapse";

// Two queries over two keys, the first of which gets `share`.
std::string attention(int count, const std::function<double(int)>& share) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("l.attention.softmax_output_0@T{0}=[[[{1},{2}],[{1},{2}]]];", i, share(i),
                       1 - share(i));
  }
  return out;
}

TEST(AttentionEntropyCollapse, fires_when_each_query_looks_at_one_key) {
  const std::string run = attention(40, [](int i) { return i < 20 ? 0.6 : 0.999; });
  expect_fires(kRule, run, 22);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(22));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("attend to 1 keys"));
  // From the norm and the shape.
  std::string numbers;
  for (int i = 0; i < 15; ++i) {
    numbers += fmt::format(
        "attn.probs_output_0~l2@{0}={1};attn.probs_output_0~sum@{0}=4;"
        "attn.probs_output_0~shape@{0}=[2,2,8];",
        i, i < 10 ? 1.0 : 1.9999);
  }
  expect_fires(kRule, numbers, 12);
}

TEST(AttentionEntropyCollapse, attention_that_sharpens_is_silent) {
  expect_silent(kRule, attention(40, [](int i) { return 0.5 + 0.01 * i; }));
  expect_silent(kRule, attention(40, [](int i) { return i % 3 == 2 ? 0.6 : 0.999; }));
  expect_silent(kRule, attention(40, [](int) { return 0.9; }));
}

TEST(AttentionEntropyCollapse, other_tensors_are_not_judged) {
  EXPECT_THAT(judge(kRule, "l.attention.softmax_output_0@0=[[[4,5],[6,7]]]").missing.value_or(""),
              HasSubstr("rows of which sum to one"));
  EXPECT_THAT(creation_error(kRule, {{"share", 1}}),
              HasSubstr("share of AttentionEntropyCollapse"));
}

}  // namespace
}  // namespace smd::rules
