#include "smd/writer/outputs/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "smd/base/json.h"

namespace smd {
namespace {

using testing::HasSubstr;

class MetricsFileTest : public testing::Test {
 protected:
  MetricsFileTest() { std::filesystem::remove_all(root); }
  ~MetricsFileTest() override { std::filesystem::remove_all(root); }
  std::unique_ptr<Output> make() const { return metrics_file({folder, 4711}); }
  std::string text() const {
    std::ifstream in(folder + "/4711.json");
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string root = testing::TempDir() + "/smd_metrics_" + std::to_string(getpid());
  const std::string folder = root + "/a/b";
  const StepInfo train{.step = 30, .mode = Mode::train, .mode_step = 12};
  const SavedScalar lr{
      .name = "scalar/lr", .value = 0.5, .wall_secs = 1600000000.5, .is_metric = true};
  const std::string lr_line =
      R"({"MetricName": "scalar/lr_TRAIN", "Value": 0.5, "Timestamp": 1600000000.5, )"
      R"("IterationNumber": 12})"
      "\n";
};

TEST_F(MetricsFileTest, a_line_has_the_format_of_the_platform) {
  auto file = make();
  ASSERT_TRUE(file->scalar(train, lr).ok());
  ASSERT_TRUE(file->end_step().ok());
  EXPECT_EQ(text(), lr_line);
}

TEST_F(MetricsFileTest, whole_numbers_stay_floats_and_names_are_escaped) {
  auto file = make();
  ASSERT_TRUE(
      file->scalar({.step = 3, .mode = Mode::eval, .mode_step = 0},
                   {.name = "lo\"ss/ä", .value = 3, .wall_secs = 1600000000, .is_metric = true})
          .ok());
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(text(),
            R"({"MetricName": "lo\"ss/\u00e4_EVAL", "Value": 3.0, "Timestamp": 1600000000.0, )"
            R"("IterationNumber": 0})"
            "\n");
}

TEST_F(MetricsFileTest, nothing_is_made_before_the_first_metric) {
  auto file = make();
  ASSERT_TRUE(file->scalar(train, {.name = "scalar/other", .value = 1}).ok());
  ASSERT_TRUE(file->end_step().ok());
  ASSERT_TRUE(file->close().ok());
  EXPECT_FALSE(std::filesystem::exists(root));
}

TEST_F(MetricsFileTest, lines_are_readable_when_their_step_ends) {
  auto file = make();
  ASSERT_TRUE(file->scalar(train, lr).ok());
  ASSERT_TRUE(file->end_step().ok());
  ASSERT_TRUE(file->scalar(train, lr).ok());
  EXPECT_EQ(text(), lr_line) << "the second step is still open";
  ASSERT_TRUE(file->end_step().ok());
  EXPECT_EQ(text(), lr_line + lr_line);
}

TEST_F(MetricsFileTest, a_file_of_an_earlier_process_goes_on_with_a_new_line) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/4711.json") << lr_line << "{\"MetricNa";
  auto file = make();
  ASSERT_TRUE(file->scalar(train, lr).ok());
  ASSERT_TRUE(file->close().ok());
  EXPECT_EQ(text(), lr_line + "{\"MetricNa\n" + lr_line);
}

TEST_F(MetricsFileTest, what_could_not_be_written_follows_later) {
  std::filesystem::create_directories(root);
  std::ofstream(root + "/a") << "in the way";
  auto file = make();
  ASSERT_TRUE(file->scalar(train, lr).ok());
  const Status failed = file->end_step();
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("cannot be opened"));
  std::filesystem::remove(root + "/a");
  ASSERT_TRUE(file->scalar(train, lr).ok());
  ASSERT_TRUE(file->end_step().ok());
  EXPECT_EQ(text(), lr_line + lr_line);
}

TEST_F(MetricsFileTest, a_full_disk_does_not_tear_a_line_for_good) {
  auto file = make();
  ASSERT_TRUE(file->scalar(train, lr).ok());
  ASSERT_TRUE(file->end_step().ok());
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  rlimit small = old;
  small.rlim_cur = lr_line.size() + 10;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  ASSERT_TRUE(file->scalar(train, lr).ok());
  const Status failed = file->end_step();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(failed.ok());
  ASSERT_TRUE(file->end_step().ok());
  EXPECT_EQ(text(), lr_line + lr_line);
}

TEST_F(MetricsFileTest, what_waits_is_bounded) {
  std::filesystem::create_directories(root);
  std::ofstream(root + "/a") << "in the way";
  auto file = make();
  for (int i = 0; i < 30'000; ++i) {
    ASSERT_TRUE(file->scalar(train, lr).ok());
    EXPECT_FALSE(file->end_step().ok());
  }
  std::filesystem::remove(root + "/a");
  ASSERT_TRUE(file->close().ok());
  EXPECT_LT(text().size(), (size_t{1} << 20) + 1000);
  EXPECT_GT(text().size(), size_t{1} << 19);
}

}  // namespace
}  // namespace smd
