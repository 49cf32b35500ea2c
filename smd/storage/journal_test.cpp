#include "smd/storage/journal.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/support/faulty_storage.h"

namespace smd::storage {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;
using Strings = std::vector<std::string>;

// Entries of a few bytes fill HEAD and snapshots.
const JournalOptions kSmall{
    .root = "j", .max_head_entry_bytes = 300, .max_head_bytes = 200, .max_snapshot_bytes = 2000};
const JournalOptions kUsual{.root = "j"};

Strings ids_of(const std::vector<JournalEntry>& entries) {
  Strings ids;
  for (const JournalEntry& entry : entries) ids.push_back(entry.id);
  return ids;
}

// What somebody who opens the journal now sees; every number must be there, once.
Strings seen(const std::shared_ptr<Storage>& storage, const JournalOptions& options = kUsual) {
  Journal journal(storage, options);
  const auto entries = journal.read_new();
  if (!entries.ok()) return {entries.error().message};
  for (size_t i = 0; i < entries->size(); ++i) EXPECT_EQ((*entries)[i].number, i + 1);
  return ids_of(*entries);
}

// The storage, counting requests by kind.
class Counted final : public Storage {
 public:
  explicit Counted(std::shared_ptr<Storage> inner) : inner_(std::move(inner)) {}
  int reads = 0;
  int writes = 0;

  std::string name() const override { return "counted"; }
  Result<std::unique_ptr<WriteFile>> create(std::string_view, const CreateOptions&) override {
    return Error{ErrorCode::unsupported, "not used"};
  }
  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override {
    ++writes;
    return inner_->put(path, content, when, options);
  }
  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    ++reads;
    return inner_->open(path);
  }
  Result<FileInfo> stat(std::string_view path) override { return inner_->stat(path); }
  Result<std::vector<FileInfo>> list(std::string_view, std::string_view) override {
    return Error{ErrorCode::unsupported, "A journal lists nothing."};
  }
  Result<std::optional<VersionedFile>> read_version(std::string_view path, std::string_view known,
                                                    uint64_t most_bytes) override {
    ++reads;
    return inner_->read_version(path, known, most_bytes);
  }
  Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                             std::string_view version) override {
    ++writes;
    return inner_->replace(path, content, version);
  }
  Status remove(std::string_view path) override { return inner_->remove(path); }
  Status sync() override { return {}; }

 private:
  const std::shared_ptr<Storage> inner_;
};

TEST(Journal, entries_are_read_in_the_order_of_their_commits) {
  const auto storage = memory_storage();
  Journal one(storage, kUsual);
  Journal two(storage, kUsual);
  EXPECT_EQ(*one.commit({.id = "a", .content = "1"}), 1u);
  EXPECT_EQ(*two.commit({.id = "b", .content = "2"}), 2u);
  EXPECT_EQ(*one.commit({.id = "c", .content = "3"}), 3u);
  Journal reader(storage, kUsual);
  const auto entries = reader.read_new();
  ASSERT_TRUE(entries.ok());
  EXPECT_THAT(*entries, ElementsAre(JournalEntry{1, "a", "1"}, JournalEntry{2, "b", "2"},
                                    JournalEntry{3, "c", "3"}));
  EXPECT_THAT(*reader.read_new(), SizeIs(0));
  ASSERT_TRUE(two.commit({.id = "d", .content = ""}).ok());
  EXPECT_THAT(ids_of(*reader.read_new()), ElementsAre("d"));
}

TEST(Journal, a_place_without_one_has_none) {
  Journal reader(memory_storage(), kUsual);
  EXPECT_EQ(reader.read_new().error().code, ErrorCode::not_found);
}

TEST(Journal, a_local_directory_has_no_conditional_writes) {
  Journal journal(local_storage(testing::TempDir() + "/smd_journal_none"), kUsual);
  EXPECT_EQ(journal.commit({.id = "a"}).error().code, ErrorCode::unsupported);
}

TEST(Journal, a_store_that_ignores_conditions_is_refused) {
  // Writes whatever the condition says.
  class Careless final : public Storage {
   public:
    explicit Careless(bool versions) : versions_(versions) {}
    std::string name() const override { return "careless"; }
    Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                              const CreateOptions& options) override {
      return inner_->create(path, options);
    }
    Result<bool> put(std::string_view path, ByteSpan content, Put when,
                     const CreateOptions& options) override {
      return inner_->put(path, content, versions_ ? when : Put::always, options);
    }
    Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
      return inner_->open(path);
    }
    Result<FileInfo> stat(std::string_view path) override { return inner_->stat(path); }
    Result<std::vector<FileInfo>> list(std::string_view a, std::string_view b) override {
      return inner_->list(a, b);
    }
    Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                               std::string_view) override {
      SMD_RETURN_IF_ERROR(inner_->put(path, content, Put::always, {}));
      return std::optional<std::string>("x");
    }
    Status remove(std::string_view path) override { return inner_->remove(path); }
    Status sync() override { return {}; }

   private:
    const std::shared_ptr<Storage> inner_ = memory_storage();
    const bool versions_;
  };
  for (const bool versions : {false, true}) {
    const auto storage = std::make_shared<Careless>(versions);
    for (int i = 0; i < 2; ++i) {  // also when an earlier check has left its file
      Journal journal(storage, kUsual);
      const auto refused = journal.commit({.id = "a"});
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
      EXPECT_THAT(refused.error().message, HasSubstr("layout='original'"));
    }
  }
}

TEST(Journal, snapshots_keep_head_small_and_replace_each_other) {
  const auto storage = memory_storage();
  Journal writer(storage, kSmall);
  Journal follower(storage, kSmall);
  Strings all;
  Strings followed;
  for (int i = 0; i < 300; ++i) {
    all.push_back(fmt::format("entry {}", i));
    ASSERT_TRUE(writer.commit({.id = all.back(), .content = std::string(i % 40, 'x')}).ok());
    EXPECT_LT(storage->stat("j/HEAD")->size_bytes, 1500);
    if (i % 7 == 0) {
      const Strings fresh = ids_of(*follower.read_new());
      followed.insert(followed.end(), fresh.begin(), fresh.end());
      EXPECT_EQ(followed, all);
    }
  }
  EXPECT_EQ(seen(storage, kSmall), all);
  const auto head = parse_head(*read_all(*storage, "j/HEAD"));
  EXPECT_GT(head->snapshots.size(), 3u);
  EXPECT_EQ(storage->list("j/snapshot", "")->size(), head->snapshots.size())
      << "those that were replaced are gone";
  EXPECT_EQ(storage->list("j/manifest", "")->size(), all.size());
}

TEST(Journal, requests_are_few) {
  const auto storage = std::make_shared<Counted>(memory_storage());
  Journal writer(storage, kUsual);
  ASSERT_TRUE(writer.commit({.id = "a", .content = "1"}).ok());
  storage->reads = storage->writes = 0;
  ASSERT_TRUE(writer.commit({.id = "b", .content = std::string(2 << 20, 'x')}).ok());
  EXPECT_EQ(storage->reads, 1);
  EXPECT_EQ(storage->writes, 3) << "number, snapshot, HEAD";
  storage->reads = storage->writes = 0;
  ASSERT_TRUE(writer.commit({.id = "c", .content = "3"}).ok());
  EXPECT_EQ(storage->reads, 1);
  EXPECT_EQ(storage->writes, 2);

  storage->reads = storage->writes = 0;
  Journal reader(storage, kUsual);
  EXPECT_THAT(*reader.read_new(), SizeIs(3));
  EXPECT_EQ(storage->reads, 3) << "HEAD, snapshot, next number";
  storage->reads = 0;
  for (int i = 0; i < 10; ++i) EXPECT_THAT(*reader.read_new(), SizeIs(0));
  EXPECT_EQ(storage->reads, 10);
  ASSERT_TRUE(writer.commit({.id = "d", .content = "4"}).ok());
  storage->reads = 0;
  EXPECT_THAT(*reader.read_new(), SizeIs(1));
  EXPECT_EQ(storage->reads, 1);
  EXPECT_EQ(storage->writes, 2);
}

TEST(Journal, an_entry_beyond_head_is_found_and_taken_in_by_the_next_commit) {
  const auto storage = memory_storage();
  Journal writer(storage, kUsual);
  ASSERT_TRUE(writer.commit({.id = "a"}).ok());
  Journal follower(storage, kUsual);
  EXPECT_THAT(*follower.read_new(), SizeIs(1));
  // Somebody died after the second step of the protocol.
  for (uint64_t n : {2, 3}) {
    const JournalEntry entry{.number = n, .id = fmt::format("dead {}", n), .content = ""};
    ASSERT_TRUE(storage
                    ->put(fmt::format("j/manifest/{:012}", n), as_bytes(*encode_entries({entry})),
                          Put::if_absent, {})
                    .ok());
  }
  EXPECT_THAT(seen(storage), ElementsAre("a", "dead 2", "dead 3"));
  EXPECT_THAT(*follower.read_new(), SizeIs(0)) << "only opening looks beyond HEAD";
  EXPECT_EQ(*writer.commit({.id = "b"}), 4u);
  EXPECT_THAT(seen(storage), ElementsAre("a", "dead 2", "dead 3", "b"));
  EXPECT_THAT(ids_of(*follower.read_new()), ElementsAre("dead 2", "dead 3", "b"));
}

TEST(Journal, a_commit_that_is_tried_again_happens_once) {
  const auto storage = memory_storage();
  Strings all;
  {
    Journal writer(storage, kSmall);
    for (int i = 0; i < 50; ++i) {
      all.push_back(fmt::format("entry {}", i));
      ASSERT_TRUE(writer.commit({.id = all.back(), .content = "x"}).ok());
    }
  }
  Journal again(storage, kSmall);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(*again.commit({.id = all[i], .content = "x", .again = true}), i + 1u);
  }
  EXPECT_EQ(seen(storage, kSmall), all);
}

// Whoever stops after any of its requests, carried out or not, loses nothing that was committed,
// and somebody else can go on with what was to be committed.
TEST(Journal, a_crash_at_any_request_costs_nothing) {
  for (const bool lose_answer : {false, true}) {
    bool finished = false;
    int crashes = 0;
    for (int calls = 0; !finished; ++calls) {
      const auto storage = memory_storage();
      const auto faulty = std::make_shared<FaultyStorage>(storage);
      faulty->fail_after(calls, lose_answer);
      Journal writer(faulty, kSmall);
      Strings committed;
      std::string failed;
      for (int i = 0; i < 12 && failed.empty(); ++i) {
        const std::string id = fmt::format("entry {}", i);
        const auto done = writer.commit({.id = id, .content = std::string(60, 'x')});
        if (done.ok()) {
          committed.push_back(id);
        } else {
          failed = id;
        }
      }
      finished = failed.empty();
      crashes += finished ? 0 : 1;
      const auto before = seen(storage, kSmall);
      if (!committed.empty()) {
        ASSERT_GE(before.size(), committed.size()) << calls;
        ASSERT_TRUE(std::equal(committed.begin(), committed.end(), before.begin())) << calls;
      }
      // The next life commits what failed once more, and something of its own.
      Journal next(storage, kSmall);
      if (!failed.empty()) {
        ASSERT_TRUE(
            next.commit({.id = failed, .content = std::string(60, 'x'), .again = true}).ok());
        committed.push_back(failed);
      }
      ASSERT_TRUE(next.commit({.id = "own", .content = ""}).ok());
      committed.push_back("own");
      EXPECT_EQ(seen(storage, kSmall), committed) << calls;
      EXPECT_EQ(parse_head(*read_all(*storage, "j/HEAD"))->last, committed.size());
    }
    EXPECT_GT(crashes, 30);
  }
}

// The same for a try that is repeated by the process that failed.
TEST(Journal, every_request_may_fail_once) {
  for (const bool lose_answer : {false, true}) {
    for (int calls = 0; calls < 40; ++calls) {
      const auto storage = memory_storage();
      const auto faulty = std::make_shared<FaultyStorage>(storage);
      Journal writer(faulty, kSmall);
      Strings all;
      faulty->fail_after(calls, lose_answer);
      for (int i = 0; i < 10; ++i) {
        all.push_back(fmt::format("entry {}", i));
        Journal::Commit commit{.id = all.back(), .content = std::string(60, 'x')};
        if (writer.commit(commit).ok()) continue;
        faulty->fail_after(1'000'000, false);
        commit.again = true;
        ASSERT_TRUE(writer.commit(commit).ok());
      }
      EXPECT_EQ(seen(storage, kSmall), all) << calls;
    }
  }
}

TEST(Journal, sixteen_writers_lose_no_entry_and_share_no_number) {
  constexpr int kThreads = 16;
  constexpr int kCommits = 1000;
  const JournalOptions options{.root = "j",
                               .max_head_entry_bytes = 20'000,
                               .max_head_bytes = 10'000,
                               .max_snapshot_bytes = 200'000};
  const auto storage = memory_storage();
  std::vector<std::vector<uint64_t>> numbers(kThreads);
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Journal journal(storage, options);
      for (int i = 0; i < kCommits; ++i) {
        const auto number = journal.commit({.id = fmt::format("{}/{}", t, i), .content = "x"});
        if (!number.ok()) {
          ADD_FAILURE() << number.error().message;
          return;
        }
        numbers[t].push_back(*number);
      }
    });
  }
  // A follower sees every number once and in order, whatever is replaced under it.
  uint64_t followed = 0;
  std::thread follower([&] {
    Journal journal(storage, options);
    while (true) {
      const bool last = done;
      const auto entries = journal.read_new();
      if (entries.ok()) {
        for (const JournalEntry& entry : *entries) EXPECT_EQ(entry.number, ++followed);
      } else {
        EXPECT_EQ(entries.error().code, ErrorCode::not_found) << entries.error().message;
      }
      if (last) return;
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  follower.join();
  std::set<uint64_t> all;
  for (const auto& some : numbers) {
    EXPECT_THAT(some, SizeIs(kCommits));
    EXPECT_TRUE(std::is_sorted(some.begin(), some.end()));
    all.insert(some.begin(), some.end());
  }
  EXPECT_EQ(all.size(), size_t{kThreads} * kCommits);
  EXPECT_EQ(*all.rbegin(), all.size());
  EXPECT_EQ(followed, all.size());
  const auto head = parse_head(*read_all(*storage, "j/HEAD"));
  EXPECT_EQ(head->last, all.size());
  EXPECT_EQ(storage->list("j/snapshot", "")->size(), head->snapshots.size())
      << "those that were made in vain are gone";
  const Strings ids = seen(storage, options);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), all.size());
}

TEST(Journal, a_head_that_is_something_else_is_said) {
  const auto message = [](std::string_view content) {
    const auto storage = memory_storage();
    EXPECT_TRUE(storage->put("j/HEAD", as_bytes(content), Put::always, {}).ok());
    Journal journal(storage, kUsual);
    const auto commit = journal.commit({.id = "a"});
    EXPECT_FALSE(commit.ok());
    EXPECT_EQ(as_text(*read_all(*storage, "j/HEAD")), content) << "it is not touched";
    return journal.read_new().error().message;
  };
  EXPECT_THAT(message(""), HasSubstr("ends after 0 of"));
  EXPECT_THAT(message("<html>"), HasSubstr("not written by smdebug. Restore the object"));
  EXPECT_THAT(message("<html>"), HasSubstr("Object: memory/j/HEAD"));
  EXPECT_THAT(message(std::string(2 << 20, 'x')), HasSubstr("more than any of its kind"));
  std::string later = *encode_head({});
  later[8] = 7;
  EXPECT_THAT(message(later), HasSubstr("later release"));
}

TEST(Journal, a_run_that_was_replaced_is_said) {
  const auto storage = memory_storage();
  Journal reader(storage, kUsual);
  {
    Journal writer(storage, kUsual);
    ASSERT_TRUE(writer.commit({.id = "a"}).ok());
    ASSERT_TRUE(writer.commit({.id = "b"}).ok());
  }
  EXPECT_THAT(*reader.read_new(), SizeIs(2));
  for (const FileInfo& file : *storage->list("", "")) ASSERT_TRUE(storage->remove(file.path).ok());
  EXPECT_EQ(reader.read_new().error().code, ErrorCode::not_found);
  Journal writer(storage, kUsual);
  ASSERT_TRUE(writer.commit({.id = "c"}).ok());
  EXPECT_THAT(reader.read_new().error().message, HasSubstr("replaced by another one"));
}

}  // namespace
}  // namespace smd::storage
