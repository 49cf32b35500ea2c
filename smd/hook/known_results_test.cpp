#include "smd/hook/known_results.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>

namespace smd {
namespace {

ReductionRequest request_of(std::initializer_list<std::string_view> names) {
  ReductionRequest request;
  for (const std::string_view name : names) request.reductions.add(*parse_reduction(name));
  return request;
}

TEST(KnownResults, finds_what_holds_all_that_is_wanted) {
  KnownResults results;
  const uint64_t content = results.next_content();
  EXPECT_EQ(results.find(content, request_of({"min"})), nullptr);
  results.add(content, request_of({"min", "max"})).nan_count = 7;
  for (const auto& wanted : {request_of({"min"}), request_of({"min", "max"})}) {
    ASSERT_NE(results.find(content, wanted), nullptr);
    EXPECT_EQ(results.find(content, wanted)->nan_count, 7);
  }
  EXPECT_EQ(results.find(content, request_of({"min", "abs_max"})), nullptr);
  EXPECT_EQ(results.find(results.next_content(), request_of({"min"})), nullptr);
}

TEST(KnownResults, counts_and_histograms_are_found_only_if_they_were_requested) {
  KnownResults results;
  const uint64_t content = results.next_content();
  ReductionRequest more = request_of({"min"});
  more.histogram = more.count_special = true;
  results.add(content, request_of({"min"}));
  EXPECT_EQ(results.find(content, more), nullptr);
  results.add(content, more);
  EXPECT_NE(results.find(content, more), nullptr);
  EXPECT_NE(results.find(content, request_of({"min"})), nullptr);
}

TEST(KnownResults, keeps_the_last_ones) {
  KnownResults results;
  const uint64_t first = results.next_content();
  results.add(first, request_of({"min"}));
  uint64_t last = first;
  for (size_t i = 1; i < KnownResults::kMost; ++i) {
    results.add(last = results.next_content(), request_of({"min"}));
  }
  EXPECT_NE(results.find(first, request_of({"min"})), nullptr);
  results.add(results.next_content(), request_of({"min"}));
  EXPECT_EQ(results.find(first, request_of({"min"})), nullptr);
  EXPECT_NE(results.find(last, request_of({"min"})), nullptr);
  results.drop(last);
  EXPECT_EQ(results.find(last, request_of({"min"})), nullptr);
}

}  // namespace
}  // namespace smd
