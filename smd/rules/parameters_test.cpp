#include "smd/rules/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ParameterSpec kTable[] = {
    {.name = "threshold", .type = ParameterType::real, .default_text = "0.1", .range = "(0,1]"},
    {.name = "steps", .type = ParameterType::integer, .default_text = "3", .aliases = "num old"},
    {.name = "flag", .type = ParameterType::boolean, .default_text = "false"},
    {.name = "kind", .type = ParameterType::text, .default_text = "a", .choices = "a b"},
    {.name = "names", .type = ParameterType::list, .default_text = ""},
    {.name = "bounds", .type = ParameterType::number_list, .default_text = "1,2"},
    {.name = "optional", .type = ParameterType::real, .default_text = ""},
};

Parameters parsed(const Json& given) {
  auto out = Parameters::parse("SomeRule", kTable, given);
  EXPECT_TRUE(out.ok()) << out.error().message;
  return out.ok() ? *out : Parameters();
}

std::string error_of(const Json& given) {
  const auto out = Parameters::parse("SomeRule", kTable, given);
  EXPECT_FALSE(out.ok()) << dump_json(given);
  return out.ok() ? "" : out.error().message;
}

TEST(Parameters, defaults_are_those_of_the_table) {
  const Parameters p = parsed(nullptr);
  EXPECT_EQ(p.real("threshold"), 0.1);
  EXPECT_EQ(p.integer("steps"), 3);
  EXPECT_FALSE(p.boolean("flag"));
  EXPECT_EQ(p.text("kind"), "a");
  EXPECT_THAT(p.list("names"), IsEmpty());
  EXPECT_THAT(p.numbers("bounds"), ElementsAre(1, 2));
  EXPECT_FALSE(p.has("optional"));
  EXPECT_FALSE(p.has("names"));
  EXPECT_FALSE(p.is_given("threshold"));
  EXPECT_EQ(p.text("workers"), "first");
  EXPECT_EQ(p.integer("max_violations"), 32);
  EXPECT_FALSE(p.boolean("compat"));
}

TEST(Parameters, texts_and_native_values_mean_the_same) {
  EXPECT_EQ(parsed({{"threshold", " 1e-05 "}}).real("threshold"), 1e-5);
  EXPECT_EQ(parsed({{"threshold", 0.5}}).real("threshold"), 0.5);
  EXPECT_EQ(parsed({{"threshold", 1}}).real("threshold"), 1.0);
  EXPECT_EQ(parsed({{"steps", "7"}}).integer("steps"), 7);
  EXPECT_EQ(parsed({{"steps", 7.0}}).integer("steps"), 7);
  EXPECT_THAT(parsed({{"names", "loss, losses ,"}}).list("names"), ElementsAre("loss", "losses"));
  EXPECT_THAT(parsed({{"names", {"a,b", " c"}}}).list("names"), ElementsAre("a,b", "c"));
  EXPECT_THAT(parsed({{"bounds", "-1, 2.5"}}).numbers("bounds"), ElementsAre(-1, 2.5));
  EXPECT_THAT(parsed({{"bounds", {3, 4}}}).numbers("bounds"), ElementsAre(3, 4));
  for (const char* yes : {"true", "True", "1", "YES"}) {
    EXPECT_TRUE(parsed({{"flag", yes}}).boolean("flag"));
  }
  for (const char* no : {"false", "FALSE", "0", "no"}) {
    EXPECT_FALSE(parsed({{"flag", no}}).boolean("flag"));
  }
  EXPECT_TRUE(parsed({{"flag", true}}).boolean("flag"));
  EXPECT_TRUE(parsed({{"flag", 1}}).boolean("flag"));
}

TEST(Parameters, empty_and_none_are_not_given) {
  for (const Json& nothing : {Json(""), Json("None"), Json("  "), Json(nullptr)}) {
    const Parameters p =
        parsed({{"names", nothing}, {"threshold", nothing}, {"optional", nothing}});
    EXPECT_FALSE(p.has("names"));
    EXPECT_FALSE(p.has("optional"));
    EXPECT_EQ(p.real("threshold"), 0.1);
    EXPECT_FALSE(p.is_given("threshold"));
  }
}

TEST(Parameters, older_names_are_accepted_once) {
  EXPECT_EQ(parsed({{"num", 5}}).integer("steps"), 5);
  EXPECT_EQ(parsed({{"old", 6}}).integer("steps"), 6);
  EXPECT_THAT(error_of({{"steps", 5}, {"num", 5}}), HasSubstr("given twice"));
}

TEST(Parameters, unknown_names_are_refused_with_the_nearest) {
  const std::string message = error_of({{"treshold", 1}});
  EXPECT_THAT(message, HasSubstr("SomeRule has no parameter 'treshold'; it has threshold, steps,"));
  EXPECT_THAT(message, HasSubstr("exclude_regex"));
  EXPECT_THAT(message, HasSubstr("Did you mean 'threshold'?"));
}

TEST(Parameters, wrong_values_are_refused) {
  EXPECT_EQ(error_of({{"threshold", "x"}}), "threshold of SomeRule is 'x'; it must be a number.");
  EXPECT_EQ(error_of({{"threshold", 0}}),
            "threshold of SomeRule is '0'; it must be above 0 and at most 1.");
  EXPECT_THAT(error_of({{"threshold", 1.5}}), HasSubstr("at most 1"));
  EXPECT_THAT(error_of({{"threshold", "nan"}}), HasSubstr("must be above 0"));
  EXPECT_THAT(error_of({{"threshold", true}}), HasSubstr("a number"));
  EXPECT_THAT(error_of({{"steps", "3.5"}}), HasSubstr("a whole number"));
  EXPECT_THAT(error_of({{"steps", 3.5}}), HasSubstr("a whole number"));
  EXPECT_THAT(error_of({{"steps", "99999999999999999999"}}), HasSubstr("a whole number"));
  EXPECT_THAT(error_of({{"flag", "maybe"}}), HasSubstr("true or false"));
  EXPECT_THAT(error_of({{"kind", "c"}}), HasSubstr("one of a, b"));
  EXPECT_THAT(error_of({{"bounds", "1,x"}}), HasSubstr("a list of numbers"));
  EXPECT_THAT(error_of({{"threshold", {1, 2}}}), HasSubstr("of type float"));
  EXPECT_THAT(error_of({{"names", Json::object()}}), HasSubstr("of type list of str"));
  EXPECT_THAT(error_of(Json::array()), HasSubstr("must be an object"));
  EXPECT_THAT(error_of({{"max_violations", 0}}), HasSubstr("at least 1"));
}

TEST(Parameters, rule_to_invoke_may_name_the_rule) {
  EXPECT_EQ(parsed({{"rule_to_invoke", "some_rule"}, {"steps", 4}}).integer("steps"), 4);
  EXPECT_THAT(error_of({{"rule_to_invoke", "OtherRule"}}), HasSubstr("'OtherRule'"));
}

TEST(Parameters, json_has_all_of_the_rule_and_what_was_given_beyond) {
  const Json json = parsed({{"steps", "4"}, {"workers", "all"}}).to_json();
  EXPECT_EQ(dump_json(json),
            R"({"threshold": 0.1, "steps": 4, "flag": false, "kind": "a", "names": null, )"
            R"("bounds": [1.0, 2.0], "optional": null, "workers": "all"})");
}

}  // namespace
}  // namespace smd::rules
