#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"
#include "tests/support/small_run.h"

namespace smd::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class VerifyCommand : public ProgramTestCase {
 protected:
  const std::string root = folder + "/run";
  const std::shared_ptr<storage::Storage> storage = storage::local_storage(root);
  SmallRun recorded{storage};
};

TEST_F(VerifyCommand, a_whole_run_is_well) {
  recorded.finished();
  EXPECT_EQ(run({"verify", root}), 0);
  EXPECT_THAT(out,
              HasSubstr("3 steps, 1 worker, 3 index files, 3 event files (1.7 KiB), 6 tensors"));
  EXPECT_THAT(out, EndsWith("no damage\n"));
  EXPECT_EQ(run({"verify", "--deep", "--json", root}), 0);
  EXPECT_EQ(json()["tensors"], 6);
  EXPECT_EQ(json()["problems"], Json::array());
  EXPECT_EQ(err, "");
}

TEST_F(VerifyCommand, damage_is_exit_code_one_and_tells_where) {
  recorded.finished();
  const std::string file = "events/000000000001/000000000001_worker_0.tfevents";
  const std::string events = recorded.text(file);
  recorded.put(file, events.substr(0, events.size() - 1));
  EXPECT_EQ(run({"verify", root}), 1);
  EXPECT_THAT(out, HasSubstr("damage events/000000000001/000000000001_worker_0.tfevents at 105: "
                             "The index says that 'bias' takes"));
  EXPECT_THAT(out, EndsWith("damage in 1 place\n"));
  EXPECT_EQ(run({"verify", root, "--json"}), 1);
  EXPECT_EQ(json()["damage"], 1);
  EXPECT_EQ(json()["problems"][0]["fault"], "record_outside");
  EXPECT_EQ(json()["problems"][0]["file"], file);
  EXPECT_EQ(json()["problems"][0]["offset"], 105);
}

TEST_F(VerifyCommand, repair_says_what_it_did) {
  recorded.finished();
  ASSERT_TRUE(storage->remove("index/000000000/000000000001_worker_0.json").ok());
  EXPECT_EQ(run({"verify", root}), 1);
  EXPECT_EQ(run({"verify", root, "--repair"}), 0);
  EXPECT_THAT(out, HasSubstr("mended events/000000000001/"));
  EXPECT_THAT(out, HasSubstr("wrote  index/000000000/000000000001_worker_0.json: Rebuilt"));
  EXPECT_EQ(run({"verify", root}), 0);
  EXPECT_THAT(out, Not(HasSubstr("mended")));
}

TEST_F(VerifyCommand, colours_appear_only_when_asked_for_or_seen) {
  recorded.finished();
  EXPECT_EQ(run({"verify", root}), 0);
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(run({"verify", root, "--color", "always"}), 0);
  EXPECT_THAT(out, HasSubstr("\x1b[32mno damage\x1b[0m"));
}

TEST_F(VerifyCommand, golden_runs_are_well) {
  for (const char* name :
       {"types", "modes", "workers", "devices", "shapes", "collections", "hook"}) {
    EXPECT_EQ(run({"verify", golden_folder() + "/" + name}), 0) << out;
  }
  EXPECT_EQ(run({"verify", golden_folder()}), 2);
  EXPECT_THAT(err, HasSubstr("golden/hook"));
}

}  // namespace
}  // namespace smd::cli
