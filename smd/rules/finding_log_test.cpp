#include "smd/rules/finding_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/faulty_storage.h"
#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

class FindingLogTest : public testing::Test {
 protected:
  std::vector<Json> lines(storage::Storage& storage, const std::string& path) {
    const auto bytes = storage::read_all(storage, path);
    EXPECT_TRUE(bytes.ok()) << bytes.error().message;
    std::vector<Json> out;
    std::string_view rest = bytes.ok() ? as_text(*bytes) : std::string_view();
    EXPECT_TRUE(rest.empty() || rest.ends_with('\n'));
    while (!rest.empty()) {
      const size_t end = rest.find('\n');
      const auto record = parse_json(std::string(rest.substr(0, end)), "");
      EXPECT_TRUE(record.ok()) << rest;
      if (record.ok()) out.push_back(*record);
      rest.remove_prefix(std::min(end, rest.size() - 1) + 1);
    }
    return out;
  }
  std::vector<std::string> kinds(const std::vector<Json>& records) {
    std::vector<std::string> out;
    for (const Json& record : records) out.push_back(record["kind"]);
    return out;
  }
  // Evaluates the run, with a log of its hits; `after_each` is called after each of them.
  void watch(storage::Storage& files, FindingLog& log, const std::function<void()>& after_each) {
    RuleCase run("x@0=[1]; x@1=[nan]; x@2=[inf]; gradient/a@1=[0]");
    Runner runner({.on_hit = [&](const Evaluation& evaluation, const Hit& hit) {
      EXPECT_TRUE(log.add(evaluation, hit).ok());
      after_each();
    }});
    auto left_out = add_rules({.rules = {"ExplodingTensor", "VanishingGradient"}}, runner);
    ASSERT_TRUE(left_out.ok());
    TrialFeed feed(run.trial());
    ASSERT_TRUE(feed.advance(runner).ok());
    runner.finish();
    EXPECT_TRUE(log.finish(conclude(files.name(), runner, feed, *left_out)).ok());
  }

  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1700000000.25);
};

TEST_F(FindingLogTest, hits_can_be_read_as_they_come_and_findings_at_the_end) {
  const auto storage = storage::memory_storage();
  FindingLog log(storage, {.writer = "watch", .clock = clock});
  EXPECT_THAT(log.path(), StartsWith("findings/watch_"));
  EXPECT_TRUE(log.path().ends_with("_1700000000250.jsonl"));
  EXPECT_TRUE(storage->list("", "")->empty());
  size_t hits = 0;
  watch(*storage, log, [&] { EXPECT_EQ(lines(*storage, log.path()).size(), ++hits + 1); });
  const auto records = lines(*storage, log.path());
  EXPECT_THAT(kinds(records),
              ElementsAre("begin", "hit", "hit", "hit", "finding", "finding", "end"));
  EXPECT_EQ(records[0]["version"], 1);
  EXPECT_EQ(records[0]["writer"], "watch");
  EXPECT_EQ(records[0]["time"], 1700000000.25);
  EXPECT_EQ(records[1]["rule"], "ExplodingTensor");
  EXPECT_EQ(records[1]["severity"], "error");
  EXPECT_EQ(records[1]["step"], 1);
  EXPECT_EQ(records[4]["rank"], 1);
  EXPECT_EQ(records[4]["rule"], "ExplodingTensor");
  EXPECT_EQ(records[4]["hits"], 2);
  EXPECT_EQ(records[5]["explained_by"], "ExplodingTensor");
  EXPECT_EQ(records[6]["steps"], 3);
}

TEST_F(FindingLogTest, where_files_cannot_grow_the_whole_file_appears_anew) {
  const auto storage = std::make_shared<storage::FaultyStorage>();
  FindingLog log(storage, {.writer = "watch", .clock = clock});
  watch(*storage, log, [] {});
  EXPECT_EQ(lines(*storage, log.path()).size(), 7u);
  EXPECT_EQ(storage->arrived().size(), 4u);
}

TEST_F(FindingLogTest, a_failure_costs_its_line_alone) {
  const auto storage = std::make_shared<storage::FaultyStorage>();
  RuleCase run("x@0=[nan]; x@1=[nan]; x@2=[nan]");
  FindingLog log(storage, {.writer = "watch", .clock = clock});
  std::vector<bool> saved;
  Runner runner({.on_hit = [&](const Evaluation& evaluation, const Hit& hit) {
    storage->fail(hit.step.step == 1);
    saved.push_back(log.add(evaluation, hit).ok());
  }});
  ASSERT_TRUE(add_rules({.rules = {"ExplodingTensor"}}, runner).ok());
  TrialFeed feed(run.trial());
  ASSERT_TRUE(feed.advance(runner).ok());
  EXPECT_THAT(saved, ElementsAre(true, false, true));
  EXPECT_EQ(lines(*storage, log.path()).size(), 3u);
}

TEST_F(FindingLogTest, a_diagnosis_replaces_the_one_before) {
  RuleCase run("x@0=[nan]");
  const auto diagnosis = diagnose(run.trial(), {.rules = {"ExplodingTensor", "Overfit"}});
  ASSERT_TRUE(diagnosis.ok());
  ASSERT_TRUE(save_diagnosis(*run.storage, *diagnosis, *clock).ok());
  clock->advance(5);
  ASSERT_TRUE(save_diagnosis(*run.storage, *diagnosis, *clock).ok());
  const auto records = lines(*run.storage, "findings/diagnose.jsonl");
  EXPECT_THAT(kinds(records), ElementsAre("begin", "finding", "end"));
  EXPECT_EQ(records[0]["time"], 1700000005.25);
  EXPECT_EQ(records[2]["not_evaluated"].size(), 1u);
  // A reader of runs does not mind.
  EXPECT_EQ(diagnose(run.trial(), {})->step_count, 1u);
}

}  // namespace
}  // namespace smd::rules
