#include "smd/config/json_value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/json.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(JsonValue, whole_numbers_come_in_three_spellings) {
  EXPECT_EQ(*json_int(10, "k"), 10);
  EXPECT_EQ(*json_int(-3, "k"), -3);
  EXPECT_EQ(*json_int(10.0, "k"), 10);
  EXPECT_EQ(*json_int(" +10 ", "k"), 10);
  for (const Json& bad : {Json("1.5"), Json(1.5), Json(1e300), Json(true), Json(nullptr), Json(""),
                          Json("0x10"), Json("+-1"), Json("99999999999999999999")}) {
    EXPECT_THAT(json_int(bad, "HookParameters.k").error().message,
                HasSubstr("HookParameters.k is "));
  }
}

TEST(JsonValue, booleans_may_be_strings_and_digits) {
  for (const Json& yes : {Json(true), Json("True"), Json("true"), Json("1"), Json(1)}) {
    EXPECT_TRUE(*json_bool(yes, "k"));
  }
  for (const Json& no : {Json(false), Json("False"), Json("false"), Json("0"), Json(0)}) {
    EXPECT_FALSE(*json_bool(no, "k"));
  }
  for (const Json& bad : {Json("yes"), Json(2), Json(1.0), Json(""), Json(Json::array())}) {
    EXPECT_FALSE(json_bool(bad, "k").ok()) << bad;
  }
  EXPECT_EQ(json_bool("Flase", "save_all").error().message,
            "save_all is \"Flase\"; expected true or false. Did you mean 'False'?");
}

TEST(JsonValue, lists_drop_empty_items) {
  EXPECT_THAT(*json_list(" a, ,b,, c ", "k"), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*json_list("", "k"), IsEmpty());
  EXPECT_THAT(*json_list(7, "k"), ElementsAre("7"));
  EXPECT_THAT(*json_list({"a", 1, {"b", ""}}, "k"), ElementsAre("a", "1", "b"));
  EXPECT_FALSE(json_list(Json{{"a", 1}}, "k").ok());
  EXPECT_FALSE(json_list({"a", true}, "k").ok());
}

TEST(JsonValue, an_item_of_a_list_may_hold_a_comma) {
  EXPECT_THAT(*json_list({"a{1,2}"}, "k"), ElementsAre("a{1,2}"));
}

TEST(JsonValue, a_long_value_is_shortened_in_the_message) {
  EXPECT_LT(json_int(std::string(10000, 'x'), "k").error().message.size(), 200u);
}

TEST(JsonValue, null_is_as_good_as_absent) {
  const Json object = {{"a", nullptr}, {"b", 1}};
  EXPECT_EQ(json_member(object, "a"), nullptr);
  EXPECT_EQ(json_member(object, "c"), nullptr);
  EXPECT_EQ(*json_member(object, "b"), 1);
}

}  // namespace
}  // namespace smd
