#include "smd/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::HasSubstr;

TEST(Json, accepts_trailing_commas_outside_strings) {
  auto json = parse_json(R"({"a": [1, 2, ], "b": ",]",})", "");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((*json)["a"].size(), 2u);
  EXPECT_EQ((*json)["b"], ",]");
}

TEST(Json, says_where_it_is_broken) {
  auto json = parse_json("{\n  \"a\" 1\n}", "hook.json");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(json.error().message, HasSubstr("line 2"));
  EXPECT_THAT(json.error().message, HasSubstr("hook.json"));
}

TEST(Json, a_lone_comma_is_still_an_error) {
  EXPECT_FALSE(parse_json("[,,]", "").ok());
  EXPECT_FALSE(parse_json("{\"a\" 1,}", "").ok());
}

TEST(Json, an_object_of_absurdly_many_keys_is_refused) {
  std::string text = "{";
  for (int i = 0; i < 20'000; ++i) text += "\"k" + std::to_string(i) + "\": 0, ";
  text += "}";
  auto json = parse_json(text, "");
  ASSERT_FALSE(json.ok());
  EXPECT_THAT(json.error().message, HasSubstr("10000 keys"));
}

TEST(Json, escapes_as_python_does) {
  std::string out;
  append_json_string(out, "a\"\\\n\x01/\u00e9\U0001F600");
  EXPECT_EQ(out, R"("a\"\\\n\u0001/\u00e9\ud83d\ude00")");
  out.clear();
  append_json_string(out, "bad\xff");
  EXPECT_EQ(out, R"("bad\ufffd")");
}

TEST(Json, dumps_with_pythons_separators) {
  Json value = {{"a", {1, 2}}, {"b", nullptr}, {"c", Json::object()}, {"d", Json::array()}};
  EXPECT_EQ(dump_json(value), R"({"a": [1, 2], "b": null, "c": {}, "d": []})");
}

TEST(Json, deep_nesting_is_an_error_and_no_stack_overflow) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  ASSERT_TRUE(parse_json(nested(500), "").ok());
  EXPECT_EQ(dump_json(*parse_json(nested(500), "")), nested(500));
  const auto deep = parse_json(nested(200'000), "x.json");
  ASSERT_FALSE(deep.ok());
  EXPECT_EQ(deep.error().message,
            "Invalid JSON: more than 500 brackets are open at once, in x.json.");
}

}  // namespace
}  // namespace smd
