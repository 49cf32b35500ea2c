#include "smd/trial/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <thread>

#include "smd/base/crc32c.h"
#include "smd/format/event.h"
#include "smd/format/file_name.h"
#include "smd/format/index.h"
#include "smd/format/tensor_record.h"
#include "smd/format/tfrecord.h"
#include "tests/support/faulty_storage.h"
#include "tests/support/sanitized.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Keeps what was logged.
class Messages final : public Log {
 public:
  void write(LogLevel, std::string_view message) override { texts.emplace_back(message); }
  std::vector<std::string> texts;
};

struct Item {
  std::string name;
  std::vector<float> values;
  Shape shape;
};

// Writes runs of the original's layout piece by piece, in whatever order a test wants.
class TrialTest : public testing::Test {
 protected:
  void put(std::string_view path, std::string_view content) {
    ASSERT_TRUE(storage->put(path, as_bytes(content), storage::Put::always, {}).ok());
  }
  void collections(int worker, int num_workers = 1) {
    CollectionSet set;
    ASSERT_TRUE(set.set_num_workers(num_workers).ok());
    put(format::collections_file_name("worker_" + std::to_string(worker)), set.to_json());
  }
  void end() { put(format::kEndMarker, ""); }

  void step(Step step, const std::vector<Item>& items, int worker = 0, Mode mode = Mode::train) {
    const StepInfo info{.step = step, .mode = mode, .mode_step = step};
    const std::string name = "worker_" + std::to_string(worker);
    std::string events;
    format::IndexBuilder index;
    for (const Item& item : items) {
      const size_t start = events.size();
      format::append_record(events, info, {.name = item.name, .shape = item.shape, .wall_secs = 5},
                            std::as_bytes(std::span(item.values)));
      const ByteSpan record = as_bytes(events).subspan(start);
      index.add_tensor(item.name, start, record.size(),
                       crc32c(record.subspan(12, record.size() - 16)));
    }
    put(format::event_file_name(step, name), events);
    put(format::index_file_name(step, name),
        index.finish(info, format::event_file_name(step, name)));
  }

  std::unique_ptr<Trial> open(TrialOptions options = {}) {
    options.log = messages;
    auto trial = Trial::open(storage, options);
    EXPECT_TRUE(trial.ok()) << trial.error().message;
    return std::move(*trial);
  }
  static std::vector<float> floats(const TensorValue& value) {
    const auto* first = reinterpret_cast<const float*>(value.elements.data());
    return {first, first + value.elements.size() / sizeof(float)};
  }

  std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  std::shared_ptr<Messages> messages = std::make_shared<Messages>();
};

TEST_F(TrialTest, gives_back_what_was_written) {
  collections(0);
  step(0, {{"w", {1, 2, 3, 4}, {2, 2}}, {"b", {5}, {}}});
  const auto trial = open();
  const auto value = trial->value("w", {.step = 0});
  ASSERT_TRUE(value.ok()) << value.error().message;
  EXPECT_EQ(value->shape, (Shape{2, 2}));
  EXPECT_THAT(floats(*value), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(value->wall_secs, 5);
  EXPECT_THAT(floats(*trial->value("b", {.step = 0, .mode = Mode::train})), ElementsAre(5));
}

TEST_F(TrialTest, large_tensors_are_aligned_and_whole) {
  collections(0);
  std::vector<float> many(100'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<float>(i);
  for (size_t shift = 0; shift < 5; ++shift) {
    const std::string name = "name" + std::string(shift * 7, 'x');
    step(static_cast<Step>(shift), {{"small" + name, {1}, {}}, {name, many, {100'000}}});
  }
  const auto trial = open({.check = true});
  for (size_t shift = 0; shift < 5; ++shift) {
    const std::string name = "name" + std::string(shift * 7, 'x');
    const auto value = trial->value(name, {.step = static_cast<Step>(shift)});
    ASSERT_TRUE(value.ok()) << value.error().message;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(value->elements.data()) % 64, 0u);
    EXPECT_EQ(floats(*value), many);
  }
}

TEST_F(TrialTest, tensors_are_described_without_their_elements) {
  collections(0);
  step(0, {{"small", {1, 2}, {2}}, {"large", std::vector<float>(10'000), {100, 100}}});
  const auto trial = open();
  const auto now = trial->snapshot();
  const auto describe = [&](std::string_view name) {
    const auto at = now->find(now->row(0), *now->find_tensor(name), Slot::value(), {});
    return trial->describe(*now, *at);
  };
  EXPECT_EQ(describe("small")->shape, (Shape{2}));
  EXPECT_EQ(describe("large")->shape, (Shape{100, 100}));
  EXPECT_EQ(describe("large")->dtype, DType::float32);
  EXPECT_EQ(describe("large")->wall_secs, 5);
  ASSERT_TRUE(storage->remove(format::event_file_name(0, "worker_0")).ok());
  const auto again = open();
  const auto at = again->snapshot()->find(again->snapshot()->row(0), 0, Slot::value(), {});
  EXPECT_EQ(again->describe(*again->snapshot(), *at).error().code, ErrorCode::not_found);
}

TEST_F(TrialTest, reductions_are_stored_or_computed) {
  collections(0);
  step(0, {{"smdebug/reductions/mean/w", {42}, {1}}, {"w", {1, 2, 3}, {3}}});
  const auto trial = open();
  EXPECT_EQ(trial->reduction("w", "mean", {.step = 0})->to_double(), 42) << "as stored";
  EXPECT_EQ(trial->reduction("w", "max", {.step = 0})->to_double(), 3) << "computed";
  EXPECT_EQ(trial->reduction("w", "l1_norm", {.step = 0})->to_double(), 6);
  const auto unknown = trial->reduction("w", "maen", {.step = 0});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("mean"));
}

TEST_F(TrialTest, a_series_mixes_stored_and_computed_numbers) {
  collections(0);
  step(0, {{"smdebug/reductions/mean/w", {42}, {1}}});
  step(1, {{"w", {1, 2, 3}, {3}}});
  step(2, {{"other", {1}, {}}});
  const auto trial = open();
  const auto series = trial->series("w", {.reduction = "mean"});
  ASSERT_TRUE(series.ok()) << series.error().message;
  EXPECT_THAT(series->steps, ElementsAre(0, 1));
  EXPECT_THAT(series->values, ElementsAre(42, 2));
  const auto scalars = trial->series("other", {});
  EXPECT_THAT(scalars->steps, ElementsAre(2));
  EXPECT_THAT(scalars->values, ElementsAre(1));
}

TEST_F(TrialTest, what_is_absent_is_said) {
  collections(0);
  step(0, {{"weight", {1}, {}}});
  const auto trial = open();
  EXPECT_THAT(trial->value("wieght", {.step = 0}).error().message, HasSubstr("'weight'"));
  EXPECT_THAT(trial->value("weight", {.step = 3}).error().message, HasSubstr("Step 3"));
  EXPECT_THAT(trial->value("weight", {.step = 0, .worker = "worker_7"}).error().message,
              HasSubstr("'worker_7'"));
  EXPECT_EQ(trial->value("weight", {.step = 3}).error().code, ErrorCode::not_found);
}

TEST_F(TrialTest, refreshing_reads_what_is_new_and_snapshots_stay) {
  collections(0);
  step(0, {{"w", {1}, {}}});
  const auto trial = open();
  const auto before = trial->snapshot();
  step(1, {{"w", {2}, {}}, {"new", {3}, {}}});
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_THAT(before->steps(Mode::global, false), ElementsAre(0));
  EXPECT_EQ(before->find_tensor("new"), std::nullopt);
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, false), ElementsAre(0, 1));
  EXPECT_THAT(floats(*trial->value("new", {.step = 1})), ElementsAre(3));
}

TEST_F(TrialTest, the_end_is_seen_in_a_refresh_after_opening) {
  collections(0);
  step(0, {{"w", {1}, {}}});
  end();
  const auto trial = open({.end_delay_secs = 0});
  EXPECT_FALSE(trial->snapshot()->loaded_all());
  EXPECT_TRUE(trial->has_ended());
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_TRUE(trial->snapshot()->loaded_all());
  step(1, {{"w", {1}, {}}});
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(0))
      << "nothing comes later";
}

TEST_F(TrialTest, an_end_during_a_refresh_is_seen_by_it) {
  const auto busy = std::make_shared<storage::FaultyStorage>(storage);
  collections(0);
  step(0, {{"w", {1}, {}}});
  const auto trial = std::move(*Trial::open(busy, {.end_delay_secs = 0}));
  busy->before_listing([&] {
    step(1, {{"w", {2}, {}}});
    end();
  });
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_TRUE(trial->snapshot()->loaded_all());
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(0, 1));
}

TEST_F(TrialTest, opens_when_all_workers_have_written_their_collections) {
  step(0, {{"w", {1}, {}}});
  const auto trial = open();
  EXPECT_FALSE(trial->is_open());
  collections(0, 2);
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_FALSE(trial->is_open());
  collections(1, 2);
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_TRUE(trial->is_open());
  EXPECT_THAT(trial->snapshot()->workers(), ElementsAre("worker_0", "worker_1"));
}

TEST_F(TrialTest, names_of_all_workers_join_in_the_collections) {
  for (int worker : {0, 1}) {
    CollectionSet set;
    ASSERT_TRUE(set.set_num_workers(2).ok());
    (*set.create("mine"))->add_tensor_name("tensor_" + std::to_string(worker));
    put(format::collections_file_name("worker_" + std::to_string(worker)), set.to_json());
  }
  const auto trial = open();
  EXPECT_THAT((*trial->snapshot()->collections().get("mine"))->tensor_names(),
              ElementsAre("tensor_0", "tensor_1"));
}

TEST_F(TrialTest, a_damaged_index_is_left_out_until_it_is_whole) {
  collections(0);
  step(0, {{"w", {1}, {}}});
  step(1, {{"w", {2}, {}}});
  const std::string path = format::index_file_name(0, "worker_0");
  const auto good = *storage::read_all(*storage, path);
  put(path, as_text(good).substr(0, 30));
  const auto trial = open();
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(1));
  ASSERT_EQ(messages->texts.size(), 1u);
  EXPECT_THAT(messages->texts[0], HasSubstr(path));
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_EQ(messages->texts.size(), 1u) << "said once";
  put(path, as_text(good));
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(0, 1));
}

TEST_F(TrialTest, names_that_are_no_steps_are_left_out) {
  collections(0);
  step(0, {{"w", {1}, {}}});
  put("index/000000000/notes.json", "{}");
  put("index/000000000/readme.txt", "x");
  const auto trial = open();
  EXPECT_THAT(trial->snapshot()->steps(Mode::global, true), ElementsAre(0));
  EXPECT_EQ(messages->texts.size(), 1u);
}

TEST_F(TrialTest, payloads_are_verified_when_asked_for) {
  collections(0);
  step(0, {{"w", {1, 2, 3, 4}, {4}}});
  const std::string path = format::event_file_name(0, "worker_0");
  std::string events(as_text(*storage::read_all(*storage, path)));
  const auto place = format::locate_content(as_bytes(events));
  events[place->offset + 1] ^= 0x10;
  put(path, events);
  EXPECT_TRUE(open()->value("w", {.step = 0}).ok()) << "not looked at";
  const auto value = open({.check = true})->value("w", {.step = 0});
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::corrupt);
  EXPECT_THAT(value.error().message, HasSubstr(path));
  EXPECT_THAT(value.error().message, HasSubstr("offset 0"));
}

TEST_F(TrialTest, damaged_records_are_named_with_file_and_offset) {
  collections(0);
  step(0, {{"a", {1}, {}}, {"b", {2}, {}}});
  const std::string path = format::event_file_name(0, "worker_0");
  const std::string events(as_text(*storage::read_all(*storage, path)));

  std::string broken = events;
  broken[events.size() / 2 + 3] ^= 1;  // in the header of b
  put(path, broken);
  const auto corrupt = open()->value("b", {.step = 0});
  ASSERT_FALSE(corrupt.ok());
  EXPECT_THAT(corrupt.error().message, HasSubstr(path));
  EXPECT_THAT(corrupt.error().message, HasSubstr(std::to_string(events.size() / 2)));

  put(path, events.substr(0, events.size() - 3));
  const auto truncated = open()->value("b", {.step = 0});
  ASSERT_FALSE(truncated.ok());
  EXPECT_EQ(truncated.error().code, ErrorCode::truncated);
  EXPECT_TRUE(open()->value("a", {.step = 0}).ok()) << "the rest is fine";

  ASSERT_TRUE(storage->remove(path).ok());
  EXPECT_EQ(open()->value("a", {.step = 0}).error().code, ErrorCode::not_found);
}

TEST_F(TrialTest, an_index_that_leads_out_of_the_run_is_refused) {
  collections(0);
  for (const char* path : {"../secret", "/etc/passwd", "events/../../x", ""}) {
    format::IndexBuilder index;
    index.add_tensor("w", 0, 100);
    put(format::index_file_name(0, "worker_0"),
        index.finish({.step = 0, .mode = Mode::train, .mode_step = 0}, path));
    const auto trial = open();
    EXPECT_EQ(trial->snapshot()->row_count(), 0u) << path;
    EXPECT_EQ(messages->texts.size(), 1u);
    messages->texts.clear();
  }
}

TEST_F(TrialTest, an_absurd_length_is_refused_before_memory_is_taken) {
  collections(0);
  put(format::event_file_name(0, "worker_0"), "short");
  format::IndexBuilder index;
  index.add_tensor("w", 1, uint64_t{1} << 60);
  put(format::index_file_name(0, "worker_0"),
      index.finish({.step = 0, .mode = Mode::train, .mode_step = 0},
                   format::event_file_name(0, "worker_0")));
  const auto value = open()->value("w", {.step = 0});
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ErrorCode::truncated);
}

TEST_F(TrialTest, workers_are_found_by_name_or_in_the_order_of_their_names) {
  collections(0, 2);
  collections(1, 2);
  step(0, {{"w", {11}, {}}}, 1);
  step(0, {{"w", {10}, {}}, {"only", {1}, {}}}, 0);
  const auto trial = open();
  EXPECT_THAT(floats(*trial->value("w", {.step = 0})), ElementsAre(10));
  EXPECT_THAT(floats(*trial->value("w", {.step = 0, .worker = "worker_1"})), ElementsAre(11));
  EXPECT_FALSE(trial->value("only", {.step = 0, .worker = "worker_1"}).ok());
  EXPECT_THAT(trial->series("w", {.worker = "worker_1"})->values, ElementsAre(11));
}

TEST_F(TrialTest, many_files_are_read_on_several_threads) {
  collections(0, 4);
  for (int worker = 0; worker < 4; ++worker) {
    collections(worker, 4);
    for (Step s = 0; s < 100; ++s) {
      step(s,
           {{"w", {static_cast<float>(s * 10 + worker)}, {}},
            {"v" + std::to_string(s % 3), {1}, {}}},
           worker);
    }
  }
  const auto trial = open();
  EXPECT_EQ(trial->snapshot()->row_count(), 100u);
  EXPECT_EQ(trial->snapshot()->last_complete_step(), 99);
  for (Step s : {0, 57, 99}) {
    EXPECT_THAT(floats(*trial->value("w", {.step = s, .worker = "worker_2"})),
                ElementsAre(static_cast<float>(s * 10 + 2)));
  }
  EXPECT_EQ(trial->series("v1", {})->steps.size(), 33u);
}

TEST_F(TrialTest, readers_and_a_refresher_do_not_disturb_each_other) {
  collections(0);
  step(0, {{"w", {0}, {}}});
  const auto trial = open();
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const auto now = trial->snapshot();
        const Step last = now->steps(Mode::global, false).back();
        const auto value = trial->value("w", {.step = last});
        ASSERT_TRUE(value.ok()) << value.error().message;
        EXPECT_EQ(floats(*value)[0], static_cast<float>(last));
      }
    });
  }
  for (Step s = 1; s < 200; ++s) {
    step(s, {{"w", {static_cast<float>(s)}, {}}, {"t" + std::to_string(s), {1}, {}}});
    ASSERT_TRUE(trial->refresh().ok());
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(trial->snapshot()->row_count(), 200u);
}

size_t open_descriptors() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator()));
}

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0;
  int64_t resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(TrialTest, many_trials_keep_no_more_files_open_than_a_few) {
  const std::string folder = testing::TempDir() + "/smd_trial_files_" + std::to_string(getpid());
  constexpr int kSteps = 40;
  const size_t before = open_descriptors();
  std::vector<std::unique_ptr<Trial>> trials;
  for (int run = 0; run < 6; ++run) {
    storage = storage::local_storage(folder + "/" + std::to_string(run));
    collections(0);
    for (Step s = 0; s < kSteps; ++s) step(s, {{"w", {static_cast<float>(s)}, {}}});
    end();
    trials.push_back(open());
    for (Step s = 0; s < kSteps; ++s) ASSERT_TRUE(trials.back()->value("w", {.step = s}).ok());
  }
  // One for each trial to hear of news.
  EXPECT_LE(open_descriptors(), before + 64 + trials.size());
  trials.clear();
  EXPECT_LE(open_descriptors(), before);
  std::filesystem::remove_all(folder);
}

TEST_F(TrialTest, what_is_kept_of_steps_takes_memory_once_however_many_threads_read) {
  if (kHasOwnHeap) GTEST_SKIP() << "Freed memory stays with the sanitizer.";
  // One run alone fills the budget of the process, and each thread in turn begins anew.
  constexpr int kSteps = 1200;
  constexpr int kThreads = 4;
  const std::vector<float> filler(15'000, 1.0f);
  collections(0);
  for (Step s = 0; s < kSteps; ++s) step(s, {{"w", {1}, {}}, {"x", filler, {}}});
  end();
  const auto trial = open();
  const int64_t before = resident_bytes();
  std::vector<std::vector<TensorValue>> held(kThreads);  // lies between what is kept, and stays
  std::barrier turns(kThreads);
  std::vector<std::thread> readers;
  for (int reader = 0; reader < kThreads; ++reader) {
    readers.emplace_back([&, reader] {
      for (int turn = 0; turn < kThreads; ++turn) {
        for (Step s = 0; turn == reader && s < 2 * kSteps; ++s) {
          auto value = trial->value("w", {.step = s % kSteps});
          ASSERT_TRUE(value.ok()) << value.error().message;
          held[static_cast<size_t>(reader)].push_back(std::move(*value));
        }
        turns.arrive_and_wait();
      }
    });
  }
  for (auto& reader : readers) reader.join();
  EXPECT_LT(resident_bytes() - before, int64_t{100} << 20);
}

}  // namespace
}  // namespace smd
