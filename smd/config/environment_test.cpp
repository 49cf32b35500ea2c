#include "smd/config/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace smd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Environment with(Environment::Variables variables) { return Environment(std::move(variables)); }

TEST(Environment, paths_default_to_the_container) {
  const Environment none;
  EXPECT_EQ(none.config_file_path(), "/opt/ml/input/config/debughookconfig.json");
  EXPECT_EQ(none.tensorboard_config_file_path(),
            "/opt/ml/input/config/tensorboardoutputconfig.json");
  EXPECT_EQ(none.checkpoint_config_file_path(), "/opt/ml/input/config/checkpointconfig.json");
  EXPECT_EQ(none.metrics_directory(), ".");
  EXPECT_FALSE(none.in_sagemaker());
}

TEST(Environment, variables_override_the_paths) {
  const Environment env = with({{"SMDEBUG_CONFIG_FILE_PATH", "/a"},
                                {"TENSORBOARD_CONFIG_FILE_PATH", "/b"},
                                {"CHECKPOINT_CONFIG_FILE_PATH", ""},
                                {"SAGEMAKER_METRICS_DIRECTORY", "/d"},
                                {"TRAINING_JOB_NAME", ""}});
  EXPECT_EQ(env.config_file_path(), "/a");
  EXPECT_EQ(env.tensorboard_config_file_path(), "/b");
  EXPECT_EQ(env.checkpoint_config_file_path(), "/opt/ml/input/config/checkpointconfig.json");
  EXPECT_EQ(env.metrics_directory(), "/d");
  EXPECT_TRUE(env.in_sagemaker());
}

TEST(Environment, flags_accept_twelve_words_in_any_case) {
  EXPECT_TRUE(*Environment().use_smdebug());
  EXPECT_FALSE(*Environment().strict());
  EXPECT_EQ(*Environment().layout(), RunLayout::original);
  EXPECT_EQ(*with({{"SMDEBUG_LAYOUT", "packed"}}).layout(), RunLayout::packed);
  EXPECT_FALSE(with({{"SMDEBUG_LAYOUT", "v2"}}).layout().ok());
  for (const char* yes : {"y", "Yes", "T", "TRUE", "on", "1", " 1 "}) {
    EXPECT_TRUE(*with({{"USE_SMDEBUG", yes}}).use_smdebug()) << yes;
    EXPECT_TRUE(*with({{"SMDEBUG_STRICT", yes}}).strict()) << yes;
  }
  for (const char* no : {"n", "NO", "f", "False", "OFF", "0"}) {
    EXPECT_FALSE(*with({{"USE_SMDEBUG", no}}).use_smdebug()) << no;
  }
}

TEST(Environment, another_word_is_an_error_with_the_nearest_choice) {
  EXPECT_THAT(with({{"USE_SMDEBUG", "Flase"}}).use_smdebug().error().message,
              AllOf(HasSubstr("USE_SMDEBUG is 'Flase'"), HasSubstr("Did you mean 'false'?")));
  EXPECT_FALSE(with({{"USE_SMDEBUG", ""}}).use_smdebug().ok());
}

TEST(Environment, rank_comes_from_the_first_launcher_that_set_both) {
  EXPECT_EQ(*Environment().process_rank(), std::nullopt);
  const Environment env = with({{"RANK", "1"},
                                {"OMPI_COMM_WORLD_RANK", "2"},
                                {"OMPI_COMM_WORLD_SIZE", "4"},
                                {"SLURM_PROCID", "3"},
                                {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(*env.process_rank(), (ProcessRank{2, 4})) << "RANK alone is not enough";
  EXPECT_EQ(*with({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}}).process_rank(), (ProcessRank{0, 2}));
  EXPECT_EQ(*with({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}).process_rank(),
            (ProcessRank{3, 8}));
  EXPECT_EQ(*with({{"RANK", "5"}, {"WORLD_SIZE", "6"}}).process_rank(), (ProcessRank{5, 6}));
}

TEST(Environment, a_rank_that_cannot_be_is_an_error) {
  for (const auto& [rank, size] : std::map<std::string, std::string>{
           {"4", "4"}, {"-1", "4"}, {"one", "4"}, {"0", "none"}, {"1", "0"}}) {
    EXPECT_FALSE(with({{"RANK", rank}, {"WORLD_SIZE", size}}).process_rank().ok()) << rank;
  }
  EXPECT_THAT(with({{"RANK", "4"}, {"WORLD_SIZE", "4"}}).process_rank().error().message,
              HasSubstr("RANK is '4'; expected a number below WORLD_SIZE, which is 4"));
}

TEST(Environment, reading_variables_have_two_spellings) {
  EXPECT_EQ(*Environment().training_end_delay_refresh_secs(), 1.0);
  EXPECT_EQ(*Environment().incomplete_step_wait_window(), 1000);
  EXPECT_EQ(*Environment().missing_event_file_retry_limit(), 100);
  const Environment plain(
      {{"TRAINING_END_DELAY_REFRESH", "2.5"}, {"INCOMPLETE_STEP_WAIT_WINDOW", "7"}});
  EXPECT_EQ(*plain.training_end_delay_refresh_secs(), 2.5);
  EXPECT_EQ(*plain.incomplete_step_wait_window(), 7);
  const Environment both(
      {{"INCOMPLETE_STEP_WAIT_WINDOW", "7"}, {"SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "9"}});
  EXPECT_EQ(*both.incomplete_step_wait_window(), 9);
}

TEST(Environment, reading_variables_must_be_numbers) {
  EXPECT_THAT(
      with({{"INCOMPLETE_STEP_WAIT_WINDOW", "7.5"}}).incomplete_step_wait_window().error().message,
      HasSubstr("INCOMPLETE_STEP_WAIT_WINDOW is '7.5'"));
  for (const char* bad : {"-1", "nan", "inf", "", "soon"}) {
    EXPECT_FALSE(
        with({{"SMDEBUG_TRAINING_END_DELAY_REFRESH", bad}}).training_end_delay_refresh_secs().ok())
        << bad;
  }
}

TEST(Environment, files_wait_in_the_cache_of_the_user_unless_told_otherwise) {
  EXPECT_EQ(with({{"HOME", "/h"}}).spool_directory(), "/h/.cache/smdebug/spool");
  EXPECT_EQ(with({{"HOME", "/h"}, {"XDG_CACHE_HOME", "/c"}}).spool_directory(), "/c/smdebug/spool");
  EXPECT_EQ(with({{"SMDEBUG_SPOOL_DIR", "/s"}, {"XDG_CACHE_HOME", "/c"}}).spool_directory(), "/s");
  EXPECT_EQ(*Environment().spool_drain_secs(), 60);
  EXPECT_EQ(*Environment().spool_max_bytes(), int64_t{4} << 30);
  EXPECT_EQ(*with({{"SMDEBUG_SPOOL_DRAIN_SECS", "1.5"}}).spool_drain_secs(), 1.5);
  EXPECT_EQ(*with({{"SPOOL_DRAIN_SECS", "1.5"}}).spool_drain_secs(), 60);
  EXPECT_FALSE(with({{"SMDEBUG_SPOOL_MAX_BYTES", "1 GB"}}).spool_max_bytes().ok());
}

TEST(Environment, home_stands_for_a_tilde_at_the_beginning) {
  const Environment env = with({{"HOME", "/h"}});
  EXPECT_EQ(env.expand_home("~/runs"), "/h/runs");
  EXPECT_EQ(env.expand_home("~"), "/h");
  for (const char* other : {"/a/~/b", "~other/x", "runs", "", "s3://b/~"}) {
    EXPECT_EQ(env.expand_home(other), other);
  }
  EXPECT_EQ(Environment().expand_home("~/runs"), "~/runs");
}

TEST(Environment, reads_the_process) {
  ASSERT_EQ(setenv("SMD_ENVIRONMENT_TEST", "a=b", 1), 0);
  EXPECT_EQ(Environment::of_process().find("SMD_ENVIRONMENT_TEST"), "a=b");
  unsetenv("SMD_ENVIRONMENT_TEST");
}

}  // namespace
}  // namespace smd
