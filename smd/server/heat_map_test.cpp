#include "smd/server/heat_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace smd::server {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
T at(const std::string& block, size_t offset) {
  T value;
  std::memcpy(&value, block.data() + offset, sizeof value);
  return value;
}

// Three tensors with the ids 7, 3, 5 at four steps; the number is 10 · step + column.
NumberTable table() {
  NumberTable out{.tensors = {7, 3, 5}, .steps = {}, .numbers = {}};
  for (Step step = 0; step < 4; ++step) {
    const auto row = out.add_row(step * 2);
    for (size_t i = 0; i < 3; ++i) row[i] = static_cast<float>(step * 10) + static_cast<float>(i);
  }
  return out;
}

TEST(HeatMap, each_number_is_a_cell_when_there_is_room) {
  const std::string block = heat_map(
      table(),
      {.tensors = {3, 7}, .choice_size = 9, .end_step = 4, .revision = 77, .catalogue = 5});
  EXPECT_EQ(block.substr(0, 4), "SMDH");
  EXPECT_EQ(at<uint32_t>(block, 8), 2u);
  EXPECT_EQ(at<uint32_t>(block, 12), 4u);
  EXPECT_EQ(at<uint32_t>(block, 20), 3u);
  EXPECT_EQ(at<uint64_t>(block, 24), 77u);
  EXPECT_EQ(at<uint32_t>(block, 32), 2u);
  EXPECT_EQ(at<uint32_t>(block, 36), 9u);
  EXPECT_EQ(at<uint32_t>(block, 40), 4u);
  EXPECT_EQ(at<uint32_t>(block, 44), 5u);
  EXPECT_EQ(at<float>(block, 48), 0);
  EXPECT_EQ(at<float>(block, 52), 31);
  EXPECT_EQ(at<float>(block, 56), 1);
  // ids, bounds, padding, first steps, last steps, means, nonfinite
  EXPECT_EQ(at<uint32_t>(block, 64), 3u);
  EXPECT_EQ(at<uint32_t>(block, 68), 7u);
  EXPECT_EQ(at<uint32_t>(block, 72 + 8), 2u);
  EXPECT_EQ(at<int64_t>(block, 88 + 24), 6);
  EXPECT_EQ(at<int64_t>(block, 120 + 24), 6);
  EXPECT_EQ(at<float>(block, 152), 1);
  EXPECT_EQ(at<float>(block, 152 + 4 * 4), 0);
  EXPECT_EQ(block.size(), 152u + 8 * 4 + 8 * 2);
}

TEST(HeatMap, neighbours_share_a_cell_when_there_is_not) {
  const std::string block =
      heat_map(table(), {.tensors = {7, 3, 5},
                         .end_step = 4,
                         .most_rows = 2,
                         .most_columns = 3,
                         .channels = kMeanChannel | kMinChannel | kMaxChannel});
  EXPECT_EQ(at<uint32_t>(block, 8), 2u);
  EXPECT_EQ(at<uint32_t>(block, 12), 2u);
  EXPECT_EQ(at<uint32_t>(block, 20), 0u);
  const size_t means = 64 + 16 + 16 + 16 + 16;
  EXPECT_EQ(at<float>(block, means), 5.5F);     // 0, 1, 10, 11
  EXPECT_EQ(at<float>(block, means + 12), 27);  // 22, 32
  EXPECT_EQ(at<float>(block, means + 16), 0);   // least
  EXPECT_EQ(at<float>(block, means + 32), 11);  // most
}

TEST(HeatMap, what_is_not_finite_is_counted_and_what_is_missing_is_not) {
  NumberTable numbers{.tensors = {1, 2}, .steps = {}, .numbers = {}};
  numbers.add_row(0)[0] = kInf;
  numbers.add_row(1)[0] = std::numeric_limits<float>::quiet_NaN();
  numbers.add_row(2)[0] = 4;
  const std::string block =
      heat_map(numbers, {.tensors = {1, 2}, .end_step = 3, .most_columns = 1});
  const size_t means = 64 + 8 + 16 + 8 + 8;
  EXPECT_EQ(at<float>(block, means), 4);
  EXPECT_TRUE(std::isnan(at<float>(block, means + 4)));
  EXPECT_EQ(at<uint16_t>(block, means + 8), 2);
  EXPECT_EQ(at<uint16_t>(block, means + 10), 0);
}

TEST(HeatMap, nothing_is_a_block_without_cells) {
  const std::string block = heat_map({}, {});
  EXPECT_EQ(at<uint32_t>(block, 8), 0u);
  EXPECT_EQ(at<uint32_t>(block, 12), 0u);
  EXPECT_TRUE(std::isnan(at<float>(block, 48)));
  EXPECT_EQ(block.size(), 72u);
}

TEST(NumberTable, doubles_beyond_the_range_become_its_largest_floats) {
  EXPECT_EQ(to_float(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(to_float(-1e300), std::numeric_limits<float>::lowest());
  EXPECT_EQ(to_float(kInf), kInf);
  EXPECT_FALSE(is_missing(to_float(std::nan(""))));
}

}  // namespace
}  // namespace smd::server
