#include "smd/config/hook_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/json.h"

namespace smd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ParsedHookConfig parse(std::string_view text, HookDefaults defaults = {}) {
  auto json = parse_json(text, "");
  EXPECT_TRUE(json.ok()) << json.error().message;
  auto parsed = parse_hook_config(*json, defaults);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? *parsed : ParsedHookConfig();
}

std::string error_of(std::string_view text) {
  auto json = parse_json(text, "");
  EXPECT_TRUE(json.ok()) << json.error().message;
  auto parsed = parse_hook_config(*json);
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_argument);
  return parsed.error().message;
}

std::string hook(std::string_view parameters) {
  return R"({"HookParameters": {)" + std::string(parameters) + "}}";
}

TEST(HookConfig, an_empty_document_gives_the_defaults) {
  for (const char* text :
       {"{}", R"({"HookParameters": null, "CollectionConfigurations": null, "LocalPath": null})"}) {
    const auto parsed = parse(text);
    HookConfig expected;
    expected.out_dir = "/opt/ml/output/tensors";
    EXPECT_EQ(parsed.config, expected);
    EXPECT_THAT(parsed.warnings, IsEmpty());
  }
}

TEST(HookConfig, reads_the_documented_sample_with_its_trailing_comma) {
  const auto parsed = parse(R"({
    "LocalPath": "/my/smdebug_hook/path",
    "HookParameters": {
      "save_all": false,
      "include_regex": "regex1,regex2",
      "save_interval": "100",
      "save_steps": "1,2,3,4",
      "start_step": "1",
      "end_step": "1000000",
      "reductions": "min,max,mean"
    },
    "CollectionConfigurations": [
      {
        "CollectionName": "collection_obj_name1",
        "CollectionParameters": {
          "include_regex": "regexe5*",
          "save_interval": 100,
          "save_steps": "1,2,3",
          "start_step": 1,
          "reductions": "min"
        }
      },
    ]
  })");
  EXPECT_THAT(parsed.warnings, IsEmpty());
  const HookConfig& config = parsed.config;
  EXPECT_EQ(config.out_dir, "/my/smdebug_hook/path");
  EXPECT_FALSE(config.save_all);
  EXPECT_THAT(config.include_regex, ElementsAre("regex1", "regex2"));
  EXPECT_THAT(config.include_collections, ElementsAre("collection_obj_name1"));
  const SaveConfigMode hook_mode{
      .save_interval = 100, .start_step = 1, .end_step = 1000000, .save_steps = {1, 2, 3, 4}};
  for (Mode mode : kModes) EXPECT_EQ(*config.save_config->mode(mode), hook_mode);
  EXPECT_EQ(*config.reduction_config, *ReductionConfig::create({.reductions = {"min,max,mean"}}));
  ASSERT_EQ(config.collections.size(), 1u);
  const CollectionConfig& collection = config.collections[0];
  EXPECT_EQ(collection.name, "collection_obj_name1");
  EXPECT_THAT(collection.include_regex, ElementsAre("regexe5*"));
  EXPECT_EQ(collection.save_histogram, std::nullopt);
  const SaveConfigMode own{
      .save_interval = 100, .start_step = 1, .end_step = 1000000, .save_steps = {1, 2, 3}};
  for (Mode mode : kModes) EXPECT_EQ(*collection.save_config->mode(mode), own);
  EXPECT_EQ(*collection.reduction_config, *ReductionConfig::create({.reductions = {"min"}}));
}

TEST(HookConfig, reads_every_hook_parameter) {
  const auto parsed = parse(hook(R"(
    "save_all": "True", "dry_run": 1, "export_tensorboard": "true", "tensorboard_dir": "/tb",
    "include_regex": ["a{1,2}", "b"], "exclude_regex": "c, d", "include_collections": "weights,losses,weights",
    "include_workers": "all", "durable": "close", "layout": "packed", "overflow": "drop", "when_nan": "loss,grad", "train.when_nan": "x")"));
  EXPECT_THAT(parsed.warnings, IsEmpty());
  const HookConfig& config = parsed.config;
  EXPECT_TRUE(config.save_all);
  EXPECT_TRUE(config.dry_run);
  EXPECT_TRUE(config.export_tensorboard);
  EXPECT_EQ(config.tensorboard_dir, "/tb");
  EXPECT_THAT(config.include_regex, ElementsAre("a{1,2}", "b"));
  EXPECT_THAT(config.exclude_regex, ElementsAre("c", "d"));
  EXPECT_THAT(config.include_collections, ElementsAre("weights", "losses"));
  EXPECT_EQ(config.include_workers, IncludeWorkers::all);
  EXPECT_EQ(config.durable, Durability::close);
  EXPECT_EQ(config.layout, RunLayout::packed);
  EXPECT_EQ(config.overflow, Overflow::drop);
  EXPECT_THAT(config.save_config->mode(Mode::eval)->when_nan, ElementsAre("loss", "grad"));
  EXPECT_THAT(config.save_config->mode(Mode::train)->when_nan, ElementsAre("x"));
  EXPECT_FALSE(config.reduction_config.has_value());
}

// For one mode of one collection: which of the four places gave the interval, and who wins.
TEST(HookConfig, the_nearest_place_wins) {
  const char* const keys[] = {"train.save_interval", "save_interval"};
  for (int given = 0; given < 16; ++given) {
    Json own = Json::object();
    Json outer = Json::object();
    if (given & 8) own[keys[0]] = 8;
    if (given & 4) own[keys[1]] = 4;
    if (given & 2) outer[keys[0]] = 2;
    if (given & 1) outer[keys[1]] = 1;
    const Json json = {
        {"HookParameters", outer},
        {"CollectionConfigurations", {{{"CollectionName", "c"}, {"CollectionParameters", own}}}}};
    const auto parsed = parse_hook_config(json, {.save_interval = 10});
    ASSERT_TRUE(parsed.ok());
    auto first = [&](int a, int b, int c, int d) {
      for (int place : {a, b, c, d}) {
        if (given & place) return place;
      }
      return 10;
    };
    const SaveConfig& config = *parsed->config.collections[0].save_config;
    EXPECT_EQ(config.mode(Mode::train)->save_interval, first(8, 4, 2, 1)) << given;
    EXPECT_EQ(config.mode(Mode::eval)->save_interval, first(4, 1, 0, 0)) << given;
    const auto& hook_config = parsed->config.save_config;
    EXPECT_EQ(hook_config.has_value(), (given & 3) != 0);
    if (hook_config) {
      EXPECT_EQ(hook_config->mode(Mode::train)->save_interval, first(2, 1, 0, 0));
    }
  }
}

TEST(HookConfig, keys_of_different_places_combine) {
  const auto parsed = parse(R"({
    "HookParameters": {"save_steps": "3,7", "eval.end_step": 50, "global.start_step": "5"},
    "CollectionConfigurations": [{"CollectionName": "metrics", "CollectionParameters": {"end_step": 0}}]
  })");
  const SaveConfig& config = *parsed.config.collections[0].save_config;
  EXPECT_EQ(config.mode(Mode::train)->end_step, 0);
  EXPECT_EQ(config.mode(Mode::eval)->end_step, 0)
      << "the collection is nearer than the hook's mode";
  EXPECT_EQ(config.mode(Mode::global)->start_step, 5);
  EXPECT_THAT(config.mode(Mode::train)->save_steps, ElementsAre(3, 7))
      << "end_step 0 keeps save_steps";
  EXPECT_EQ(parsed.config.save_config->mode(Mode::eval)->end_step, 50);
}

TEST(HookConfig, the_frameworks_interval_reaches_listed_collections) {
  const auto parsed = parse(R"({"HookParameters": {"start_step": 1},
    "CollectionConfigurations": [{"CollectionName": "a"}, {"CollectionName": "b", "CollectionParameters": null}]})",
                            {.save_interval = 10});
  EXPECT_EQ(*parsed.config.save_config->save_interval(), 10);
  ASSERT_EQ(parsed.config.collections.size(), 2u);
  for (const auto& collection : parsed.config.collections) {
    EXPECT_EQ(*collection.save_config->save_interval(), 10);
    EXPECT_EQ(*collection.save_config->start_step(), 1);
    EXPECT_FALSE(collection.reduction_config.has_value());
  }
}

TEST(HookConfig, empty_lists_count_as_absent) {
  const auto parsed = parse(hook(R"("save_steps": "", "include_regex": "", "when_nan": ",")"));
  EXPECT_THAT(parsed.config.include_regex, IsEmpty());
  EXPECT_FALSE(parsed.config.save_config.has_value());
}

TEST(HookConfig, lists_may_be_numbers_or_json_lists) {
  EXPECT_THAT(*parse(hook(R"("save_steps": 5)")).config.save_config->save_steps(), ElementsAre(5));
  EXPECT_THAT(*parse(hook(R"("save_steps": [9, "4"])")).config.save_config->save_steps(),
              ElementsAre(4, 9));
}

TEST(HookConfig, raw_tensors_are_saved_unless_reductions_are_listed) {
  struct Row {
    const char* parameters;
    bool exists;
    bool raw;
    bool shape;
    int reductions;
  };
  const Row rows[] = {
      {R"()", false, false, false, 0},
      {R"("reductions": "")", true, true, false, 0},
      {R"("reductions": "min,l2")", true, false, false, 2},
      {R"("reductions": "min", "save_raw_tensor": "True")", true, true, false, 1},
      {R"("reductions": "", "save_raw_tensor": "false")", true, false, false, 0},
      {R"("save_raw_tensor": true)", true, true, false, 0},
      {R"("save_raw_tensor": "False", "save_shape": "true")", true, false, true, 0},
      {R"("save_shape": true)", true, true, true, 0},
      {R"("save_shape": true, "reductions": ["median", "abs_l1_norm"])", true, false, true, 2},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.parameters);
    const auto config = parse(hook(row.parameters)).config.reduction_config;
    ASSERT_EQ(config.has_value(), row.exists);
    if (!config) continue;
    EXPECT_EQ(config->save_raw_tensor(), row.raw);
    EXPECT_EQ(config->save_shape(), row.shape);
    EXPECT_EQ(config->set().size(), row.reductions);
  }
}

TEST(HookConfig, a_collection_listed_twice_is_merged) {
  const auto parsed = parse(R"({"CollectionConfigurations": [
    {"CollectionName": "c", "CollectionParameters":
      {"include_regex": "a,b", "save_interval": 2, "start_step": 4, "save_histogram": "False", "reductions": "min"}},
    {"CollectionName": "c", "CollectionParameters": {"include_regex": "b,d", "exclude_regex": "e", "save_interval": 3}}
  ]})");
  ASSERT_EQ(parsed.config.collections.size(), 1u);
  const CollectionConfig& merged = parsed.config.collections[0];
  EXPECT_THAT(merged.include_regex, ElementsAre("a", "b", "d"));
  EXPECT_THAT(merged.exclude_regex, ElementsAre("e"));
  EXPECT_EQ(*merged.save_config->save_interval(), 3);
  EXPECT_EQ(*merged.save_config->start_step(), 0);
  EXPECT_EQ(merged.save_histogram, false);
  EXPECT_TRUE(merged.reduction_config.has_value());
  EXPECT_THAT(parsed.config.include_collections, ElementsAre("c"));
  EXPECT_THAT(parsed.warnings, ElementsAre(HasSubstr("'c' more than once")));
}

TEST(HookConfig, listed_collections_join_the_included_ones) {
  const auto parsed = parse(R"({"HookParameters": {"include_collections": ["biases", "c"]},
    "CollectionConfigurations": [{"CollectionName": "a"}, {"CollectionName": "c"}]})");
  EXPECT_THAT(parsed.config.include_collections, ElementsAre("biases", "c", "a"));
}

TEST(HookConfig, unknown_keys_are_reported_with_the_nearest) {
  const auto parsed = parse(R"({"LocalPth": "/x", "S3OutputPath": "s3://b", "S3Path": "s3://b",
    "FrameworkParameters": {"of_a_framework": 1},
    "HookParameters": {"save_intervall": 1, "trian.save_steps": "1", "format": "x"},
    "CollectionConfigurations": [{"CollectionName": "c", "Other": 1,
      "CollectionParameters": {"save_histograms": true, "save_all": true}}]})");
  EXPECT_THAT(
      parsed.warnings,
      ElementsAre("Ignoring the unknown key 'LocalPth' in the hook configuration. Did you mean "
                  "'LocalPath'?",
                  "Ignoring the unknown key 'save_intervall' in HookParameters. Did you mean "
                  "'save_interval'?",
                  "Ignoring the unknown key 'trian.save_steps' in HookParameters. Did you mean "
                  "'train.save_steps'?",
                  HasSubstr("'format' in HookParameters."),
                  HasSubstr("'Other' in CollectionConfigurations[0]."),
                  "Ignoring the unknown key 'save_histograms' in "
                  "CollectionConfigurations[0].CollectionParameters. "
                  "Did you mean 'save_histogram'?",
                  HasSubstr("'save_all' in CollectionConfigurations[0].CollectionParameters.")));
}

TEST(HookConfig, errors_name_the_json_key) {
  EXPECT_THAT(error_of("[]"), HasSubstr("expected an object"));
  EXPECT_THAT(error_of(R"({"LocalPath": 3})"), HasSubstr("LocalPath is 3"));
  EXPECT_THAT(error_of(R"({"LocalPath": ""})"), HasSubstr("LocalPath is empty"));
  EXPECT_THAT(error_of(R"({"HookParameters": []})"), HasSubstr("HookParameters"));
  EXPECT_THAT(error_of(hook(R"("save_all": "yes")")),
              HasSubstr("HookParameters.save_all is \"yes\""));
  EXPECT_THAT(error_of(hook(R"("save_interval": "often")")),
              HasSubstr("HookParameters.save_interval"));
  EXPECT_THAT(error_of(hook(R"("eval.save_interval": 0)")),
              "HookParameters.eval.save_interval is 0; it must be at least 1.");
  EXPECT_THAT(error_of(hook(R"("save_steps": "1,x")")),
              HasSubstr("HookParameters.save_steps holds 'x'"));
  EXPECT_THAT(error_of(hook(R"("save_steps": [-1])")),
              HasSubstr("HookParameters.save_steps is -1"));
  EXPECT_THAT(error_of(hook(R"("end_step": -1)")), HasSubstr("HookParameters.end_step is -1"));
  EXPECT_THAT(error_of(hook(R"("reductions": "men")")),
              AllOf(HasSubstr("HookParameters.reductions"), HasSubstr("Did you mean 'mean'?")));
  EXPECT_THAT(error_of(hook(R"("save_raw_tensor": "maybe")")),
              HasSubstr("HookParameters.save_raw_tensor"));
  EXPECT_THAT(
      error_of(hook(R"("include_workers": "al")")),
      AllOf(HasSubstr("HookParameters.include_workers is 'al'"), HasSubstr("Did you mean 'all'?")));
  EXPECT_THAT(error_of(hook(R"("durable": "steps")")), HasSubstr("Did you mean 'step'?"));
  EXPECT_THAT(error_of(hook(R"("overflow": "drops")")), HasSubstr("Did you mean 'drop'?"));
  EXPECT_THAT(error_of(hook(R"("layout": "pack")")), HasSubstr("Did you mean 'packed'?"));
  EXPECT_THAT(error_of(hook(R"("include_regex": {"a": 1})")),
              HasSubstr("HookParameters.include_regex"));
  EXPECT_THAT(error_of(hook(R"("tensorboard_dir": 1)")),
              HasSubstr("HookParameters.tensorboard_dir"));
}

TEST(HookConfig, collection_errors_say_which_entry) {
  EXPECT_THAT(error_of(R"({"CollectionConfigurations": {}})"),
              HasSubstr("CollectionConfigurations"));
  EXPECT_THAT(error_of(R"({"CollectionConfigurations": [{"CollectionName": "a"}, {}]})"),
              "CollectionConfigurations[1] has no CollectionName; every entry needs one.");
  EXPECT_THAT(error_of(R"({"CollectionConfigurations": [{"CollectionName": ""}]})"),
              HasSubstr("CollectionConfigurations[0].CollectionName is empty"));
  EXPECT_THAT(error_of(R"({"CollectionConfigurations": [{"CollectionName": "a",
                "CollectionParameters": {"save_histogram": "on"}}]})"),
              HasSubstr("CollectionConfigurations[0].CollectionParameters.save_histogram"));
  EXPECT_THAT(error_of(R"({"CollectionConfigurations": ["weights"]})"),
              HasSubstr("CollectionConfigurations[0]"));
}

TEST(HookConfig, reads_budget_and_flight_recorder) {
  const HookConfig config = parse(hook(R"("max_overhead": "0.02", "max_interval": "50",
      "flight_recorder": 10, "flight_recorder_raw": "true", "flight_recorder_bytes": 1000,
      "first_bad_tensor": true)"))
                                .config;
  EXPECT_EQ(config.max_overhead, 0.02);
  EXPECT_EQ(config.max_interval, 50);
  EXPECT_EQ(config.flight_recorder, 10);
  EXPECT_TRUE(config.flight_recorder_raw);
  EXPECT_EQ(config.flight_recorder_bytes, 1000);
  EXPECT_TRUE(config.first_bad_tensor);
}

TEST(HookConfig, refuses_a_budget_that_is_no_share) {
  EXPECT_THAT(error_of(hook(R"("max_overhead": "1.5")")), HasSubstr("max_overhead is 1.5"));
  EXPECT_THAT(error_of(hook(R"("max_overhead": 0)")), HasSubstr("above 0"));
  EXPECT_THAT(error_of(hook(R"("max_overhead": "much")")), HasSubstr("a number"));
  EXPECT_THAT(error_of(hook(R"("max_overhead": "nan")")), HasSubstr("a number"));
  EXPECT_THAT(error_of(hook(R"("max_overhead": "0.1 %")")), HasSubstr("a number"));
  EXPECT_THAT(error_of(hook(R"("max_interval": 0)")), HasSubstr("max_interval is 0"));
  EXPECT_THAT(error_of(hook(R"("flight_recorder": -2)")), HasSubstr("flight_recorder is -2"));
}

TEST(HookConfig, knows_which_collections_have_steps_of_their_own) {
  const auto config = parse(R"({"CollectionConfigurations": [
      {"CollectionName": "weights"},
      {"CollectionName": "biases", "CollectionParameters": {"train.save_interval": "5"}}]})")
                          .config;
  EXPECT_FALSE(config.collections.at(0).save_config_is_own);
  EXPECT_TRUE(config.collections.at(1).save_config_is_own);
}

}  // namespace
}  // namespace smd
