#include "smd/config/save_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "smd/base/json.h"

namespace smd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr Step kMax = std::numeric_limits<Step>::max();

std::vector<Step> saved_below(const SaveConfigMode& mode, Step limit) {
  std::vector<Step> steps;
  for (Step step = 0; step < limit; ++step) {
    if (mode.should_save(step)) steps.push_back(step);
  }
  return steps;
}

std::vector<Step> walked_below(const SaveConfigMode& mode, Step limit) {
  std::vector<Step> steps;
  for (auto next = mode.next_save(0); next && *next < limit; next = mode.next_save(*next + 1)) {
    steps.push_back(*next);
  }
  return steps;
}

struct Row {
  SaveConfigMode mode;
  Step limit;
  std::vector<Step> saved;
};

TEST(SaveConfigMode, saves_the_documented_steps) {
  const Row rows[] = {
      {{}, 1100, {0, 500, 1000}},
      {{.save_interval = 1}, 4, {0, 1, 2, 3}},
      {{.save_interval = 100, .end_step = 200}, 1000, {0, 100}},
      {{.save_interval = 100, .end_step = 201}, 1000, {0, 100, 200}},
      {{.save_interval = 100, .start_step = 150}, 350, {200, 300}},
      {{.save_steps = {3, 7}}, 600, {0, 3, 7, 500}},
      {{.save_interval = 2, .start_step = 4, .end_step = 6, .save_steps = {1, 9}}, 20, {1, 4, 9}},
      {{.end_step = 0}, 2000, {}},
      {{.end_step = 0, .save_steps = {3}}, 2000, {3}},
      {{.save_interval = 3, .start_step = 10, .end_step = 5}, 100, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(dump_json(row.mode.to_json()));
    EXPECT_EQ(saved_below(row.mode, row.limit), row.saved);
    EXPECT_EQ(walked_below(row.mode, row.limit), row.saved);
  }
}

TEST(SaveConfigMode, never_saves_before_the_first_step) {
  const SaveConfigMode mode{.save_interval = 1};
  EXPECT_FALSE(mode.should_save(-1));
  EXPECT_EQ(mode.next_save(-5), 0);
}

TEST(SaveConfigMode, next_save_ends_with_the_last_saved_step) {
  const SaveConfigMode mode{.save_interval = 10, .end_step = 30, .save_steps = {45}};
  EXPECT_EQ(mode.next_save(20), 20);
  EXPECT_EQ(mode.next_save(21), 45);
  EXPECT_EQ(mode.next_save(46), std::nullopt);
}

TEST(SaveConfigMode, next_save_does_not_overflow) {
  const SaveConfigMode mode{.save_interval = 1000};
  EXPECT_EQ(mode.next_save(kMax), std::nullopt);
  const SaveConfigMode every{.save_interval = 1};
  EXPECT_EQ(every.next_save(kMax), kMax);
  const SaveConfigMode huge{.save_interval = kMax};
  EXPECT_EQ(huge.next_save(1), kMax);
}

TEST(SaveConfigMode, normalize_sorts_and_drops_duplicates) {
  SaveConfigMode mode{.save_steps = {7, 3, 7, 1}, .when_nan = {"loss", "grad", "loss"}};
  ASSERT_TRUE(mode.normalize().ok());
  EXPECT_THAT(mode.save_steps, ElementsAre(1, 3, 7));
  EXPECT_THAT(mode.when_nan, ElementsAre("loss", "grad"));
}

TEST(SaveConfigMode, refuses_values_that_cannot_work) {
  EXPECT_EQ(SaveConfigMode{.save_interval = 0}.check().error().message,
            "save_interval is 0; it must be at least 1.");
  EXPECT_THAT(SaveConfigMode{.save_interval = -3}.check().error().message, HasSubstr("-3"));
  EXPECT_THAT(SaveConfigMode{.start_step = -1}.check().error().message,
              HasSubstr("start_step is -1"));
  EXPECT_THAT(SaveConfigMode{.end_step = -1}.check().error().message, HasSubstr("end_step is -1"));
  EXPECT_THAT(SaveConfigMode{.save_steps = {-2}}.check().error().message,
              HasSubstr("save_steps is -2"));
  EXPECT_FALSE(SaveConfigMode{.when_nan = {""}}.check().ok());
  EXPECT_TRUE(SaveConfigMode{.end_step = 0}.check().ok());
}

TEST(SaveConfigMode, json_has_the_keys_of_the_collections_file) {
  const SaveConfigMode mode{.save_interval = 1, .end_step = 100, .save_steps = {3, 7}};
  EXPECT_EQ(dump_json(mode.to_json()),
            R"({"save_interval": 1, "save_steps": [3, 7], "start_step": 0, "end_step": 100})");
  EXPECT_EQ(dump_json(SaveConfigMode{}.to_json()),
            R"({"save_interval": 500, "save_steps": [], "start_step": 0, "end_step": null})");
  EXPECT_THAT(dump_json(SaveConfigMode{.when_nan = {"a", "b"}}.to_json()),
              HasSubstr(R"("end_step": null, "when_nan": ["a", "b"]})"));
}

TEST(SaveConfigMode, json_reads_back) {
  const SaveConfigMode mode{
      .save_interval = 7, .start_step = 2, .end_step = 9, .save_steps = {1, 4}, .when_nan = {"x"}};
  EXPECT_EQ(*SaveConfigMode::from_json(mode.to_json(), "m"), mode);
}

TEST(SaveConfigMode, numbers_may_be_strings) {
  const auto mode = SaveConfigMode::from_json(
      Json{{"save_interval", "10"}, {"end_step", " 20 "}, {"save_steps", "5, 3,"}}, "m");
  ASSERT_TRUE(mode.ok());
  EXPECT_EQ(mode->save_interval, 10);
  EXPECT_EQ(mode->end_step, 20);
  EXPECT_THAT(mode->save_steps, ElementsAre(3, 5));
}

TEST(SaveConfigMode, json_errors_name_the_key) {
  auto message = [](Json json) { return SaveConfigMode::from_json(json, "TRAIN").error().message; };
  EXPECT_THAT(message({{"save_intervall", 1}}),
              AllOf(HasSubstr("'save_intervall'"), HasSubstr("Did you mean 'save_interval'?")));
  EXPECT_THAT(message({{"save_interval", "often"}}),
              AllOf(HasSubstr("TRAIN.save_interval"), HasSubstr("often")));
  EXPECT_THAT(message({{"save_interval", 2.5}}), HasSubstr("2.5"));
  EXPECT_THAT(message({{"save_interval", true}}), HasSubstr("true"));
  EXPECT_THAT(message({{"save_interval", 18446744073709551615u}}), HasSubstr("whole number"));
  EXPECT_THAT(message({{"save_steps", {1, "x"}}}), HasSubstr("TRAIN.save_steps holds 'x'"));
  EXPECT_THAT(message({{"end_step", -1}}), HasSubstr("TRAIN: end_step is -1"));
  EXPECT_THAT(message(Json::array()), HasSubstr("expected an object"));
}

TEST(SaveConfig, default_is_complete_and_saves_every_500_steps_in_all_modes) {
  const SaveConfig config;
  EXPECT_TRUE(config.complete());
  for (Mode mode : kModes) {
    EXPECT_TRUE(config.should_save(mode, 500));
    EXPECT_FALSE(config.should_save(mode, 499));
    EXPECT_EQ(config.next_save(mode, 1), 500);
  }
}

TEST(SaveConfig, modes_differ) {
  SaveConfig::Modes modes;
  for (Mode mode : kModes) {
    modes[index_of(mode)] =
        SaveConfigMode{.save_interval = static_cast<int64_t>(index_of(mode)) + 1};
  }
  const auto config = SaveConfig::from_modes(modes);
  ASSERT_TRUE(config.ok());
  EXPECT_TRUE(config->should_save(Mode::train, 1));
  EXPECT_FALSE(config->should_save(Mode::eval, 1));
  EXPECT_EQ(config->next_save(Mode::predict, 1), 3);
  EXPECT_EQ(config->next_save(Mode::global, 1), 4);
}

TEST(SaveConfig, missing_modes_are_filled_from_the_defaults) {
  auto config = SaveConfig::from_modes({SaveConfigMode{.save_interval = 1}});
  auto defaults = SaveConfig::from_modes(
      {SaveConfigMode{.save_interval = 2}, SaveConfigMode{.save_interval = 3}});
  EXPECT_FALSE(config->complete());
  EXPECT_TRUE(config->should_save(Mode::global, 500)) << "an inheriting mode acts like the default";
  config->merge_defaults(*defaults);
  EXPECT_TRUE(config->complete());
  EXPECT_EQ(config->mode(Mode::train)->save_interval, 1);
  EXPECT_EQ(config->mode(Mode::eval)->save_interval, 3);
  EXPECT_EQ(config->mode(Mode::global)->save_interval, kDefaultSaveInterval);
}

TEST(SaveConfig, setters_reach_all_modes) {
  SaveConfig config;
  ASSERT_TRUE(config.set_end_step(0).ok());
  ASSERT_TRUE(config.set_save_interval(7).ok());
  ASSERT_TRUE(config.set_start_step(2).ok());
  ASSERT_TRUE(config.set_save_steps({9, 4, 9}).ok());
  ASSERT_TRUE(config.set_when_nan({"loss"}).ok());
  for (Mode mode : kModes) EXPECT_EQ(config.mode(mode)->end_step, 0);
  EXPECT_EQ(*config.save_interval(), 7);
  EXPECT_EQ(*config.start_step(), 2);
  EXPECT_EQ(*config.end_step(), 0);
  EXPECT_THAT(*config.save_steps(), ElementsAre(4, 9));
  EXPECT_THAT(*config.when_nan(), ElementsAre("loss"));
  EXPECT_FALSE(config.should_save(Mode::train, 7));
  EXPECT_TRUE(config.should_save(Mode::train, 9));
}

TEST(SaveConfig, a_refused_value_changes_nothing) {
  SaveConfig config;
  EXPECT_FALSE(config.set_save_interval(0).ok());
  EXPECT_FALSE(config.set_mode(Mode::eval, SaveConfigMode{.save_interval = 0}).ok());
  EXPECT_EQ(config, SaveConfig());
}

TEST(SaveConfig, getter_lists_the_values_when_modes_differ) {
  auto config = SaveConfig::from_modes({SaveConfigMode{.save_interval = 1}, SaveConfigMode{}});
  EXPECT_EQ(config->save_interval().error().message,
            "save_interval is not the same in all modes (TRAIN 1, EVAL 500, PREDICT inherits, "
            "GLOBAL inherits); ask for one mode instead.");
}

TEST(SaveConfig, json_reads_back) {
  auto config = SaveConfig::from_modes(
      {SaveConfigMode{.save_interval = 10}, std::nullopt, SaveConfigMode{.save_steps = {1}}});
  EXPECT_THAT(dump_json(config->to_json()), HasSubstr(R"("EVAL": null)"));
  EXPECT_EQ(*SaveConfig::from_json(config->to_json()), *config);
}

TEST(SaveConfig, parameters_alone_hold_for_every_mode) {
  const auto config = SaveConfig::from_json({{"save_interval", 10}});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config->save_interval(), 10);
}

TEST(SaveConfig, an_empty_object_inherits_everywhere) {
  const auto config = SaveConfig::from_json(Json::object());
  ASSERT_TRUE(config.ok());
  for (Mode mode : kModes) EXPECT_EQ(config->mode(mode), nullptr);
}

TEST(SaveConfig, json_errors_say_what_is_wrong) {
  EXPECT_THAT(SaveConfig::from_json({{"TRAIN", nullptr}, {"save_interval", 1}}).error().message,
              HasSubstr("mixes modes and parameters"));
  EXPECT_THAT(SaveConfig::from_json({{"TRIAN", nullptr}}).error().message,
              HasSubstr("Did you mean 'TRAIN'?"));
  EXPECT_THAT(SaveConfig::from_json({{"EVAL", {{"save_interval", 0}}}}).error().message,
              HasSubstr("save_config.EVAL: save_interval is 0"));
  EXPECT_TRUE(SaveConfig::from_json({{"LATER", 1}}, "save_config", UnknownKeys::ignore).ok());
}

TEST(SaveConfig, a_pointer_to_a_mode_survives_inheriting) {
  SaveConfig config = *SaveConfig::broadcast({.save_steps = {1, 2}});
  SaveConfigMode* train = config.mutable_mode(Mode::train);
  ASSERT_TRUE(config.set_mode(Mode::train, std::nullopt).ok());
  EXPECT_EQ(config.mode(Mode::train), nullptr);
  EXPECT_THAT(train->save_steps, testing::ElementsAre(1, 2));
  SaveConfig other;
  ASSERT_TRUE(other.set_mode(Mode::train, std::nullopt).ok());
  ASSERT_TRUE(other.set_save_steps({1, 2}).ok());
  ASSERT_TRUE(other.set_mode(Mode::train, std::nullopt).ok());
  EXPECT_EQ(config, other) << "what a mode was before it inherits does not count";
}

}  // namespace
}  // namespace smd
