#include "smd/hook/run_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "smd/hook/hook.h"

namespace smd {
namespace {

class RunStateTest : public testing::TestWithParam<RunLayout> {
 protected:
  RunStateTest() { std::filesystem::remove_all(folder); }
  ~RunStateTest() override { std::filesystem::remove_all(folder); }

  // Ten steps of training and two of evaluation, every step saved.
  void record() const {
    HookOptions options;
    options.log = null_log();
    options.environment = Environment(Environment::Variables{{"TRAINING_JOB_NAME", "x"}});
    options.config.out_dir = folder;
    options.config.save_all = true;
    options.config.layout = GetParam();
    options.config.save_config = *SaveConfig::broadcast({.save_interval = 1});
    auto hook = std::move(*Hook::create(options));
    for (int i = 0; i < 12; ++i) {
      hook->set_mode(i < 10 ? Mode::train : Mode::eval);
      ASSERT_TRUE(hook->begin_step().ok());
      ASSERT_TRUE(hook->save_scalar("x", i).ok());
    }
    ASSERT_TRUE(hook->close().ok());
  }
  std::optional<ResumeState> state() const {
    return *state_of_run(*storage::local_storage(folder), GetParam());
  }
  // Damages every file of the run that tells of steps.
  void cut_files() const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string path = entry.path().string();
      const bool tells =
          path.find("/index/") != std::string::npos || path.find("/log/") != std::string::npos;
      if (entry.is_regular_file() && tells) {
        std::filesystem::resize_file(path, entry.file_size() - 5);
      }
    }
  }
  const std::string folder = testing::TempDir() + "/smd_run_state_" + std::to_string(getpid());
};

TEST_P(RunStateTest, the_last_steps_of_the_run_and_of_its_modes_are_found) {
  record();
  const auto found = state();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->latest_step_seen, 11);
  EXPECT_EQ(found->latest_step_saved, 11);
  EXPECT_EQ(found->mode_steps,
            (std::map<Mode, Step>{{Mode::global, 11}, {Mode::train, 9}, {Mode::eval, 1}}));
}

TEST_P(RunStateTest, a_place_without_steps_has_no_state) { EXPECT_FALSE(state().has_value()); }

TEST_P(RunStateTest, damage_is_passed_over) {
  record();
  cut_files();
  const auto found = state();
  ASSERT_TRUE(found.has_value());
  EXPECT_GE(found->latest_step_seen, GetParam() == RunLayout::packed ? 10 : 11);
}

INSTANTIATE_TEST_SUITE_P(Layouts, RunStateTest,
                         testing::Values(RunLayout::original, RunLayout::packed),
                         [](const auto& layout) { return std::string(name_of(layout.param)); });

}  // namespace
}  // namespace smd
