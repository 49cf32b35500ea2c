#include "smd/hook/resume_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "smd/storage/storage.h"

namespace smd {
namespace {

class ResumeFileTest : public testing::Test {
 protected:
  ResumeFileTest() : folder(testing::TempDir() + "/smd_resume_" + std::to_string(getpid())) {
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  ~ResumeFileTest() override { std::filesystem::remove_all(folder); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder + "/" + name) << text;
  }
  std::string folder;
  const ResumeState state{.training_run = 0,
                          .latest_step_saved = 14,
                          .latest_step_seen = 19,
                          .mode_steps = {{Mode::global, 19}, {Mode::train, 9}, {Mode::eval, 9}}};
};

TEST_F(ResumeFileTest, a_new_checkpoint_saves_the_state) {
  ResumeFile file(folder);
  EXPECT_FALSE(file.load()->has_value());
  ASSERT_TRUE(file.update(state).ok());
  EXPECT_FALSE(file.load()->has_value()) << "no checkpoint yet";
  write("model.pt", "abc");
  ASSERT_TRUE(file.update(state).ok());
  EXPECT_EQ(**ResumeFile(folder).load(), state);
}

TEST_F(ResumeFileTest, the_entry_that_went_furthest_wins_and_unchanged_files_add_none) {
  ResumeFile file(folder);
  write("model.pt", "abc");
  ASSERT_TRUE(file.update(state).ok());
  ResumeState later = state;
  later.latest_step_seen = 30;
  later.latest_step_saved = std::nullopt;
  ASSERT_TRUE(file.update(later).ok());
  EXPECT_EQ((*file.load())->latest_step_seen, 19) << "the checkpoint did not change";
  write("model.pt", "abcd");
  ASSERT_TRUE(file.update(later).ok());
  EXPECT_EQ(**file.load(), later);
  write("x.sagemaker-uploaded", "");
  later.latest_step_seen = 40;
  ASSERT_TRUE(file.update(later).ok());
  EXPECT_EQ((*file.load())->latest_step_seen, 30);
}

TEST_F(ResumeFileTest, looking_and_appending_are_independent) {
  ResumeFile file(folder);
  EXPECT_FALSE(file.has_new_checkpoint());
  write("model.pt", "abc");
  EXPECT_TRUE(file.has_new_checkpoint());
  EXPECT_FALSE(file.has_new_checkpoint());
  ASSERT_TRUE(file.append(state).ok());
  EXPECT_FALSE(file.has_new_checkpoint()) << "the state itself is no checkpoint";
  EXPECT_EQ(**file.load(), state);
}

TEST_F(ResumeFileTest, a_broken_file_is_reported_and_then_replaced) {
  write("metadata.json", "[{");
  ResumeFile file(folder);
  EXPECT_FALSE(file.load().ok());
  write("metadata.json", R"([{"training-run": 0}])");
  EXPECT_EQ(file.load().error().code, ErrorCode::corrupt);
  write("model.pt", "abc");
  ASSERT_TRUE(file.update(state).ok());
}

TEST_F(ResumeFileTest, entries_that_cannot_be_true_are_passed_over) {
  const std::string good = R"({"training-run": 2, "latest-global-step-saved": 3,
    "latest-global-step-seen": 5, "latest-mode-step": {"TRAIN": 4, "EVAL": -1}})";
  for (const char* bad : {
           R"({"latest-global-step-seen": 1000000000000})",
           R"({"latest-global-step-seen": -2})",
           R"({"latest-global-step-seen": "9"})",
           R"({"latest-global-step-seen": 9, "latest-global-step-saved": 10})",
           R"({"latest-global-step-seen": 9, "latest-mode-step": {"TRAIN": 10}})",
           R"({"latest-global-step-seen": 9, "latest-mode-step": {"TRAIN": -7}})",
           "7",
           "null",
       }) {
    write("metadata.json", "[" + std::string(bad) + ", " + good + "]");
    std::vector<std::string> problems;
    const auto loaded = ResumeFile(folder).load(problems);
    ASSERT_TRUE(loaded.has_value()) << bad;
    EXPECT_EQ(loaded->latest_step_seen, 5) << bad;
    EXPECT_EQ(loaded->mode_steps, (std::map<Mode, Step>{{Mode::train, 4}})) << bad;
    EXPECT_EQ(problems.size(), 1u) << bad;
  }
}

TEST_F(ResumeFileTest, a_checkpoint_is_noticed_when_it_is_written) {
  ResumeFile file(folder);
  EXPECT_FALSE(file.stirred());
  write("model.pt", "abc");
  EXPECT_TRUE(file.stirred());
  ASSERT_TRUE(file.update(state).ok());
  EXPECT_FALSE(file.stirred()) << "its own file is no checkpoint";
  write("model.pt.sagemaker-uploaded", "");
  EXPECT_FALSE(file.stirred());
}

TEST_F(ResumeFileTest, the_configuration_names_the_folder) {
  write("config.json", R"({"LocalPath": "/my/checkpoints"})");
  EXPECT_EQ(*checkpoint_folder(folder + "/config.json"), "/my/checkpoints");
  write("other.json", "{}");
  EXPECT_FALSE(checkpoint_folder(folder + "/other.json")->has_value());
  EXPECT_FALSE(checkpoint_folder(folder + "/missing.json")->has_value());
  write("broken.json", "{");
  EXPECT_FALSE(checkpoint_folder(folder + "/broken.json").ok());
}

}  // namespace
}  // namespace smd
