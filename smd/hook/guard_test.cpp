#include "smd/hook/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace smd {
namespace {

class Lines final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { lines.emplace_back(message); }
  std::vector<std::string> lines;
};

TEST(Guard, logs_each_kind_of_failure_once_and_swallows_it) {
  auto log = std::make_shared<Lines>();
  Guard guard(false, log);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(guard.handle("save", {ErrorCode::io, "Disk full."}).ok());
  EXPECT_TRUE(guard.handle("save", {ErrorCode::internal, "Oops."}).ok());
  EXPECT_EQ(log->lines.size(), 2u);
  EXPECT_THAT(log->lines[0], testing::HasSubstr("Disk full."));
  EXPECT_EQ(guard.failures(), 6);
  EXPECT_FALSE(guard.disabled());
}

TEST(Guard, stops_recording_after_ten_different_failures) {
  auto log = std::make_shared<Lines>();
  Guard guard(false, log);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(guard.disabled());
    EXPECT_TRUE(guard.handle("site " + std::to_string(i), {ErrorCode::io, "x"}).ok());
  }
  EXPECT_TRUE(guard.disabled());
}

TEST(Guard, gives_errors_back_in_strict_mode) {
  Guard guard(true, null_log());
  EXPECT_EQ(guard.handle("save", {ErrorCode::io, "Disk full."}).error().message, "Disk full.");
}

}  // namespace
}  // namespace smd
