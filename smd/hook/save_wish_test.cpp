#include "smd/hook/save_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "smd/format/packed_file_name.h"
#include "smd/format/tfrecord.h"
#include "smd/hook/hook.h"
#include "tests/support/recorded_run.h"

namespace smd {
namespace {

class SaveWishTest : public testing::Test {
 protected:
  HookOptions options() const {
    HookOptions o;
    o.log = null_log();
    o.clock = std::make_shared<ManualClock>(1600000000.5);
    o.environment = Environment();
    o.storage = storage;
    return o;
  }
  static SaveWish mean_of(std::string collection, int64_t interval) {
    SaveWish wish{.collection = std::move(collection),
                  .save_config = *SaveConfig::broadcast({.save_interval = interval})};
    wish.reductions.add(*parse_reduction("mean"));
    return wish;
  }
  // Offers a gradient and a weight, and saves something by hand.
  void train(HookOptions o, int steps) const {
    auto hook = Hook::create(std::move(o));
    ASSERT_TRUE(hook.ok()) << hook.error().message;
    for (int i = 0; i < steps; ++i) {
      ASSERT_TRUE((*hook)->begin_step().ok());
      ASSERT_TRUE((*hook)->save("gradient/a", view, Kind::gradient).ok());
      ASSERT_TRUE((*hook)->save("a.weight", view, Kind::weight).ok());
      ASSERT_TRUE((*hook)->save_tensor("mine", view, {{"custom"}}).ok());
    }
    ASSERT_TRUE((*hook)->close().ok());
  }
  std::map<Step, std::vector<std::string>> saved() const {
    const RecordedRun run(storage);
    std::map<Step, std::vector<std::string>> out;
    for (Step step : run.steps()) out[step] = run.names(step);
    return out;
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  const Shape shape{4};
  std::vector<float> values{1, -2, 3, 4};
  const TensorView view{.data = values.data(), .dtype = DType::float32, .shape = shape};
};

using Names = std::vector<std::string>;

TEST_F(SaveWishTest, exactly_what_is_wished_for_is_saved) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1000, .start_step = 1000});
  o.wishes = {mean_of("gradients", 2)};
  train(std::move(o), 5);
  const auto found = saved();
  ASSERT_EQ(found.size(), 3u);
  for (Step step : {0, 2, 4}) {
    ASSERT_EQ(found.at(step).size(), 1u) << step;
    EXPECT_THAT(found.at(step)[0], testing::HasSubstr("gradient/a")) << step;
  }
}

TEST_F(SaveWishTest, a_value_that_the_user_saves_is_enough) {
  // Names of packed files are never the same twice. The header of a log and the segments repeat
  // them; the rest of the log has the checksums of all that is in its segment.
  const auto content = [](storage::Storage& place) {
    std::vector<Bytes> out;
    for (const auto& file : *place.list("", "")) {
      if (file.path.starts_with(format::kSegmentFolder)) continue;
      Bytes bytes = *storage::read_all(place, file.path);
      if (file.path.starts_with(format::kLogFolder)) {
        const auto header = format::parse_record(bytes, 0);
        bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(header->size_bytes));
      }
      out.push_back(std::move(bytes));
    }
    std::ranges::sort(out);
    return out;
  };
  for (const RunLayout layout : {RunLayout::original, RunLayout::packed}) {
    storage = storage::memory_storage();
    HookOptions o = options();
    o.config.layout = layout;
    o.config.save_config = *SaveConfig::broadcast({.save_interval = 2});
    o.config.include_collections = {"gradients"};
    HookOptions plain = options();
    plain.config = o.config;
    plain.storage = storage::memory_storage();
    o.wishes = {mean_of("gradients", 2)};
    const auto other = plain.storage;
    train(std::move(o), 4);
    train(std::move(plain), 4);
    EXPECT_GE(content(*storage).size(), 3u);
    EXPECT_TRUE(content(*storage) == content(*other)) << name_of(layout);
  }
}

TEST_F(SaveWishTest, wishes_and_what_the_user_saves_meet_at_a_step) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 3});
  o.config.include_collections = {"weights"};
  o.wishes = {mean_of("gradients", 2)};
  train(std::move(o), 4);
  const auto found = saved();
  EXPECT_EQ(found.at(0).size(), 3u);  // by hand, too, as the user's step saves something
  EXPECT_EQ(found.at(2).size(), 1u);
  EXPECT_EQ(found.at(3).size(), 2u);
}

TEST_F(SaveWishTest, an_interval_of_the_user_goes_before_that_of_the_wish) {
  SaveWish wish = mean_of("gradients", 1);
  wish.save_config = std::nullopt;
  wish.default_interval = 2;
  HookOptions o = options();
  o.wishes = {wish};
  train(std::move(o), 4);
  EXPECT_EQ(saved().count(2), 1u);

  storage = storage::memory_storage();
  HookOptions told = options();
  told.config.save_config = *SaveConfig::broadcast({.save_interval = 3});
  told.wishes = {wish};
  train(std::move(told), 4);
  EXPECT_EQ(saved().count(2), 0u);
  EXPECT_EQ(saved().count(3), 1u);
}

TEST_F(SaveWishTest, a_collection_without_patterns_gets_those_of_the_wish) {
  SaveWish wish = mean_of("of_a_rule", 1);
  wish.include_regex = {"weight"};
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1000, .start_step = 1000});
  o.wishes = {wish};
  train(std::move(o), 2);
  ASSERT_EQ(saved().at(1).size(), 1u);
  EXPECT_THAT(saved().at(1)[0], testing::HasSubstr("a.weight"));
  wish.include_regex = {"("};
  HookOptions wrong = options();
  wrong.storage = storage::memory_storage();
  wrong.wishes = {wish};
  EXPECT_FALSE(Hook::create(std::move(wrong)).ok());
}

TEST_F(SaveWishTest, more_is_saved_for_some_steps_and_then_no_more) {
  HookOptions o = options();
  o.config.save_config = *SaveConfig::broadcast({.save_interval = 1000, .start_step = 1000});
  auto hook = Hook::create(std::move(o));
  ASSERT_TRUE(hook.ok());
  for (int i = 0; i < 8; ++i) {
    if (i == 3) {
      ASSERT_TRUE((*hook)->save_more({{"weights"}}, 2).ok());
    }
    ASSERT_TRUE((*hook)->begin_step().ok());
    ASSERT_TRUE((*hook)->save("a.weight", view, Kind::weight).ok());
    ASSERT_TRUE((*hook)->save("gradient/a", view, Kind::gradient).ok());
  }
  const Status unknown = (*hook)->save_more({{"wieghts"}}, 2);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, testing::HasSubstr("weights"));
  ASSERT_TRUE((*hook)->close().ok());
  EXPECT_EQ(saved(), (std::map<Step, Names>{{3, {"a.weight"}}, {4, {"a.weight"}}}));
}

}  // namespace
}  // namespace smd
