#include "smd/server/query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr ParameterSpec kTable[] = {{.name = "mode", .default_text = "GLOBAL"},
                                    {.name = "tensor", .is_repeated = true},
                                    {.name = "points", .default_text = "1000"}};

Query parsed(std::string_view text) {
  auto query = Query::parse(text);
  EXPECT_TRUE(query.ok()) << text;
  return query.ok() ? *query : Query();
}

TEST(Query, escapes_and_pluses_are_decoded) {
  const Query query = parsed("tensor=a%2Fb+c&tensor=%C3%A9&&mode=TRAIN");
  EXPECT_THAT(query.texts("tensor"), ElementsAre("a/b c", "é"));
  EXPECT_EQ(*query.mode(), Mode::train);
}

TEST(Query, wrong_escapes_zero_bytes_and_other_encodings_are_errors) {
  for (const char* text : {"a=%", "a=%4", "a=%zz", "%", "a=%00", "a=%FF", "a=%C0%80", "a=%ED%A0%80",
                           "a=%F5%80%80%80"}) {
    const auto query = Query::parse(text);
    ASSERT_FALSE(query.ok()) << text;
    EXPECT_EQ(query.error().code, ErrorCode::invalid_argument);
  }
}

TEST(Query, unknown_names_are_told_with_the_nearest_one) {
  const Status checked = parsed("tensro=x").check(kTable);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(checked.error().message, HasSubstr("'tensro'"));
  EXPECT_THAT(checked.error().message, HasSubstr("Did you mean 'tensor'?"));
}

TEST(Query, only_repeated_parameters_may_be_repeated) {
  EXPECT_TRUE(parsed("tensor=a&tensor=b").check(kTable).ok());
  EXPECT_FALSE(parsed("mode=TRAIN&mode=TRAIN").check(kTable).ok());
}

TEST(Query, whole_numbers_are_digits_within_bounds) {
  const auto number = [](std::string_view text) {
    return parsed(text).integer("points", {1, 4000});
  };
  EXPECT_EQ(*number("points=4000"), 4000);
  EXPECT_EQ(*number("mode=EVAL"), std::nullopt);
  for (const char* text : {"points=0", "points=4001", "points=1.5", "points=+1", "points=1%20",
                           "points=0x10", "points=", "points=99999999999999999999"}) {
    EXPECT_FALSE(number(text).ok()) << text;
  }
}

TEST(Query, tolerances_are_finite_and_not_negative) {
  EXPECT_EQ(*parsed("absolute=1e-3").number("absolute", 0), 1e-3);
  EXPECT_EQ(*parsed("").number("absolute", 0.5), 0.5);
  for (const char* text :
       {"absolute=-1", "absolute=nan", "absolute=inf", "absolute=1e999", "absolute=1x"}) {
    EXPECT_FALSE(parsed(text).number("absolute", 0).ok()) << text;
  }
}

TEST(Query, the_same_question_has_one_text) {
  const std::string text =
      parsed("tensor=b&points=1000&tensor=a%2Fb&mode=GLOBAL").canonical(kTable);
  EXPECT_EQ(text, "tensor=a%2Fb&tensor=b");
  EXPECT_EQ(parsed(text).canonical(kTable), text);
}

TEST(Query, components_are_encoded_as_browsers_do) {
  EXPECT_EQ(encode_component("a b/<é>~'()!*"), "a%20b%2F%3C%C3%A9%3E~'()!*");
}

}  // namespace
}  // namespace smd::server
