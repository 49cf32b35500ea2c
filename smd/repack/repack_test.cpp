#include "smd/repack/repack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/repack/exact_match.h"
#include "smd/trial/diff.h"
#include "smd/trial/trial.h"
#include "tests/support/rich_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

RunLayout other(RunLayout layout) {
  return layout == RunLayout::packed ? RunLayout::original : RunLayout::packed;
}

std::unique_ptr<Trial> open(const std::shared_ptr<storage::Storage>& storage) {
  auto trial = Trial::open(storage, {.end_delay_secs = 0});
  EXPECT_TRUE(trial.ok());
  EXPECT_TRUE((*trial)->refresh().ok());
  return std::move(*trial);
}

std::string mismatch(const std::shared_ptr<storage::Storage>& a,
                     const std::shared_ptr<storage::Storage>& b) {
  const auto found = first_mismatch(*open(a), *open(b), [] {});
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? found->value_or("") : "";
}

class Repack : public testing::TestWithParam<RunLayout> {
 protected:
  const std::shared_ptr<storage::Storage> from = storage::memory_storage();
  const std::shared_ptr<storage::Storage> to = storage::memory_storage();
  const RichRun recorded{from, GetParam() == RunLayout::packed};

  Result<RepackReport> repack(RepackOptions options = {}) const {
    options.layout = other(GetParam());
    return repack_run(from, to, options);
  }
};

TEST_P(Repack, everything_arrives_bit_for_bit) {
  recorded.record();
  recorded.end();
  uint64_t done = 0;
  uint64_t total = 0;
  const auto report = repack({.progress = [&](uint64_t now, uint64_t of) {
    EXPECT_EQ(now, done + 1);
    done = now;
    total = of;
  }});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(done, total);
  EXPECT_EQ(report->steps, 4u);
  EXPECT_EQ(report->workers, 2u);
  EXPECT_EQ(report->values, 7u * 31);
  EXPECT_EQ(report->reductions, 7u * 3);
  EXPECT_EQ(report->shapes, 7u);
  EXPECT_TRUE(report->ended);
  EXPECT_TRUE(report->verified);
  EXPECT_EQ(mismatch(from, to), "");
  // An independent judge.
  const auto diff = diff_trials(*open(from), *open(to), {});
  ASSERT_TRUE(diff.ok()) << diff.error().message;
  EXPECT_TRUE(diff->equal());
  EXPECT_EQ(diff->compared.values, 7 * 31);
  // The layouts are what was asked for, and nothing else was left.
  EXPECT_EQ(to->list("v2", "")->empty(), GetParam() == RunLayout::packed);
  EXPECT_EQ(to->list("index", "")->empty(), GetParam() == RunLayout::original);
  EXPECT_THAT(*to->list(".smdebug", ""), IsEmpty());
  for (const std::string& path : recorded.files("collections")) {
    EXPECT_EQ(as_text(*storage::read_all(*to, path)), recorded.text(path));
  }
  EXPECT_TRUE(to->stat(format::kEndMarker).ok());
}

TEST_P(Repack, there_and_back_is_the_same_run) {
  recorded.record();
  ASSERT_TRUE(repack().ok());
  const auto back = storage::memory_storage();
  ASSERT_TRUE(repack_run(to, back, {.layout = GetParam()}).ok());
  EXPECT_EQ(mismatch(from, back), "");
}

TEST_P(Repack, a_run_that_has_not_ended_gives_one_that_has_not) {
  recorded.record();
  const auto report = repack();
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->ended);
  EXPECT_FALSE(to->stat(format::kEndMarker).ok());
}

TEST_P(Repack, times_of_records_arrive_and_numbers_share_one) {
  recorded.record();
  ASSERT_TRUE(repack().ok());
  const auto copy = open(to);
  EXPECT_EQ(copy->value("big", {.step = 200})->wall_secs, 1002);
  EXPECT_EQ(copy->value("scalar/float32", {.step = 200})->wall_secs, 1002);
}

TEST_P(Repack, a_destination_that_holds_something_is_refused) {
  recorded.record();
  ASSERT_TRUE(to->put("notes.txt", {}, storage::Put::always, {}).ok());
  const auto report = repack();
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.error().message, HasSubstr("must be empty, but holds 'notes.txt'"));
  EXPECT_EQ(to->list("", "")->size(), 1u);
}

TEST_P(Repack, damage_is_not_copied_and_the_rest_is_known_to_be_a_part) {
  recorded.record();
  recorded.end();
  const auto files = recorded.files(GetParam() == RunLayout::packed ? "v2/seg" : "events");
  std::string bytes = recorded.text(files.back());
  char& middle = bytes[bytes.size() / 2];  // of a large tensor
  middle = static_cast<char>(middle ^ 1);
  recorded.put(files.back(), bytes);
  const auto report = repack();
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::corrupt) << report.error().message;
  EXPECT_FALSE(to->stat(format::kEndMarker).ok());
  ASSERT_TRUE(interrupted_repack(*to));
  EXPECT_THAT(*interrupted_repack(*to), HasSubstr("a part of a copy of '"));
  const auto again = repack();
  ASSERT_FALSE(again.ok());
  EXPECT_THAT(again.error().message, HasSubstr("was interrupted"));
}

TEST_P(Repack, the_comparison_finds_a_single_bit) {
  recorded.record();
  const auto twin = storage::memory_storage();
  const RichRun other_run(twin, GetParam() == RunLayout::packed);
  other_run.collections();
  for (const char* worker : RichRun::kWorkers) {
    const auto sink = other_run.sink(worker);
    for (Step i = 0; i < 3; ++i) RichRun::step(*sink, i, i == 2 ? 1.0000001f : 1);
    ASSERT_TRUE(sink->close().ok());
  }
  EXPECT_THAT(mismatch(from, twin), HasSubstr("' at step 200 of worker "));
  EXPECT_THAT(mismatch(from, twin), HasSubstr("has other elements"));
}

INSTANTIATE_TEST_SUITE_P(layouts, Repack, testing::Values(RunLayout::original, RunLayout::packed),
                         [](const auto& layout) {
                           return layout.param == RunLayout::packed ? "from_packed"
                                                                    : "from_original";
                         });

TEST(RepackIncarnations, what_a_reader_sees_is_what_is_copied) {
  const auto from = storage::memory_storage();
  const auto to = storage::memory_storage();
  const RichRun recorded(from, true);
  recorded.collections();
  for (float life : {1.0f, 2.0f}) {
    const auto sink = recorded.sink(RichRun::kWorkers[0]);
    for (Step i = life == 1 ? 0 : 1; i < 3; ++i) RichRun::step(*sink, i, life);
    if (life == 1) continue;  // it was killed
    ASSERT_TRUE(sink->close().ok());
  }
  const auto report = repack_run(from, to, {.layout = RunLayout::packed});
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto copy = open(to);
  EXPECT_THAT(copy->snapshot()->steps(Mode::global, true), ElementsAre(0, 100, 200));
  const auto big_at = [&](Step step) {
    return load_le<float>(copy->value("big", {.step = step})->elements.data());
  };
  EXPECT_EQ(big_at(0), 1);
  EXPECT_EQ(big_at(100), 2);
  EXPECT_EQ(to->list("v2/log", "")->size(), 1u);
}

}  // namespace
}  // namespace smd
