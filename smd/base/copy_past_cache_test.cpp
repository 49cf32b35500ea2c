#include "smd/base/copy_past_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace smd {
namespace {

TEST(CopyPastCache, copies_every_byte_and_no_other_wherever_it_begins) {
  std::vector<std::byte> source(1000), target(1000);
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i % 251);
  for (size_t from = 0; from < 17; ++from) {
    for (size_t to = 0; to < 70; ++to) {
      for (const size_t size : {0, 1, 15, 63, 64, 65, 127, 128, 200, 777}) {
        std::ranges::fill(target, std::byte{255});
        copy_past_cache(std::span(target).subspan(to, size), source.data() + from);
        for (size_t i = 0; i < target.size(); ++i) {
          const bool inside = i >= to && i < to + size;
          const std::byte expected = inside ? source[from + i - to] : std::byte{255};
          ASSERT_EQ(target[i], expected) << from << " " << to << " " << size << " at " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace smd
