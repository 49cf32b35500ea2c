#include "smd/storage/spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "smd/storage/internal/conformance.h"
#include "tests/support/faulty_storage.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;
using Strings = std::vector<std::string>;

std::string new_root() {
  static int count = 0;
  const std::string root =
      testing::TempDir() + "/smd_spool_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  fs::remove_all(root);
  return root;
}

class SpoolTest : public testing::Test {
 protected:
  SpoolTest() {
    options.root = new_root();
    options.retry = {.first = milliseconds(1), .longest = milliseconds(5)};
    options.drain_timeout = milliseconds(10'000);
  }
  ~SpoolTest() override {
    remote->hold(false);
    fs::remove_all(options.root);
  }
  std::shared_ptr<Spool> open() {
    options.interrupt = std::make_shared<Interrupt>();
    auto spool = Spool::open(remote, options);
    EXPECT_TRUE(spool.ok());
    return *spool;
  }
  static void write(Storage& storage, std::string_view path, std::string_view text) {
    auto file = storage.create(path, {});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->append({{as_bytes(text)}}).ok());
    ASSERT_TRUE((*file)->commit().ok());
  }
  Strings directories() const {
    Strings names;
    for (const auto& entry : fs::directory_iterator(options.root + "/bucket"))
      names.push_back(entry.path());
    return names;
  }

  SpoolOptions options;
  std::shared_ptr<FaultyStorage> remote = std::make_shared<FaultyStorage>();
};

TEST_F(SpoolTest, sends_files_in_the_order_of_their_commits) {
  const auto spool = open();
  Strings order;
  for (int step = 0; step < 20; ++step) {
    const std::string event = "events/" + std::to_string(step);
    const std::string index = "index/" + std::to_string(step);
    write(*spool, event, "data");
    ASSERT_TRUE(*spool->put(index, as_bytes("index"), Put::always, {}));
    order.push_back(event);
    order.push_back(index);
  }
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(remote->arrived(), order);
  EXPECT_EQ(as_text(*read_all(*remote, "events/7")), "data");
  EXPECT_EQ(directories(), Strings{});  // nothing is left
}

TEST_F(SpoolTest, what_waits_is_seen_like_what_has_arrived) {
  ASSERT_TRUE(remote->put("a/0", as_bytes("there"), Put::always, {}).ok());
  ASSERT_TRUE(remote->put("a/3", as_bytes("old"), Put::always, {}).ok());
  ASSERT_TRUE(remote->put("b", as_bytes("gone"), Put::always, {}).ok());
  const auto spool = open();
  remote->hold(true);
  write(*spool, "a/1", "one");
  write(*spool, "a/3", "three");
  ASSERT_TRUE(spool->remove("b").ok());
  const auto names = [&](std::string_view folder, std::string_view after) {
    Strings out;
    for (const FileInfo& file : *spool->list(folder, after)) out.push_back(file.path);
    return out;
  };
  EXPECT_EQ(names("", ""), (Strings{"a/0", "a/1", "a/3"}));
  EXPECT_EQ(names("a", "a/0"), (Strings{"a/1", "a/3"}));
  EXPECT_EQ(spool->stat("a/3")->size_bytes, 5);
  EXPECT_EQ(as_text(*read_all(*spool, "a/3")), "three");
  EXPECT_EQ(as_text(*read_all(*spool, "a/0")), "there");
  EXPECT_EQ(spool->stat("b").error().code, ErrorCode::not_found);
  EXPECT_EQ(spool->open("b").error().code, ErrorCode::not_found);
  EXPECT_EQ(spool->pending().files, 2);
  EXPECT_EQ(spool->pending().bytes, 8u);
  remote->hold(false);
  EXPECT_TRUE(spool->sync().ok());
  EXPECT_EQ(names("", ""), (Strings{"a/0", "a/1", "a/3"}));
  EXPECT_EQ(as_text(*read_all(*remote, "a/3")), "three");
  EXPECT_EQ(remote->stat("b").error().code, ErrorCode::not_found);
}

TEST_F(SpoolTest, a_file_that_is_replaced_while_it_waits_is_sent_as_it_is_last) {
  const auto spool = open();
  remote->hold(true);
  write(*spool, "first", "x");
  write(*spool, "index", "old");
  ASSERT_TRUE(spool->remove("index").ok());
  write(*spool, "event", "new");
  write(*spool, "index", "newer");
  EXPECT_EQ(spool->pending().files, 3);
  remote->hold(false);
  EXPECT_TRUE(spool->close().ok());
  // The old index, if there was one, is gone before the new data comes.
  EXPECT_EQ(remote->arrived(), (Strings{"first", "-index", "event", "index"}));
  EXPECT_EQ(as_text(*read_all(*remote, "index")), "newer");
}

TEST_F(SpoolTest, a_dead_network_costs_nothing_and_loses_nothing) {
  remote->fail(true);
  const auto spool = open();
  for (int i = 0; i < 10; ++i) write(*spool, "f" + std::to_string(i), "data");
  EXPECT_EQ(spool->pending().files, 10);
  std::optional<Error> error;
  while (!error) error = spool->take_error();
  EXPECT_EQ(error->message, "The network is down.");
  EXPECT_FALSE(spool->take_error());  // once
  remote->fail(false);
  EXPECT_TRUE(spool->sync().ok());
  EXPECT_EQ(remote->arrived().size(), 10u);
  remote->fail(true);
  write(*spool, "late", "data");
  while (!spool->take_error()) continue;  // again, because it had worked
  remote->fail(false);
  EXPECT_TRUE(spool->close().ok());
}

TEST_F(SpoolTest, says_what_is_left_and_how_to_send_it) {
  remote->fail(true);
  options.drain_timeout = milliseconds(30);
  const auto spool = open();
  write(*spool, "a", "12345");
  write(*spool, "b", "678");
  const Status closed = spool->close();
  EXPECT_EQ(closed.error().code, ErrorCode::io);
  EXPECT_THAT(closed.error().message, HasSubstr("2 files with 8 bytes could not be sent to "
                                                "faulty://bucket/run"));
  EXPECT_THAT(closed.error().message,
              HasSubstr("smdebug sync " + spool->directory() + " faulty://bucket/run"));
  EXPECT_THAT(closed.error().message, HasSubstr("The network is down."));
  EXPECT_TRUE(fs::exists(spool->directory() + "/a"));
  EXPECT_TRUE(spool->close().ok());
}

TEST_F(SpoolTest, the_next_spool_sends_what_another_left_behind) {
  remote->fail(true);
  options.drain_timeout = milliseconds(1);
  for (const char* path : {"training_job_end.ts", "index/0/1", "events/1", "events/2"}) {
    const auto spool = open();
    write(*spool, path, path);
    EXPECT_FALSE(spool->close().ok());
  }
  ASSERT_EQ(directories().size(), 1u);
  std::ofstream(directories()[0] + "/files/half.tmp") << "half";
  remote->fail(false);
  options.drain_timeout = milliseconds(10'000);
  const auto spool = open();
  EXPECT_TRUE(spool->sync().ok());
  EXPECT_EQ(remote->arrived(),
            (Strings{"events/1", "events/2", "index/0/1", "training_job_end.ts"}));
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(directories(), Strings{});
}

TEST_F(SpoolTest, the_next_spool_removes_what_another_was_to_remove) {
  ASSERT_TRUE(remote->put("index/0/1", as_bytes("old"), Put::always, {}).ok());
  remote->fail(true);
  options.drain_timeout = milliseconds(1);
  {
    const auto spool = open();
    ASSERT_TRUE(spool->remove("index/0/1").ok());
    write(*spool, "events/1", "new");
  }
  {
    const auto spool = open();  // hands it on
    write(*spool, "index/0/1", "new");
  }
  remote->fail(false);
  options.drain_timeout = milliseconds(10'000);
  EXPECT_TRUE(open()->close().ok());
  EXPECT_EQ(remote->arrived(), (Strings{"index/0/1", "-index/0/1", "events/1", "index/0/1"}));
  EXPECT_EQ(directories(), Strings{});
}

TEST_F(SpoolTest, several_directories_that_were_left_become_one) {
  remote->fail(true);
  options.drain_timeout = milliseconds(1);
  {
    const auto one = open();
    const auto two = open();  // at the same time: each has its own
    EXPECT_EQ(directories().size(), 2u);
    write(*one, "a/1", "1");
    write(*two, "a/2", "2");
  }
  remote->fail(false);
  options.drain_timeout = milliseconds(10'000);
  const auto spool = open();
  EXPECT_EQ(directories().size(), 1u);
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(as_text(*read_all(*remote, "a/1")), "1");
  EXPECT_EQ(as_text(*read_all(*remote, "a/2")), "2");
}

TEST_F(SpoolTest, leaves_other_destinations_alone) {
  remote->fail(true);
  options.drain_timeout = milliseconds(1);
  {
    const auto spool = open();
    write(*spool, "a", "1");
  }
  const std::string file = directories()[0] + "/destination";
  std::ofstream(file) << "faulty://bucket/other\n";
  remote->fail(false);
  const auto spool = open();
  EXPECT_EQ(spool->pending().files, 0);
  EXPECT_EQ(directories().size(), 2u);
}

TEST_F(SpoolTest, a_full_spool_refuses_and_recovers) {
  remote->fail(true);
  options.max_bytes = 10;
  const auto spool = open();
  write(*spool, "a", "1234567");
  {
    auto file = spool->create("b", {});
    ASSERT_TRUE(file.ok());
    const Status refused = (*file)->append({{as_bytes("1234")}});
    EXPECT_EQ(refused.error().code, ErrorCode::io);
    EXPECT_THAT(refused.error().message, HasSubstr("The spool is full"));
  }
  write(*spool, "c", "123");
  EXPECT_EQ(spool->create("d", {}).error().code, ErrorCode::io);
  EXPECT_TRUE(spool->put("index", as_bytes("small"), Put::always, {}).ok());  // never refused
  remote->fail(false);
  EXPECT_TRUE(spool->sync().ok());
  write(*spool, "d", "1234567890");
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(remote->arrived(), (Strings{"a", "c", "index", "d"}));
}

TEST_F(SpoolTest, conditional_files_are_decided_by_the_destination) {
  const auto spool = open();
  EXPECT_TRUE(*spool->put("claim", as_bytes("me"), Put::if_absent, {}));
  EXPECT_EQ(as_text(*read_all(*remote, "claim")), "me");
  EXPECT_FALSE(*spool->put("claim", as_bytes("you"), Put::if_absent, {}));
  remote->hold(true);
  write(*spool, "waits", "x");
  EXPECT_FALSE(*spool->put("waits", as_bytes("y"), Put::if_absent, {}));
  remote->hold(false);
  EXPECT_TRUE(spool->sync().ok());
  remote->fail(true);
  EXPECT_EQ(spool->put("other", {}, Put::if_absent, {}).error().code, ErrorCode::io);
}

TEST_F(SpoolTest, goes_on_when_somebody_removes_a_file_that_waits) {
  const auto spool = open();
  remote->hold(true);
  write(*spool, "a", "1");
  write(*spool, "b", "2");
  write(*spool, "c", "3");
  fs::remove(spool->directory() + "/b");
  remote->hold(false);
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(remote->arrived(), (Strings{"a", "c"}));
}

TEST_F(SpoolTest, stands_still_in_a_forked_child) {
  const auto spool = open();
  remote->hold(true);
  write(*spool, "a", "1");
  const pid_t child = fork();
  if (child == 0) {
    const bool inert = !spool->create("b", {}).ok() && !spool->remove("a").ok() &&
                       !spool->close().ok() && !spool->take_error();
    _exit(inert ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  remote->hold(false);
  EXPECT_TRUE(spool->close().ok());
  EXPECT_EQ(remote->arrived(), Strings{"a"});
}

TEST_F(SpoolTest, says_which_variable_helps_when_its_directory_cannot_be_made) {
  options.root = "/proc/nowhere";
  const auto spool = Spool::open(remote, options);
  ASSERT_FALSE(spool.ok());
  EXPECT_THAT(spool.error().message, HasSubstr("SMDEBUG_SPOOL_DIR"));
  options.root = new_root();
}

// A spool keeps the contract of every storage.
std::shared_ptr<Storage> make_spool() {
  return *Spool::open(
      memory_storage(),
      {.root = new_root(), .retry = {.first = milliseconds(1), .longest = milliseconds(5)}});
}
INSTANTIATE_TEST_SUITE_P(Spool, StorageConformance, testing::Values(&make_spool));

}  // namespace
}  // namespace smd::storage
