#include "smd/cli/run_argument.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace smd::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RunArgumentTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder);
    fs::create_directories(folder);
  }
  void TearDown() override { fs::remove_all(folder); }

  void run(const std::string& name) { fs::create_directories(folder + "/" + name + "/index"); }
  void file(const std::string& name) {
    fs::create_directories(fs::path(folder + "/" + name).parent_path());
    std::ofstream(folder + "/" + name) << "x";
  }
  std::string error_of(const std::string& name) {
    const auto result = open_run(folder + "/" + name);
    EXPECT_FALSE(result.ok());
    return result.ok() ? "" : result.error().message;
  }

  const std::string folder =
      (fs::path(testing::TempDir()) / ("smd_run_argument_" + std::to_string(getpid()))).string();
};

TEST_F(RunArgumentTest, a_packed_run_is_opened) {
  file("packed/v2/log/worker_0.0000000000000100000002/00000000");
  const auto opened = open_run(folder + "/packed");
  ASSERT_TRUE(opened.ok());
  EXPECT_TRUE((*opened)->open("v2/log/worker_0.0000000000000100000002/00000000").ok());
  EXPECT_FALSE((*opened)->open("notes.txt").ok());
}

TEST_F(RunArgumentTest, a_run_is_opened) {
  run("a");
  EXPECT_TRUE(open_run(folder + "/a").ok());
  EXPECT_TRUE(open_run(folder + "/a//").ok());
}

TEST_F(RunArgumentTest, the_tilde_is_the_home_directory) {
  run("a");
  const std::string before = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", folder.c_str(), 1);
  const auto result = open_run("~/a");
  ::setenv("HOME", before.c_str(), 1);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ((*result)->name(), folder + "/a");
}

TEST_F(RunArgumentTest, a_missing_path_gets_the_nearest_name) {
  run("training");
  EXPECT_THAT(error_of("trainign"),
              AllOf(HasSubstr("There is no directory"), HasSubstr("Did you mean 'training'?")));
  EXPECT_THAT(error_of("nowhere/at/all"), HasSubstr("none above it"));
}

TEST_F(RunArgumentTest, a_file_is_not_a_run_but_may_lie_in_one) {
  file("notes.txt");
  file("a/events/000000000000/000000000000_worker_0.tfevents");
  EXPECT_THAT(error_of("notes.txt"), HasSubstr("is a file, but a run is a directory."));
  EXPECT_THAT(error_of("a/events/000000000000/000000000000_worker_0.tfevents"),
              HasSubstr("Did you mean '" + folder + "/a'?"));
  EXPECT_THAT(error_of("a/events/000000000000"), HasSubstr("is only a part of a run"));
}

TEST_F(RunArgumentTest, an_empty_directory_is_called_empty) {
  EXPECT_THAT(error_of(""), HasSubstr("is empty"));
  EXPECT_THAT(open_run("").error().message, HasSubstr("is empty"));
}

TEST_F(RunArgumentTest, a_directory_of_something_else_is_described) {
  file("tb/events.out.tfevents.1.host");
  file("ck/model-1.pt");
  file("src/train.py");
  file("other/a.bin");
  EXPECT_THAT(error_of("tb"), HasSubstr("TensorBoard"));
  EXPECT_THAT(error_of("ck"), HasSubstr("checkpoints"));
  EXPECT_THAT(error_of("src"), HasSubstr("source code"));
  EXPECT_THAT(error_of("other"), AllOf(HasSubstr("index/, events/, v2/log/ and collections/"),
                                       HasSubstr("it holds 'a.bin'")));
}

TEST_F(RunArgumentTest, runs_in_sub_directories_are_named) {
  run("jobs/first");
  EXPECT_THAT(error_of("jobs"), HasSubstr("holds one: " + folder + "/jobs/first."));
  run("jobs/deep/er");
  EXPECT_THAT(error_of("jobs"), HasSubstr(folder + "/jobs/deep/er"));
  fs::create_directory_symlink("..", folder + "/jobs/round");
  EXPECT_THAT(error_of("jobs"), HasSubstr("holds some"));
}

TEST_F(RunArgumentTest, unknown_schemes_are_refused_with_a_sentence) {
  EXPECT_THAT(open_run("gopher://x/y").error().message, HasSubstr("gopher://x/y"));
}

TEST_F(RunArgumentTest, a_run_that_has_not_begun_can_be_waited_for) {
  run("first");
  std::string note;
  EXPECT_TRUE(open_future_run(folder + "/first", note).ok());
  EXPECT_EQ(note, "");
  EXPECT_TRUE(open_future_run(folder + "/frist", note).ok());
  EXPECT_THAT(note, AllOf(HasSubstr("Did you mean 'first'?"), HasSubstr("Waiting for it.")));
  fs::create_directories(folder + "/empty");
  EXPECT_TRUE(open_future_run(folder + "/empty", note).ok());
  EXPECT_THAT(note, HasSubstr("is empty. Waiting for the run to begin."));
  file("code/train.py");
  EXPECT_FALSE(open_future_run(folder + "/code", note).ok());
  EXPECT_FALSE(open_future_run("", note).ok());
}

TEST_F(RunArgumentTest, those_who_wait_for_runs_are_told_where_none_is) {
  run("jobs/first");
  EXPECT_EQ(waiting_note(folder + "/jobs/first"), "");
  EXPECT_EQ(waiting_note(folder + "/jobs"), "");
  EXPECT_EQ(waiting_note("s3://bucket/run"), "");
  EXPECT_EQ(waiting_note(folder + "/jbos"),
            "There is no directory '" + folder + "/jbos'. Did you mean 'jobs'? Waiting for it.");
  EXPECT_THAT(waiting_note(folder + "/nowhere/at/all"), HasSubstr("none above it"));
  fs::create_directories(folder + "/empty");
  EXPECT_THAT(waiting_note(folder + "/empty"), HasSubstr("/empty' is empty. Waiting for"));
  file("code/train.py");
  EXPECT_EQ(waiting_note(folder + "/code"),
            "There is no run in '" + folder + "/code' yet. Waiting for one.");
}

TEST_F(RunArgumentTest, paths_may_begin_at_home) {
  const char* const home = ::getenv("HOME");
  ASSERT_NE(home, nullptr);
  EXPECT_EQ(expanded("~/runs/"), std::string(home) + "/runs");
  EXPECT_EQ(expanded("runs//"), "runs");
  EXPECT_EQ(expanded("s3://bucket/runs/"), "s3://bucket/runs/");
}

TEST_F(RunArgumentTest, a_trial_does_not_wait_for_collections) {
  run("a");
  const auto trial = open_trial(folder + "/a");
  ASSERT_TRUE(trial.ok());
  EXPECT_FALSE((*trial)->is_open());
  EXPECT_FALSE(open_trial(folder + "/none").ok());
}

}  // namespace
}  // namespace smd::cli
