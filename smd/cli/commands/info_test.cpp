#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"
#include "tests/support/small_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class InfoCommand : public ProgramTestCase {
 protected:
  const std::string golden = golden_folder();
  const std::string root = folder + "/run";
  const std::shared_ptr<storage::Storage> storage = storage::local_storage(root);
  SmallRun recorded{storage};
};

TEST_F(InfoCommand, a_run_of_the_original_is_summed_up) {
  EXPECT_EQ(run({"info", golden + "/hook"}), 0) << err;
  EXPECT_THAT(out, HasSubstr("state       ended\n"
                             "workers     1 of 1 announced: worker_0\n"
                             "steps       TRAIN 3 (0 to 2), EVAL 1 (0)\n"
                             "tensors     7\n"));
  EXPECT_THAT(out, HasSubstr("files       4 event files (19 KiB), 4 index files (12 KiB)\n"
                             "health      nothing is missing; 'smdebug verify' looks closer\n"));
  EXPECT_THAT(out, HasSubstr("\nshaped            2  shape\n"));
  EXPECT_EQ(err, "");
}

TEST_F(InfoCommand, json_has_the_same) {
  EXPECT_EQ(run({"info", "--json", golden + "/hook"}), 0);
  const Json found = json();
  EXPECT_EQ(found["state"], "ended");
  EXPECT_EQ(found["workers"], Json({"worker_0"}));
  EXPECT_EQ(found["modes"][0],
            Json({{"mode", "TRAIN"}, {"steps", 3}, {"first_step", 0}, {"last_step", 2}}));
  EXPECT_EQ(found["collections"][2]["name"], "shaped");
  EXPECT_EQ(found["collections"][2]["tensors"], 2);
  EXPECT_EQ(found["first_wall_secs"], 1600000000.5);
  EXPECT_EQ(found["health"]["event_files_missing"], 0);
}

TEST_F(InfoCommand, steps_that_some_worker_lacks_are_counted) {
  EXPECT_EQ(run({"info", golden + "/running"}), 0);
  EXPECT_THAT(out, HasSubstr("TRAIN 4 (0 to 3); 1 not complete"));
  EXPECT_THAT(out, HasSubstr("1 temporary file"));
  EXPECT_EQ(run({"info", golden + "/modes"}), 0);
  EXPECT_THAT(out, HasSubstr("1 without a mode"));
}

TEST_F(InfoCommand, a_job_that_writes_runs_and_a_silent_one_was_probably_stopped) {
  recorded.collections();
  recorded.step(0);
  const auto file = storage->stat(format::index_file_name(0, "worker_0"));
  ASSERT_TRUE(file.ok());
  const double written = static_cast<double>(file->mtime_ns) / 1e9;
  clock = std::make_shared<ManualClock>(written + 5);
  EXPECT_EQ(run({"info", root}), 0);
  EXPECT_THAT(out, HasSubstr("running: last file written 5.0 s ago"));
  clock = std::make_shared<ManualClock>(written + 7200);
  EXPECT_EQ(run({"info", root}), 0);
  EXPECT_THAT(out, HasSubstr("no end marker, nothing written for 2 h 0 min: probably stopped"));
  EXPECT_EQ(run({"info", root, "--json"}), 0);
  EXPECT_EQ(json()["state"], "silent");
  recorded.end();
  EXPECT_EQ(run({"info", root, "--json"}), 0);
  EXPECT_EQ(json()["state"], "ended");
}

TEST_F(InfoCommand, a_run_without_collections_is_shown_with_a_note) {
  recorded.step(0);
  EXPECT_EQ(run({"info", root}), 0) << err;
  EXPECT_THAT(out, HasSubstr("workers     no collections yet"));
  EXPECT_THAT(out, HasSubstr("steps       TRAIN 1 (10)"));
  EXPECT_THAT(out, Not(HasSubstr("collection ")));
}

TEST_F(InfoCommand, missing_and_broken_files_are_counted) {
  recorded.finished();
  ASSERT_TRUE(storage->remove(format::event_file_name(1, "worker_0")).ok());
  recorded.put(format::index_file_name(2, "worker_0"), "{");
  EXPECT_EQ(run({"info", root}), 0);
  EXPECT_THAT(out, HasSubstr("1 index file left out, 1 event file missing; 'smdebug verify'"));
  EXPECT_EQ(run({"verify", root}), 1);
}

TEST_F(InfoCommand, files_of_a_packed_run_are_logs_and_segments) {
  const std::string packed = golden_folder() + "/packed/hook";
  EXPECT_EQ(run({"info", packed}), 0) << err;
  EXPECT_THAT(out, HasSubstr("1 segment (4.1 KiB), 1 log ("));
  EXPECT_THAT(out, HasSubstr("nothing is missing"));
  EXPECT_EQ(run({"info", packed, "--json"}), 0) << err;
  EXPECT_EQ(json()["layout"], "packed");
  EXPECT_EQ(json()["event_files"], 1);
  EXPECT_EQ(json()["health"]["event_files_missing"], 0);
}

}  // namespace
}  // namespace smd::cli
