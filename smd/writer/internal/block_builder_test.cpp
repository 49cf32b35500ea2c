#include "smd/writer/internal/block_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::internal {
namespace {

using testing::ElementsAre;

class BlockBuilderTest : public testing::Test {
 protected:
  template <typename T>
  static BlockBuilder::Number number(std::string_view op, DType dtype, T value) {
    BlockBuilder::Number made{.op = op, .dtype = dtype};
    std::memcpy(made.bits.data(), &value, sizeof value);
    return made;
  }
  void add(std::string_view tensor, float min, double sum) {
    const BlockBuilder::Number numbers[] = {number("min", DType::float32, min),
                                            number("sum", DType::float64, sum)};
    builder.add(tensor, numbers);
  }
  template <typename T>
  T at(size_t offset) const {
    return load_le<T>(block.data() + offset);
  }

  NameTable names;
  BlockBuilder builder{names};
  Bytes block;
};

TEST_F(BlockBuilderTest, one_statistic_of_all_tensors_stands_together) {
  add("a", 1, 10);
  add("b", 2, 20);
  add("c", 3, 30);
  const auto& schema = builder.finish(block);
  EXPECT_THAT(schema.packed.ops, ElementsAre("min", "sum"));
  ASSERT_EQ(block.size(), 16u + 24u);
  EXPECT_EQ(at<float>(0), 1);
  EXPECT_EQ(at<float>(4), 2);
  EXPECT_EQ(at<float>(8), 3);
  EXPECT_EQ(at<double>(16), 10);
  EXPECT_EQ(at<double>(32), 30);
  EXPECT_EQ(schema.packed.values[1],
            (format::PackedValue{.tensor = 1, .op = 1, .dtype = DType::float32}));
}

TEST_F(BlockBuilderTest, equal_steps_share_a_schema_and_others_get_their_own) {
  const auto step = [&](int tensors, float value) {
    builder.clear();
    for (int i = 0; i < tensors; ++i) add(i == 0 ? "a" : "b", value + static_cast<float>(i), 0);
    return &builder.finish(block);
  };
  auto* two = step(2, 1);
  two->logged = true;
  EXPECT_EQ(step(2, 5), two);
  EXPECT_EQ(at<float>(4), 6);
  auto* one = step(1, 7);  // ends earlier than the one before
  EXPECT_NE(one, two);
  EXPECT_FALSE(one->logged);
  EXPECT_EQ(block.size(), 16u);
  EXPECT_EQ(step(2, 8), two);  // goes on where the one before ended
  EXPECT_EQ(at<float>(4), 9);
  builder.forget_logged();
  EXPECT_FALSE(two->logged);
}

TEST_F(BlockBuilderTest, another_order_type_or_rank_is_another_schema) {
  builder.add("a", number("", DType::float32, 1.0F));
  auto* first = &builder.finish(block);
  builder.clear();
  builder.add("a", number("", DType::int32, 7));
  auto* typed = &builder.finish(block);
  EXPECT_NE(typed, first);
  EXPECT_EQ(at<int32_t>(0), 7);
  builder.clear();
  auto scalar = number("", DType::int32, 8);
  scalar.rank = 0;
  builder.add("a", scalar);
  EXPECT_NE(&builder.finish(block), typed);
  builder.clear();
  builder.add("b", number("", DType::float32, 1.0F));
  EXPECT_NE(&builder.finish(block), first);
}

TEST_F(BlockBuilderTest, no_numbers_make_an_empty_block) {
  EXPECT_TRUE(builder.empty());
  EXPECT_TRUE(builder.finish(block).packed.values.empty());
  EXPECT_TRUE(block.empty());
}

}  // namespace
}  // namespace smd::internal
