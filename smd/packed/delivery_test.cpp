#include "smd/packed/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "smd/format/file_name.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/format/packed_manifest.h"
#include "smd/packed/segment_file.h"
#include "smd/storage/spool.h"
#include "tests/support/faulty_storage.h"

namespace smd::packed {
namespace {

using storage::FaultyStorage;
using storage::Put;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kWriter = "worker_0.0000000000000100000002";
const std::string kSegment = format::segment_file_name(kWriter, 0);
const std::string kLog = format::log_file_name(kWriter, 0);

// A segment of steps that hold one number each, and its log, both without an end.
struct Segment {
  explicit Segment(Step steps) {
    format::append_log_entry(
        log, format::PackedHeader{.worker = "worker_0", .writer = kWriter, .segment = kSegment});
    format::append_log_entry(log, format::PackedNames{.first_id = 0, .names = {"w"}});
    format::append_log_entry(
        log, format::PackedSchema{.id = 0, .ops = {}, .values = {{.tensor = 0, .op = 0}}});
    std::string entries = log;
    for (Step i = 0; i < steps; ++i) {
      Bytes values(4);
      store_le(values.data(), static_cast<float>(i));
      format::PackedStep step{.info = {.step = i, .mode = Mode::train, .mode_step = i},
                              .base = data.size()};
      const size_t before = entries.size();
      format::append_log_entry(entries, step);
      format::BlockHead head{.step = step.info,
                             .wall_secs = 0,
                             .offset = data.size(),
                             .entries = entries,
                             .values_bytes = values.size()};
      const auto plan = format::plan_block(head);
      step.block_offset = plan.values_offset;
      step.length = plan.record_bytes;
      entries.resize(before);
      format::append_log_entry(entries, step);
      head.entries = entries;
      format::append_block(data, head, values);
      if (i > 0) log += entries;
      if (i == 0) log = entries;
      entries.clear();
      ends.push_back(data.size());
    }
  }
  std::string data;
  std::string log;
  std::vector<size_t> ends;  // of the steps in the segment
};

class DeliveryTest : public testing::Test {
 protected:
  std::shared_ptr<storage::Storage> store = storage::memory_storage();
  std::shared_ptr<FaultyStorage> remote = std::make_shared<FaultyStorage>(store);
  std::shared_ptr<storage::Storage> local = storage::memory_storage();

  void put(std::string_view path, std::string_view text) const {
    ASSERT_TRUE(local->put(path, as_bytes(text), Put::always, {}).ok());
  }
  std::vector<format::PackedManifest> committed() const {
    auto journal = journal_of(store);
    std::vector<format::PackedManifest> out;
    const auto entries = journal.read_new();
    if (!entries.ok()) return out;
    for (const auto& entry : *entries)
      out.push_back(*format::parse_manifest(as_bytes(entry.content)));
    return out;
  }
  // Of a segment that was sent: its log, from its footer.
  std::string footer_of(std::string_view path) const {
    auto file = store->open(path);
    return file.ok() ? *log_of_segment(**file) : std::string();
  }
  bool has(std::string_view path) const { return local->stat(path).ok(); }
};

TEST_F(DeliveryTest, a_segment_without_an_end_is_closed_sent_and_committed) {
  const Segment segment(3);
  put(kSegment, segment.data + "half of a step");
  put(kLog, segment.log + std::string("\x10\0\0", 3));
  const auto delivery = delivery_to(remote);
  ASSERT_TRUE(delivery->takes(kSegment));
  EXPECT_EQ(delivery->owner_of(kLog), kSegment);
  EXPECT_FALSE(delivery->takes("collections/000000000/worker_0_collections.json"));
  EXPECT_EQ(delivery->owner_of("collections/x"), "");
  ASSERT_TRUE(delivery->deliver(*local, kSegment, {}).ok());
  const auto manifests = committed();
  ASSERT_THAT(manifests, SizeIs(1));
  EXPECT_EQ(manifests[0].writer, kWriter);
  EXPECT_EQ(manifests[0].segment, kSegment);
  EXPECT_EQ(manifests[0].watermark, 2);
  EXPECT_TRUE(manifests[0].log.starts_with(segment.log));
  EXPECT_EQ(footer_of(kSegment), manifests[0].log);
  const auto sent = storage::read_all(*store, kSegment);
  EXPECT_EQ(sent->size(), manifests[0].segment_bytes);
  EXPECT_TRUE(as_text(*sent).starts_with(segment.data));
  EXPECT_FALSE(has(kLog));
  EXPECT_TRUE(has(kSegment)) << "the caller removes it";
}

TEST_F(DeliveryTest, the_footer_is_the_one_that_the_writer_would_have_written) {
  const Segment segment(2);
  std::string ended = segment.log;
  format::append_log_entry(ended, format::PackedEnd());
  std::string whole = segment.data;
  ASSERT_TRUE(format::append_footer(whole, whole.size(), ended).ok());
  for (const bool closed : {true, false}) {
    put(kSegment, closed ? whole : segment.data);
    put(kLog, closed ? ended : segment.log);
    ASSERT_TRUE(delivery_to(remote)->deliver(*local, kSegment, {.again = true}).ok());
    EXPECT_EQ(as_text(*storage::read_all(*store, kSegment)), whole);
  }
  EXPECT_THAT(committed(), SizeIs(1)) << "the second time it was there";
}

TEST_F(DeliveryTest, steps_that_are_not_whole_are_cut_off) {
  const Segment segment(4);
  // The machine lost the end of the segment, but not that of its log.
  put(kSegment, segment.data.substr(0, segment.ends[2] - 1));
  put(kLog, segment.log);
  ASSERT_TRUE(delivery_to(remote)->deliver(*local, kSegment, {}).ok());
  EXPECT_EQ(committed().at(0).watermark, 1);
  EXPECT_TRUE(as_text(*storage::read_all(*store, kSegment))
                  .starts_with(segment.data.substr(0, segment.ends[1])));
}

TEST_F(DeliveryTest, a_segment_tells_what_a_missing_or_damaged_log_does_not) {
  const Segment segment(3);
  std::string damaged = segment.log;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  for (const bool missing : {true, false}) {
    store = storage::memory_storage();
    remote = std::make_shared<FaultyStorage>(store);
    put(kSegment, segment.data);
    if (missing) {
      ASSERT_TRUE(local->remove(kLog).ok());
    } else {
      put(kLog, damaged);
    }
    ASSERT_TRUE(delivery_to(remote)->deliver(*local, kSegment, {}).ok());
    EXPECT_EQ(committed().at(0).watermark, 2);
  }
}

TEST_F(DeliveryTest, a_segment_without_steps_is_not_sent) {
  put(kSegment, "");
  put(kLog, "");
  EXPECT_EQ(*delivery_to(remote)->deliver(*local, kSegment, {}), 0u);
  EXPECT_THAT(committed(), IsEmpty());
  EXPECT_FALSE(has(kLog));
}

TEST_F(DeliveryTest, a_note_is_committed_and_is_no_file_there) {
  const format::PackedManifest note{.writer = kWriter, .files = {{"collections/x", "{}"}}};
  const std::string path = format::note_file_name(kWriter, 0);
  put(path, format::encode_manifest(note));
  const auto delivery = delivery_to(remote);
  ASSERT_TRUE(delivery->takes(path));
  ASSERT_TRUE(delivery->deliver(*local, path, {}).ok());
  ASSERT_TRUE(delivery_to(remote)->deliver(*local, path, {.again = true}).ok());
  EXPECT_THAT(committed(), ElementsAre(note));
  EXPECT_FALSE(store->stat(path).ok());
}

TEST_F(DeliveryTest, a_note_that_nobody_can_read_is_passed_over) {
  const std::string path = format::note_file_name(kWriter, 0);
  put(path, "");
  EXPECT_EQ(*delivery_to(remote)->deliver(*local, path, {}), 0u);
  EXPECT_THAT(committed(), IsEmpty());
  put(path, "\x08\x02");  // of a later release
  EXPECT_EQ(delivery_to(remote)->deliver(*local, path, {}).error().code, ErrorCode::unsupported);
}

// Whatever request fails, with or without being carried out, another try ends with one commit.
TEST_F(DeliveryTest, a_failure_at_any_request_is_made_good_by_another_try) {
  const Segment segment(3);
  for (const bool lose_answer : {false, true}) {
    for (const bool same_process : {false, true}) {
      bool finished = false;
      for (int calls = 0; !finished; ++calls) {
        store = storage::memory_storage();
        remote = std::make_shared<FaultyStorage>(store);
        put(kSegment, segment.data);
        put(kLog, segment.log);
        const auto first = delivery_to(remote);
        remote->fail_after(calls, lose_answer);
        finished = first->deliver(*local, kSegment, {}).ok();
        remote->fail_after(1'000'000, false);
        const auto next = same_process ? first : delivery_to(remote);
        ASSERT_TRUE(next->deliver(*local, kSegment, {.again = true}).ok()) << calls;
        ASSERT_THAT(committed(), SizeIs(1)) << calls;
        EXPECT_EQ(footer_of(kSegment), committed()[0].log);
      }
    }
  }
}

class SpooledTest : public DeliveryTest {
 protected:
  SpooledTest() { std::filesystem::remove_all(root); }
  ~SpooledTest() override { std::filesystem::remove_all(root); }
  std::shared_ptr<storage::Spool> open() {
    return *storage::Spool::open(remote, {.root = root,
                                          .max_bytes = 20'000,
                                          .drain_timeout = std::chrono::milliseconds(10'000),
                                          .retry = {.first = std::chrono::milliseconds(1),
                                                    .longest = std::chrono::milliseconds(5)},
                                          .delivery = delivery_to(remote)});
  }
  const std::string root = testing::TempDir() + "/smd_spooled_" + std::to_string(getpid());
};

TEST_F(SpooledTest, a_growing_file_is_sent_when_it_is_finished) {
  const Segment segment(2);
  const auto spool = open();
  EXPECT_EQ(spool->append("other/file").error().code, ErrorCode::unsupported);
  {
    auto data = spool->append(kSegment);
    auto log = spool->append(kLog);
    ASSERT_TRUE(data.ok() && log.ok());
    ASSERT_TRUE((*data)->append({{as_bytes(segment.data)}}).ok());
    ASSERT_TRUE((*log)->append({{as_bytes(segment.log)}}).ok());
    EXPECT_EQ(spool->pending().files, 0) << "it may grow";
    ASSERT_TRUE((*data)->finish().ok());
    ASSERT_TRUE((*log)->finish().ok());
  }
  ASSERT_TRUE(spool->close().ok());
  EXPECT_EQ(committed().at(0).watermark, 1);
  EXPECT_FALSE(store->stat(kLog).ok());
  EXPECT_TRUE(std::filesystem::is_empty(root + "/bucket"));
}

TEST_F(SpooledTest, what_is_taken_back_makes_room) {
  const auto spool = open();
  auto data = spool->append(kSegment);
  const std::string most(15'000, 'x');
  ASSERT_TRUE((*data)->append({{as_bytes(most)}}).ok());
  EXPECT_FALSE((*data)->append({{as_bytes(most)}}).ok()) << "the spool is full";
  EXPECT_EQ((*data)->size(), most.size());
  (*data)->truncate(0);
  EXPECT_TRUE((*data)->append({{as_bytes(most)}}).ok());
}

TEST_F(SpooledTest, a_file_that_still_grows_is_left_for_the_next_spool) {
  const Segment segment(3);
  auto spool = open();
  auto data = spool->append(kSegment);
  auto log = spool->append(kLog);
  ASSERT_TRUE((*data)->append({{as_bytes(segment.data)}}).ok());
  ASSERT_TRUE((*log)->append({{as_bytes(segment.log)}}).ok());
  ASSERT_TRUE(spool->close().ok());
  EXPECT_THAT(committed(), IsEmpty());
  const auto next = open();
  ASSERT_TRUE(next->close().ok());
  EXPECT_EQ(committed().at(0).watermark, 2);
}

TEST_F(SpooledTest, a_log_whose_segment_has_arrived_is_cleared_away) {
  {
    const auto spool = open();
    auto log = spool->append(kLog);
    ASSERT_TRUE((*log)->append({{as_bytes("x")}}).ok());
    ASSERT_TRUE(spool->close().ok());
  }
  ASSERT_TRUE(open()->close().ok());
  EXPECT_TRUE(std::filesystem::is_empty(root + "/bucket"));
}

TEST_F(SpooledTest, sending_goes_on_where_it_failed_and_nothing_is_committed_twice) {
  const Segment segment(3);
  const auto spool = open();
  remote->fail_after(5, true);
  {
    auto data = spool->append(kSegment);
    auto log = spool->append(kLog);
    ASSERT_TRUE((*data)->append({{as_bytes(segment.data)}}).ok());
    ASSERT_TRUE((*log)->append({{as_bytes(segment.log)}}).ok());
  }
  for (std::optional<Error> error; !error; error = spool->take_error()) std::this_thread::yield();
  remote->fail_after(1'000'000, false);
  ASSERT_TRUE(spool->close().ok());
  EXPECT_THAT(committed(), SizeIs(1));
}

TEST_F(SpooledTest, a_directory_in_use_is_not_synced) {
  const auto spool = open();
  put("unused", "");
  ASSERT_TRUE(spool->put("x", {}, Put::always, {}).ok());
  const auto refused = storage::sync_to(spool->directory(), *store);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::closed);
}

}  // namespace
}  // namespace smd::packed
