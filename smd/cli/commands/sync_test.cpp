#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/small_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

class SyncCommand : public ProgramTestCase {
 protected:
  const std::string root = folder + "/run";
  const std::string other = folder + "/other";
  const std::shared_ptr<storage::Storage> storage = storage::local_storage(root);
  SmallRun recorded{storage};

  size_t files_in(const std::string& place) {
    return storage::local_storage(place)->list("", "")->size();
  }
};

TEST_F(SyncCommand, copies_a_run_and_repeats_nothing) {
  recorded.finished();
  const size_t files = files_in(root);
  EXPECT_EQ(run({"sync", root, other}), 0) << err;
  EXPECT_THAT(out, HasSubstr("sent " + std::to_string(files) + " files"));
  EXPECT_EQ(files_in(other), files);
  EXPECT_EQ(run({"verify", other}), 0) << out;
  EXPECT_EQ(run({"sync", root, other, "--json"}), 0);
  EXPECT_EQ(json()["files_sent"], 0);
  EXPECT_EQ(json()["files_skipped"], files);
  EXPECT_EQ(files_in(root), files);
}

TEST_F(SyncCommand, can_clear_the_source) {
  recorded.finished();
  EXPECT_EQ(run({"sync", "--remove-source", root, other}), 0);
  EXPECT_EQ(files_in(root), 0u);
  EXPECT_EQ(run({"verify", other}), 0) << out;
}

TEST_F(SyncCommand, says_what_is_wrong_with_the_places) {
  EXPECT_EQ(run({"sync", folder + "/missing", other}), 2);
  EXPECT_THAT(err, HasSubstr("missing"));
  EXPECT_EQ(run({"sync", root}), 2);
  recorded.finished();
  EXPECT_EQ(run({"sync", root, "ftp://host/x"}), 2);
  EXPECT_THAT(err, HasSubstr("ftp://host/x"));
  EXPECT_EQ(run({"sync", root, "s3://"}), 2);
}

}  // namespace
}  // namespace smd::cli
