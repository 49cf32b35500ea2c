#include "smd/writer/claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace smd {
namespace {

class ClaimTest : public testing::Test {
 protected:
  ClaimTest() : root(testing::TempDir() + "/smd_claim_" + std::to_string(getpid())) {
    std::filesystem::remove_all(root);
    storage = storage::local_storage(root);
  }
  ~ClaimTest() override { std::filesystem::remove_all(root); }
  bool held() { return storage->stat("claim.smd").ok(); }
  std::string root;
  std::shared_ptr<storage::Storage> storage;
};

TEST_F(ClaimTest, the_first_one_gets_it_and_the_second_learns_who) {
  Claim first(storage);
  Claim second(storage);
  EXPECT_TRUE(first.acquire().ok());
  EXPECT_TRUE(first.acquire().ok());
  auto refused = second.acquire();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::closed);
  EXPECT_THAT(refused.error().message, testing::HasSubstr(std::to_string(getpid())));
  second.release();
  EXPECT_TRUE(held());
  first.release();
  EXPECT_FALSE(held());
  EXPECT_FALSE(second.acquire().ok()) << "a refusal holds for good";
}

TEST_F(ClaimTest, a_dead_process_loses_its_claim) {
  const pid_t child = fork();
  if (child == 0) _exit(Claim(storage).acquire().ok() ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_TRUE(held());
  EXPECT_TRUE(Claim(storage).acquire().ok());
}

TEST_F(ClaimTest, an_empty_or_foreign_claim_is_respected) {
  for (const char* content : {"", "1 another-host 5\n", "nonsense"}) {
    ASSERT_TRUE(storage->put("claim.smd", as_bytes(content), storage::Put::always, {}).ok());
    EXPECT_FALSE(Claim(storage).acquire().ok()) << content;
  }
}

TEST_F(ClaimTest, of_many_racing_processes_one_wins) {
  std::vector<pid_t> children;
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  for (int i = 0; i < 16; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      close(go[1]);
      char byte = 0;
      (void)!read(go[0], &byte, 1);  // returns when the parent closes its end
      Claim claim(storage);
      const bool ours = claim.acquire().ok();
      if (ours) usleep(300'000);  // stay alive while the others look
      _exit(ours ? 7 : 0);
    }
    children.push_back(child);
  }
  close(go[0]);
  close(go[1]);
  int winners = 0;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    winners += WEXITSTATUS(status) == 7 ? 1 : 0;
  }
  EXPECT_EQ(winners, 1);
}

}  // namespace
}  // namespace smd
