#include "smd/trial/paged_vector.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

namespace smd {
namespace {

std::vector<int> content(const PagedVector<int>& v) {
  std::vector<int> out;
  for (size_t i = 0; i < v.size(); ++i) out.push_back(v[i]);
  return out;
}

PagedVector<int> counted(int count) {
  PagedVector<int> v;
  for (int i = 0; i < count; ++i) v.push_back(i);
  return v;
}

TEST(PagedVector, a_copy_does_not_see_later_changes) {
  PagedVector<int> v = counted(1500);
  const PagedVector<int> copy(v);
  v.edit(0) = -1;
  v.edit(1400) = -1;
  v.push_back(-2);
  std::vector<int> expected(1500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(content(copy), expected);
  EXPECT_EQ(v[0], -1);
  EXPECT_EQ(v[1400], -1);
  EXPECT_EQ(v.back(), -2);
}

TEST(PagedVector, a_changed_copy_leaves_its_source_alone) {
  const PagedVector<int> v = counted(10);
  PagedVector<int> copy(v);
  copy.edit(3) = -1;
  EXPECT_EQ(v[3], 3);
}

TEST(PagedVector, inserts_across_pages) {
  PagedVector<int> v = counted(2000);
  std::vector<int> expected = content(v);
  for (size_t at : {size_t{0}, size_t{511}, size_t{512}, size_t{1999}}) {
    v.insert(at, -7);
    expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(at), -7);
  }
  v.insert(v.size(), 9);
  expected.push_back(9);
  EXPECT_EQ(content(v), expected);
}

TEST(PagedVector, is_read_while_its_source_grows) {
  PagedVector<int> v = counted(700);
  const PagedVector<int> copy(v);
  std::thread reader([&] {
    long sum = 0;
    for (int round = 0; round < 100; ++round) {
      for (size_t i = 0; i < copy.size(); ++i) sum += copy[i];
    }
    EXPECT_EQ(sum, 100L * 699 * 700 / 2);
  });
  for (int i = 0; i < 5000; ++i) {
    v.push_back(i);
    v.edit(static_cast<size_t>(i) % 700) = -1;
  }
  reader.join();
}

}  // namespace
}  // namespace smd
