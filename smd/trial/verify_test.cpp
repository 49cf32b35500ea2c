#include "smd/trial/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "smd/storage/storage.h"
#include "tests/support/golden_folder.h"
#include "tests/support/recorded_run.h"
#include "tests/support/small_run.h"

namespace smd {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kIndex1 = "index/000000000/000000000001_worker_0.json";
constexpr const char* kEvents1 = "events/000000000001/000000000001_worker_0.tfevents";

class VerifyTest : public testing::Test {
 protected:
  VerifyReport verify(const VerifyOptions& options = {}) {
    auto report = verify_run(*storage, options);
    EXPECT_TRUE(report.ok());
    return report.ok() ? std::move(*report) : VerifyReport{};
  }
  static std::vector<RunFault> faults(const VerifyReport& report) {
    std::vector<RunFault> out;
    for (const RunProblem& problem : report.problems) out.push_back(problem.fault);
    return out;
  }
  uint64_t event_bytes() {
    uint64_t sum = 0;
    for (const auto& file : *storage->list("events", ""))
      sum += static_cast<uint64_t>(file.size_bytes);
    return sum;
  }
  void replace(const char* path, const std::string& from, const std::string& to) {
    std::string text = run.text(path);
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    run.put(path, text.replace(at, from.size(), to));
  }

  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  SmallRun run{storage};
};

TEST_F(VerifyTest, a_whole_run_has_no_problems) {
  run.finished();
  for (bool deep : {false, true}) {
    const auto report = verify({.deep = deep});
    EXPECT_THAT(report.problems, IsEmpty());
    EXPECT_EQ(report.damage(), 0u);
    EXPECT_EQ(report.steps, 3u);
    EXPECT_EQ(report.workers, 1u);
    EXPECT_EQ(report.index_files, 3u);
    EXPECT_EQ(report.event_files, 3u);
    EXPECT_EQ(report.tensors, 6u);
    EXPECT_EQ(report.payloads_checked, 0u);
    EXPECT_EQ(report.event_bytes, event_bytes());
    EXPECT_TRUE(report.ended);
  }
}

TEST_F(VerifyTest, a_run_without_end_is_worth_a_note_only) {
  run.collections();
  run.step(0);
  run.put("index/000000000/000000000001_worker_0.json.tmp", "{");
  run.put("unknown/file", "of another program");
  const auto report = verify();
  EXPECT_THAT(faults(report), ElementsAre(RunFault::end_marker_missing, RunFault::temporary_file));
  EXPECT_EQ(report.damage(), 0u);
  EXPECT_FALSE(report.ended);
}

TEST_F(VerifyTest, a_file_left_by_a_writer_is_damage_once_the_job_has_ended) {
  run.finished();
  run.put("events/000000000001/000000000001_worker_0.tfevents.tmp", "x");
  const auto report = verify();
  EXPECT_THAT(faults(report), ElementsAre(RunFault::temporary_file));
  EXPECT_EQ(report.damage(), 1u);
}

TEST_F(VerifyTest, an_index_that_is_no_index_is_found_and_rebuilt) {
  run.finished();
  for (const std::string& broken :
       {std::string(), std::string("{\"meta\""), std::string(100'000, '['),
        "{\"meta\": " + std::string(5'000, '{')}) {
    run.put(kIndex1, broken);
    const auto report = verify();
    EXPECT_THAT(faults(report), ElementsAre(RunFault::index_unreadable));
    const auto repaired = verify({.repair = true});
    ASSERT_EQ(repaired.repairs.size(), 1u);
    EXPECT_EQ(repaired.repairs[0].file, kIndex1);
    EXPECT_THAT(repaired.repairs[0].message, HasSubstr("2 tensors of TRAIN step 11"));
    EXPECT_THAT(repaired.repairs[0].message, HasSubstr("Shapes"));
    EXPECT_EQ(repaired.damage(), 0u);
    EXPECT_THAT(verify().problems, IsEmpty());
    const RecordedRun read(storage);
    EXPECT_EQ(read.index(1).mode_step, 11);
    EXPECT_EQ(read.index(1).mode, Mode::train);
    EXPECT_THAT(read.values<float>(1, "w"), testing::Each(1.0f));
  }
}

TEST_F(VerifyTest, an_event_file_without_index_is_found_and_its_index_rebuilt) {
  run.finished();
  const std::string before = run.text(kIndex1);
  ASSERT_TRUE(storage->remove(kIndex1).ok());
  EXPECT_THAT(faults(verify()), ElementsAre(RunFault::event_file_unindexed));
  EXPECT_EQ(verify({.repair = true}).damage(), 0u);
  EXPECT_THAT(verify().problems, IsEmpty());
  // Equal but for the shape, which stood in the index alone.
  EXPECT_EQ(run.text(kIndex1),
            before.substr(0, before.find("\"shape_payload\"")) + "\"shape_payload\": []}");
}

TEST_F(VerifyTest, the_newest_event_file_of_a_running_job_may_wait_for_its_index) {
  run.collections();
  for (Step step : {0, 1, 2}) run.step(step);
  ASSERT_TRUE(storage->remove("index/000000000/000000000002_worker_0.json").ok());
  EXPECT_EQ(verify().damage(), 0u);
  ASSERT_TRUE(storage->remove("index/000000000/000000000000_worker_0.json").ok());
  EXPECT_EQ(verify().damage(), 1u);
}

TEST_F(VerifyTest, a_torn_tail_is_left_out_of_a_rebuilt_index) {
  run.finished();
  const std::string whole = run.text(kEvents1);
  ASSERT_TRUE(storage->remove(kIndex1).ok());
  run.put(kEvents1, whole.substr(0, whole.size() - 20));
  const auto report = verify({.repair = true});
  ASSERT_EQ(report.repairs.size(), 1u);
  EXPECT_THAT(report.repairs[0].message, HasSubstr("1 tensor of TRAIN step 11"));
  EXPECT_THAT(report.repairs[0].message, HasSubstr("cut off"));
  EXPECT_EQ(report.damage(), 1u);  // what is lost stays lost
  EXPECT_THAT(RecordedRun(storage).names(1), ElementsAre("w"));
}

TEST_F(VerifyTest, a_truncated_event_file_is_found_and_its_index_left_alone) {
  run.finished();
  const std::string whole = run.text(kEvents1);
  const std::string index = run.text(kIndex1);
  run.put(kEvents1, whole.substr(0, whole.size() - 20));
  const auto report = verify({.repair = true});
  ASSERT_THAT(faults(report), ElementsAre(RunFault::record_outside));
  EXPECT_EQ(report.problems[0].file, kEvents1);
  EXPECT_GT(*report.problems[0].offset, 0u);
  EXPECT_THAT(report.problems[0].message, HasSubstr("'bias'"));
  EXPECT_THAT(report.repairs, IsEmpty());
  EXPECT_EQ(run.text(kIndex1), index);
  EXPECT_EQ(report.damage(), 1u);
}

TEST_F(VerifyTest, every_damaged_byte_of_a_frame_is_found) {
  run.finished();
  const std::string whole = run.text(kEvents1);
  const auto index = *format::parse_index(run.text(kIndex1), "");
  for (const auto& at : index.tensors) {
    for (uint64_t i :
         {uint64_t{0}, uint64_t{7}, uint64_t{8}, uint64_t{11}, at.length - 4, at.length - 1}) {
      std::string broken = whole;
      broken[at.offset + i] = static_cast<char>(broken[at.offset + i] ^ 1);
      run.put(kEvents1, broken);
      const auto report = verify({.repair = true});
      ASSERT_EQ(report.damage(), 1u) << i;
      EXPECT_EQ(report.problems[0].offset, at.offset);
      EXPECT_THAT(report.problems[0].message, HasSubstr(i < 12 ? "offset" : at.name));
      EXPECT_THAT(report.repairs, IsEmpty());
    }
  }
}

TEST_F(VerifyTest, a_changed_payload_is_found_where_the_index_has_checksums) {
  run.collections();
  run.step(1, "worker_0", true);
  run.end();
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_EQ(verify().payloads_checked, 2u);
  std::string events = run.text(kEvents1);
  events[events.size() - 60] ^= 1;  // an element of `bias`
  run.put(kEvents1, events);
  const auto report = verify({.repair = true});
  EXPECT_THAT(faults(report), ElementsAre(RunFault::payload_differs));
  EXPECT_THAT(report.problems[0].message, HasSubstr("'bias'"));
  EXPECT_THAT(report.repairs, IsEmpty());
}

TEST_F(VerifyTest, a_true_checksum_in_the_footer_is_compared) {
  run.finished();
  std::string events = run.text(kEvents1);
  const auto first = *format::parse_record(as_bytes(events), 0);
  const uint32_t footer = masked_crc32c(first.payload);
  std::memcpy(events.data() + first.size_bytes - 4, &footer, 4);
  run.put(kEvents1, events);
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_EQ(verify().payloads_checked, 1u);
  events[60] ^= 1;
  run.put(kEvents1, events);
  EXPECT_THAT(faults(verify()), ElementsAre(RunFault::payload_differs));
}

TEST_F(VerifyTest, an_index_with_wrong_entries_is_rebuilt_and_keeps_its_shapes) {
  run.finished();
  const std::string good = run.text(kIndex1);
  const std::pair<std::string, std::string> changes[] = {
      {"\"tensorname\": \"w\"", "\"tensorname\": \"v\""},
      {"\"start_idx\": 0", "\"start_idx\": 1"},
      {"\"start_idx\": 0", "\"start_idx\": 9223372036854775807"},
      {"\"length\": ", "\"length\": 9"},
      {"events/000000000001/", "../../etc/"},
      {"events/000000000001/", "/etc/"},
      {"events/000000000001/", "events/000000000009/"},
  };
  for (const auto& [from, to] : changes) {
    run.put(kIndex1, good);
    replace(kIndex1, from, to);
    EXPECT_GE(verify().damage(), 1u) << to;
    const auto report = verify({.repair = true});
    EXPECT_EQ(report.repairs.size(), 1u) << to;
    EXPECT_EQ(report.damage(), 0u) << to;
    EXPECT_EQ(run.text(kIndex1), good) << to;
  }
}

TEST_F(VerifyTest, a_record_with_a_name_that_no_index_can_hold_is_left_out) {
  run.finished();
  std::string events = run.text(kEvents1);
  const size_t at = events.find("bias");
  ASSERT_NE(at, std::string::npos);
  for (size_t i = at; i != std::string::npos; i = events.find("bias", i)) events[i] = '\xff';
  run.put(kEvents1, events);
  ASSERT_TRUE(storage->remove(kIndex1).ok());
  const auto report = verify({.repair = true});
  EXPECT_EQ(report.repairs.size(), 1u);
  EXPECT_EQ(report.damage(), 1u);
  EXPECT_THAT(RecordedRun(storage).names(1), ElementsAre("w"));
  EXPECT_THAT(verify({.repair = true}).repairs, IsEmpty());
}

TEST_F(VerifyTest, good_index_files_are_never_written) {
  run.finished();
  const auto before = run.text(kIndex1);
  run.put("index/000000000/000000000002_worker_0.json", "broken");
  const auto report = verify({.repair = true});
  EXPECT_EQ(report.repairs.size(), 1u);
  EXPECT_EQ(run.text(kIndex1), before);
}

TEST_F(VerifyTest, an_index_without_event_file_is_found) {
  run.finished();
  ASSERT_TRUE(storage->remove(kEvents1).ok());
  const auto report = verify({.repair = true});
  EXPECT_THAT(faults(report), ElementsAre(RunFault::event_file_missing));
  EXPECT_EQ(report.problems[0].file, kIndex1);
  EXPECT_EQ(report.damage(), 1u);
}

TEST_F(VerifyTest, a_step_of_shapes_alone_needs_no_event_file) {
  run.finished();
  format::IndexBuilder builder;
  builder.add_shape("x", "x", std::vector<int64_t>{1, 2});
  run.put("index/000000000/000000000003_worker_0.json",
          builder.finish({.step = 3, .mode = Mode::train, .mode_step = 3}, ""));
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(VerifyTest, only_a_deep_look_decodes_tensors) {
  run.finished();
  std::string events = run.text(kEvents1);
  // The extent in the shape of `w`: 6 becomes 7.
  const size_t at = events.find(std::string("\x08\x06\x12", 3));
  ASSERT_NE(at, std::string::npos);
  events[at + 1] = 7;
  run.put(kEvents1, events);
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_THAT(faults(verify({.deep = true})), ElementsAre(RunFault::tensor_unreadable));
}

TEST_F(VerifyTest, bytes_after_the_last_record_are_noted) {
  run.finished();
  run.put(kEvents1, run.text(kEvents1) + "rest");
  const auto report = verify();
  EXPECT_THAT(faults(report), ElementsAre(RunFault::bytes_unindexed));
  EXPECT_EQ(report.damage(), 0u);
}

TEST_F(VerifyTest, collections_that_are_missing_or_broken_are_damage) {
  run.finished();
  run.put("collections/000000000/worker_0_collections.json", "{");
  EXPECT_THAT(faults(verify()), Contains(RunFault::collections_unreadable));
  ASSERT_TRUE(storage->remove("collections/000000000/worker_0_collections.json").ok());
  const auto report = verify();
  EXPECT_THAT(faults(report), Contains(RunFault::collections_missing));
  EXPECT_EQ(report.damage(), 1u);
}

TEST_F(VerifyTest, workers_are_held_against_those_announced) {
  run.collections("worker_0", 2);
  run.step(0, "worker_0");
  EXPECT_EQ(verify().damage(), 0u);  // the other one may still come
  run.end();
  EXPECT_THAT(faults(verify()), ElementsAre(RunFault::workers_differ, RunFault::workers_differ));
  run.collections("worker_1", 2);
  run.step(0, "worker_1");
  EXPECT_THAT(verify().problems, IsEmpty());
  run.step(0, "worker_2");
  EXPECT_EQ(verify().damage(), 2u);  // it was not announced, and now there are three
}

TEST_F(VerifyTest, files_larger_than_anything_sensible_are_not_read) {
  const std::string root = testing::TempDir() + "/smd_verify_" + std::to_string(getpid());
  std::filesystem::remove_all(root);
  const auto local = storage::local_storage(root, {.everything = true});
  SmallRun on_disk(local);
  on_disk.finished();
  // Sparse files: a terabyte that takes no space. One has a header that claims all of it.
  constexpr uint64_t kHuge = uint64_t{1} << 40;
  std::filesystem::resize_file(root + "/" + kIndex1, kHuge);
  const auto header = format::record_header(kHuge - 16);
  const std::string events2 = "events/000000000002/000000000002_worker_0.tfevents";
  on_disk.put(events2, as_text(header));
  std::filesystem::resize_file(root + "/" + events2, kHuge);
  std::filesystem::resize_file(root + "/collections/000000000/worker_0_collections.json", kHuge);
  const auto report = verify_run(*local, {.repair = true, .deep = true});
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(faults(*report),
              testing::IsSupersetOf({RunFault::index_unreadable, RunFault::record_broken,
                                     RunFault::collections_unreadable}));
  std::filesystem::remove_all(root);
}

TEST_F(VerifyTest, links_out_of_the_run_are_reported_and_not_read) {
  const std::string folder = testing::TempDir() + "/smd_verify_links_" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  const std::string root = folder + "/run";
  SmallRun outside(storage::local_storage(folder + "/outside"));
  outside.finished();
  const auto local = storage::local_storage(root, {.everything = true});
  SmallRun inside(local);
  inside.finished();
  for (const char* path : {kIndex1, "events/000000000002/000000000002_worker_0.tfevents"}) {
    std::filesystem::remove(root + "/" + path);
    std::filesystem::create_symlink(folder + "/outside/" + path, root + "/" + path);
  }
  std::filesystem::create_directory_symlink("..", root + "/events/round");
  const auto report = verify_run(*local, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->tensors, 2u);
  const auto found = faults(*report);
  EXPECT_THAT(found, Contains(RunFault::index_unreadable));
  EXPECT_THAT(found, Contains(RunFault::event_file_outside));
  EXPECT_THAT(found, Contains(RunFault::link));
  for (const RunProblem& problem : report->problems) {
    if (problem.fault != RunFault::event_file_unindexed) {
      EXPECT_THAT(problem.message,
                  testing::AnyOf(HasSubstr("not followed"), HasSubstr("not a file")));
    }
  }
  std::filesystem::remove_all(folder);
}

TEST_F(VerifyTest, progress_ends_at_the_size_of_all_event_files) {
  run.finished();
  uint64_t last = 0;
  uint64_t total = 0;
  (void)verify({.progress = [&](uint64_t done, uint64_t of) {
    EXPECT_GE(done, last);
    last = done;
    total = of;
  }});
  EXPECT_EQ(last, event_bytes());
  EXPECT_EQ(total, last);
}

TEST_F(VerifyTest, no_more_problems_are_listed_than_people_can_read) {
  run.collections();
  std::string tensors;
  for (size_t i = 0; i < kMostProblems + 5; ++i) {
    tensors += i == 0 ? "" : ", ";
    tensors += R"({"tensorname": "x", "start_idx": 99999, "length": 99})";
  }
  run.step(0);
  run.end();
  run.put(
      "index/000000000/000000000000_worker_0.json",
      R"({"meta": {"mode": "TRAIN", "mode_step": 0, "event_file_name": "events/000000000000/000000000000_worker_0.tfevents"}, "tensor_payload": [)" +
          tensors + "]}");
  const auto report = verify();
  EXPECT_EQ(report.problems.size(), kMostProblems);
  EXPECT_EQ(report.problems_not_listed, 5u);
  EXPECT_EQ(report.damage(), kMostProblems + 5);
}

class VerifyGolden : public testing::TestWithParam<const char*> {};

// Written by the released package of the original.
TEST_P(VerifyGolden, has_no_damage) {
  const auto storage =
      storage::local_storage(golden_folder() + "/" + GetParam(), {.everything = true});
  const auto report = verify_run(*storage, {.deep = true});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->damage(), 0u);
  EXPECT_GT(report->index_files, 0u);
  for (const auto& problem : report->problems) {
    if (problem.is_damage) ADD_FAILURE() << problem.file << ": " << problem.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Runs, VerifyGolden,
                         testing::Values("types", "modes", "workers", "running", "devices",
                                         "shapes", "collections", "hook"));

TEST(VerifyPackedGolden, packed_runs_of_an_earlier_day_are_well) {
  for (const char* name : {"hook", "types", "workers"}) {
    const auto run = storage::local_storage(golden_folder() + "/packed/" + name);
    const auto report = verify_run(*run, {.deep = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(report->layout, RunLayout::packed);
    EXPECT_TRUE(report->problems.empty()) << report->problems.front().message;
    EXPECT_EQ(report->payloads_checked, report->tensors);
    EXPECT_GT(report->tensors, 0u);
  }
}

}  // namespace
}  // namespace smd
