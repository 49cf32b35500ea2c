// What verify_run() finds in packed runs, and what it repairs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/trial/trial.h"
#include "smd/trial/verify.h"
#include "tests/support/rich_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PackedVerify : public testing::Test {
 protected:
  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  const RichRun recorded{storage, true};

  void finished() const {
    recorded.record();
    recorded.end();
  }
  VerifyReport verify(const VerifyOptions& options = {}) const {
    const auto report = verify_run(*storage, options);
    EXPECT_TRUE(report.ok()) << report.error().message;
    return report.ok() ? *report : VerifyReport{};
  }
  // The faults that are damage, and those that are only told of.
  static std::vector<std::string> faults(const VerifyReport& report, bool damage) {
    std::vector<std::string> out;
    for (const RunProblem& problem : report.problems) {
      if (problem.is_damage == damage && !problem.mended) out.emplace_back(name_of(problem.fault));
    }
    return out;
  }
  std::vector<std::string> damage() const { return faults(verify(), true); }

  std::string log() const { return recorded.files("v2/log").front(); }
  // Of the same writer.
  std::string segment() const {
    const auto name = format::parse_packed_file_name(log());
    return format::segment_file_name(name->writer, name->sequence);
  }
  void flip(const std::string& path, size_t at) const {
    std::string bytes = recorded.text(path);
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    recorded.put(path, bytes);
  }
  void cut(const std::string& path, size_t bytes) const {
    const std::string whole = recorded.text(path);
    recorded.put(path, whole.substr(0, whole.size() - bytes));
  }
  // A run whose only worker was killed in the middle of its third step.
  void killed() const {
    recorded.put(format::collections_file_name("worker_0"),
                 R"({"collections": {}, "_meta": {"num_workers": 1}})");
    auto sink = recorded.sink("worker_0");
    RichRun::step(*sink, 0);
    RichRun::step(*sink, 1);
    const std::string log_text = recorded.text(log());
    const std::string segment_text = recorded.text(segment());
    RichRun::step(*sink, 2);
    const std::string torn = recorded.text(segment()).substr(0, segment_text.size() + 1000);
    const std::string log_path = log();
    const std::string segment_path = segment();
    sink.reset();
    recorded.put(log_path, log_text);
    recorded.put(segment_path, torn);
  }
  std::vector<Step> steps() const {
    const auto trial = Trial::open(storage, {.check = true, .end_delay_secs = 0});
    return (*trial)->snapshot()->steps(Mode::global, true);
  }
  const VerifyOptions repair{.repair = true};
  const VerifyOptions repair_stopped{.repair = true, .stopped = true};
};

TEST_F(PackedVerify, a_whole_run_is_well_and_everything_was_compared) {
  finished();
  const auto report = verify({.deep = true});
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_EQ(report.layout, RunLayout::packed);
  EXPECT_EQ(report.steps, 4u);
  EXPECT_EQ(report.workers, 2u);
  EXPECT_EQ(report.index_files, 2u);
  EXPECT_EQ(report.event_files, 2u);
  EXPECT_EQ(report.tensors, 7u * 34);
  EXPECT_EQ(report.payloads_checked, report.tensors);
  EXPECT_EQ(verify(repair).repairs.size(), 0u);
}

TEST_F(PackedVerify, every_flipped_byte_is_found) {
  recorded.put(format::collections_file_name("worker_0"),
               R"({"collections": {}, "_meta": {"num_workers": 1}})");
  const auto sink = recorded.sink("worker_0");
  ASSERT_TRUE(sink->begin_step({.step = 0}).ok());
  const float values[] = {1, 2, 3};
  ASSERT_TRUE(
      sink->tensor({.name = "w", .shape = Shape{3}}, std::as_bytes(std::span(values))).ok());
  ASSERT_TRUE(
      sink->tensor({.name = "n", .shape = Shape{}}, std::as_bytes(std::span(values, 1))).ok());
  ASSERT_TRUE(sink->end_step().ok());
  ASSERT_TRUE(sink->close().ok());
  recorded.end();
  ASSERT_THAT(verify().problems, IsEmpty());
  const std::string in_log = recorded.text(log());
  for (size_t at = 0; at < in_log.size(); ++at) {
    flip(log(), at);
    EXPECT_THAT(damage(), testing::Not(IsEmpty())) << "log at " << at;
    recorded.put(log(), in_log);
  }
  const std::string in_segment = recorded.text(segment());
  size_t silent = 0;
  for (size_t at = 0; at < in_segment.size(); ++at) {
    flip(segment(), at);
    const auto report = verify_run(*storage, {});
    // Footers of a later version are refused as a whole.
    if (report.ok() && report->damage() == 0) ++silent;
    recorded.put(segment(), in_segment);
  }
  // Filling and what a block says besides its numbers and entries; nobody reads it.
  EXPECT_LT(silent, 260u);
}

TEST_F(PackedVerify, damaged_values_are_told_by_place) {
  finished();
  const std::string bytes = recorded.text(segment());
  flip(segment(), bytes.size() / 2);  // in the large tensor of a step
  const auto report = verify();
  ASSERT_THAT(faults(report, true), ElementsAre("payload_differs"));
  EXPECT_EQ(report.problems[0].file, segment());
  EXPECT_TRUE(report.problems[0].offset.has_value());
  EXPECT_THAT(faults(verify(repair), true), ElementsAre("payload_differs"));
}

TEST_F(PackedVerify, a_lost_log_is_rebuilt_byte_for_byte) {
  finished();
  const std::string path = log();
  const std::string before = recorded.text(path);
  ASSERT_TRUE(storage->remove(path).ok());
  EXPECT_THAT(damage(), ElementsAre("log_missing"));
  const auto report = verify(repair);
  EXPECT_EQ(report.damage(), 0u);
  ASSERT_EQ(report.repairs.size(), 1u);
  EXPECT_EQ(report.repairs[0].file, path);
  EXPECT_EQ(recorded.text(path), before);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(PackedVerify, a_broken_log_is_rebuilt_without_a_footer_too) {
  finished();
  const std::string path = log();
  const std::string before = recorded.text(path);
  const std::string whole = recorded.text(segment());
  flip(path, before.size() / 2);
  cut(segment(), 1);
  EXPECT_THAT(damage(), testing::UnorderedElementsAre("log_broken", "segment_torn"));
  EXPECT_EQ(verify(repair).damage(), 0u);
  EXPECT_EQ(recorded.text(path), before);
  EXPECT_EQ(recorded.text(segment()), whole);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(PackedVerify, what_a_killed_writer_left_is_told_and_repaired_only_when_it_is_gone) {
  killed();
  EXPECT_THAT(damage(), IsEmpty());
  EXPECT_THAT(
      faults(verify(), false),
      testing::UnorderedElementsAre("segment_torn", "segment_unfinished", "end_marker_missing"));
  const std::string before = recorded.text(segment());
  const auto careful = verify(repair);
  EXPECT_THAT(careful.repairs, IsEmpty());
  EXPECT_EQ(recorded.text(segment()), before);
  EXPECT_THAT(careful.problems[1].message, HasSubstr("--stopped"));
  const auto report = verify(repair_stopped);
  EXPECT_EQ(report.repairs.size(), 2u);
  EXPECT_THAT(report.repairs[0].message, HasSubstr("1000 bytes after the last whole step"));
  EXPECT_THAT(faults(verify(), false), ElementsAre("end_marker_missing"));
  EXPECT_THAT(steps(), ElementsAre(0, 100));
}

TEST_F(PackedVerify, a_worker_that_came_back_shows_that_its_first_life_is_over) {
  killed();
  const std::string first = segment();
  const auto sink = recorded.sink("worker_0");
  RichRun::step(*sink, 2);
  ASSERT_TRUE(sink->close().ok());
  const auto report = verify(repair);
  ASSERT_EQ(report.repairs.size(), 2u);
  EXPECT_EQ(report.repairs[0].file, first);
  EXPECT_THAT(steps(), ElementsAre(0, 100, 200));
  EXPECT_THAT(faults(verify(), false), ElementsAre("end_marker_missing"));
}

TEST_F(PackedVerify, steps_that_the_log_does_not_know_yet_are_brought_back) {
  killed();
  auto sink = recorded.sink("worker_0");
  RichRun::step(*sink, 5);
  const std::string path = recorded.files("v2/log").back();
  const std::string one = recorded.text(path);
  RichRun::step(*sink, 6);
  sink.reset();
  recorded.put(path, one);
  recorded.end();
  EXPECT_THAT(damage(), testing::Contains("log_incomplete"));
  EXPECT_EQ(verify(repair).damage(), 0u);
  EXPECT_THAT(steps(), ElementsAre(0, 100, 500, 600));
}

TEST_F(PackedVerify, a_segment_that_was_cut_is_damage_for_good) {
  finished();
  const std::string before = recorded.text(log());
  cut(segment(), recorded.text(segment()).size() / 2);
  EXPECT_THAT(damage(), testing::Contains("record_outside"));
  EXPECT_THAT(faults(verify(repair), true), testing::Contains("record_outside"));
  EXPECT_EQ(recorded.text(log()), before);
}

TEST_F(PackedVerify, a_lost_segment_is_damage) {
  finished();
  ASSERT_TRUE(storage->remove(segment()).ok());
  EXPECT_THAT(damage(), testing::UnorderedElementsAre("segment_missing", "workers_differ"));
}

TEST_F(PackedVerify, the_log_of_another_segment_is_told) {
  finished();
  recorded.put(log(), recorded.text(recorded.files("v2/log").back()));
  EXPECT_THAT(damage(), testing::Contains("name_differs"));
}

TEST_F(PackedVerify, a_run_of_a_later_release_is_refused) {
  finished();
  std::string text;
  format::append_log_entry(text, format::PackedHeader{.version = 9});
  recorded.put(log(), text);
  const auto report = verify_run(*storage, {});
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("a later release"));
}

TEST_F(PackedVerify, names_that_readers_pass_over_are_told) {
  finished();
  recorded.put("v2/log/worker_0.xyz/00000000", "x");
  const std::string path = segment();  // v2/seg/<two digits of the name's hash>/<name>
  recorded.put((path[7] == '0' ? "v2/seg/1" : "v2/seg/0") + path.substr(8), "x");
  EXPECT_THAT(faults(verify(), false), ElementsAre("file_name", "file_name"));
}

TEST_F(PackedVerify, a_part_of_a_copy_is_damage) {
  recorded.record();
  recorded.put(format::kRepackMark, "{}");
  EXPECT_THAT(damage(), ElementsAre("copy_incomplete"));
}

}  // namespace
}  // namespace smd
