#include "smd/rules/tree_table.h"

#include <gtest/gtest.h>

#include <memory>

namespace smd::rules {
namespace {

TensorValue numbers(const std::vector<double>& values) {
  TensorValue out{.dtype = DType::float64, .shape = {static_cast<int64_t>(values.size())}};
  auto held = std::make_shared<std::vector<double>>(values);
  out.memory = std::shared_ptr<std::byte>(held, reinterpret_cast<std::byte*>(held->data()));
  out.elements = ByteSpan(out.memory.get(), values.size() * sizeof(double));
  return out;
}

TEST(TreeTable, the_deepest_of_several_trees_is_found) {
  const TensorValue tree = numbers({5, 5, 5, 2, 2});
  const TensorValue node = numbers({0, 1, 2, 0, 1});
  const auto table =
      TreeTable::create(&tree, node, numbers({1, 2, -1, 1, -1}), numbers({-1, -1, -1, -1, -1}));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->deepest().tree, 5);
  EXPECT_EQ(table->deepest().depth, 2);
}

TEST(TreeTable, texts_name_tree_and_node) {
  TensorValue yes{.dtype = DType::string, .shape = {3}, .strings = {"7-1", "7-2", "NaN"}};
  TensorValue no{.dtype = DType::string, .shape = {3}, .strings = {"", "None", "nan"}};
  const auto table = TreeTable::create(nullptr, numbers({0, 1, 2}), yes, no);
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->deepest().depth, 2);
}

TEST(TreeTable, long_chains_need_no_deep_stack) {
  constexpr int kLength = 200000;
  std::vector<double> node, yes, no(kLength, -1);
  for (int i = 0; i < kLength; ++i) {
    node.push_back(i);
    yes.push_back(i + 1);
  }
  const auto table = TreeTable::create(nullptr, numbers(node), numbers(yes), numbers(no));
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->deepest().depth, kLength - 1);
}

TEST(TreeTable, nodes_without_numbers_are_refused) {
  const auto table = TreeTable::create(nullptr, numbers({0, -1}), numbers({0, 0}), numbers({0, 0}));
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().message, "Line 1 of the trees has no number for its tree or node.");
}

}  // namespace
}  // namespace smd::rules
