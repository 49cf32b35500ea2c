#include "smd/writer/sinks/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/crc32c.h"
#include "smd/format/event.h"
#include "smd/format/packed_block.h"
#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"
#include "smd/format/packed_manifest.h"
#include "smd/format/tfrecord.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::MatchesRegex;
using testing::SizeIs;

// A memory whose growing files fail when they are told to, in the middle of what they append.
class FullDisk final : public storage::Storage {
 public:
  void fail(bool failing) { failing_ = failing; }

  std::string name() const override { return "full"; }
  Result<std::unique_ptr<storage::WriteFile>> create(
      std::string_view path, const storage::CreateOptions& options) override {
    return inner_->create(path, options);
  }
  Result<std::unique_ptr<storage::AppendFile>> append(std::string_view path) override {
    if (failing_) return full();
    SMD_TRY(auto file, inner_->append(path));
    return std::unique_ptr<storage::AppendFile>(std::make_unique<File>(*this, std::move(file)));
  }
  Result<bool> put(std::string_view path, ByteSpan content, storage::Put when,
                   const storage::CreateOptions& options) override {
    return inner_->put(path, content, when, options);
  }
  Result<std::unique_ptr<storage::ReadFile>> open(std::string_view path) override {
    return inner_->open(path);
  }
  Result<storage::FileInfo> stat(std::string_view path) override { return inner_->stat(path); }
  Result<std::vector<storage::FileInfo>> list(std::string_view folder,
                                              std::string_view start_after) override {
    return inner_->list(folder, start_after);
  }
  Status remove(std::string_view path) override { return inner_->remove(path); }
  Status sync() override { return inner_->sync(); }

 private:
  struct File final : storage::AppendFile {
    File(FullDisk& o, std::unique_ptr<storage::AppendFile> f) : owner(o), file(std::move(f)) {}
    Status append(std::span<const ByteSpan> pieces) override {
      if (!owner.failing_) return file->append(pieces);
      EXPECT_TRUE(file->append({{pieces[0].first(pieces[0].size() / 2)}}).ok());
      return full();
    }
    void truncate(uint64_t size_bytes) override { file->truncate(size_bytes); }
    Status sync() override { return file->sync(); }
    uint64_t size() const override { return file->size(); }
    FullDisk& owner;
    std::unique_ptr<storage::AppendFile> file;
  };
  static Error full() { return {ErrorCode::io, "The disk is full."}; }

  const std::shared_ptr<storage::Storage> inner_ = storage::memory_storage();
  bool failing_ = false;
};

class PackedSinkTest : public testing::Test {
 protected:
  std::shared_ptr<FullDisk> storage = std::make_shared<FullDisk>();
  std::unique_ptr<Sink> sink = make({});

  std::unique_ptr<Sink> make(PackedSinkOptions options) const {
    options.storage = storage;
    options.worker = "worker_0";
    return packed_sink(std::move(options));
  }
  std::vector<std::string> paths(std::string_view folder) const {
    std::vector<std::string> out;
    for (const auto& file : *storage->list(folder, "")) out.push_back(file.path);
    return out;
  }
  std::string text(const std::string& path) const {
    return std::string(as_text(*storage::read_all(*storage, path)));
  }
  std::string log() const { return text(paths("v2/log").at(0)); }
  std::string segment() const { return text(paths("v2/seg").at(0)); }

  // The steps of a log, which live as long as the text.
  static std::vector<format::PackedStep> steps_of(const std::string& log) {
    std::vector<format::PackedStep> steps;
    for (size_t at = 0; at < log.size();) {
      const auto record = format::parse_record(as_bytes(log).subspan(at), at);
      EXPECT_TRUE(record.ok());
      const auto entry = format::parse_log_entry(record->payload);
      EXPECT_TRUE(entry.ok());
      if (const auto* step = std::get_if<format::PackedStep>(&*entry)) steps.push_back(*step);
      at += record->size_bytes;
    }
    return steps;
  }
  Status save(Step step, float min, size_t raw_elements = 0) const {
    SMD_RETURN_IF_ERROR(sink->begin_step({.step = step, .mode = Mode::train, .mode_step = step}));
    StoredReduction value{.name = "min", .dtype = DType::float32};
    std::memcpy(value.bits.data(), &min, sizeof min);
    SMD_RETURN_IF_ERROR(sink->reductions("w", 3.5, {{value}}));
    if (raw_elements > 0) {
      const std::vector<float> elements(raw_elements, min);
      const Shape shape = {static_cast<int64_t>(raw_elements)};
      SMD_RETURN_IF_ERROR(sink->tensor({.name = "raw", .shape = shape, .wall_secs = 1},
                                       std::as_bytes(std::span(elements))));
    }
    const Status ended = sink->end_step();
    if (!ended.ok()) sink->abandon_step();
    return ended;
  }
};

TEST_F(PackedSinkTest, a_step_is_one_block_that_the_log_points_to) {
  ASSERT_TRUE(save(7, 1.25F).ok());
  ASSERT_TRUE(save(8, 2.5F).ok());
  EXPECT_THAT(paths("v2/log"), ElementsAre(MatchesRegex("v2/log/worker_0\\..{22}/00000000")));
  EXPECT_THAT(paths("v2/seg"), SizeIs(1));
  const std::string log_text = log();
  const std::string data = segment();
  const auto steps = steps_of(log_text);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].info, (StepInfo{.step = 7, .mode = Mode::train, .mode_step = 7}));
  EXPECT_EQ(steps[0].wall_secs, 3.5);
  EXPECT_EQ(steps[1].base, steps[0].length);
  EXPECT_EQ(steps[1].base + steps[1].length, data.size());
  EXPECT_EQ(data.size() % 64, 0u);
  for (size_t i = 0; i < 2; ++i) {
    const auto at = as_bytes(data).subspan(steps[i].base + steps[i].block_offset, 4);
    EXPECT_EQ(load_le<float>(at.data()), i == 0 ? 1.25F : 2.5F);
    EXPECT_EQ(steps[i].block_crc32c, crc32c(at));
    EXPECT_EQ((steps[i].base + steps[i].block_offset) % 64, 0u);
  }
}

TEST_F(PackedSinkTest, tensors_are_aligned_records_in_any_number_of_parts) {
  std::vector<float> big(50'000);
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i);
  const ByteSpan bytes = std::as_bytes(std::span(big));
  const Shape shape = {50'000};
  const Shape two = {2};
  ASSERT_TRUE(sink->begin_step({.step = 1}).ok());
  ASSERT_TRUE(sink->tensor({.name = "big", .shape = shape}, bytes.first(100'000)).ok());
  ASSERT_TRUE(sink->more(bytes.subspan(100'000)).ok());
  ASSERT_TRUE(sink->strings({.name = "s", .shape = two}, {{"a", "b"}}).ok());
  const uint16_t half[] = {1, 2};
  ASSERT_TRUE(sink->tensor({.name = "half", .dtype = DType::bfloat16, .shape = two},
                           std::as_bytes(std::span(half)))
                  .ok());
  ASSERT_TRUE(sink->end_step().ok());
  const std::string data = segment();
  const std::string log_text = log();
  const auto steps = steps_of(log_text);
  ASSERT_THAT(steps, SizeIs(1));
  ASSERT_THAT(steps[0].raws, SizeIs(3));
  for (const auto& raw : steps[0].raws) {
    const auto record = format::parse_record(as_bytes(data).subspan(raw.offset, raw.length), 0);
    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(crc32c(record->payload), raw.crc32c);
    const auto event = format::parse_event(record->payload);
    ASSERT_TRUE(event.ok());
    EXPECT_EQ(event->tensor->dtype, raw.dtype);
    EXPECT_EQ(event->tensor->shape, raw.shape);
    if (raw.dtype == DType::string) continue;
    const auto place = format::locate_content(as_bytes(data).subspan(raw.offset));
    ASSERT_TRUE(place);
    EXPECT_EQ((raw.offset + place->offset) % 64, 0u);
  }
  EXPECT_EQ(data.find(as_text(bytes)) % 64, 0u);
}

TEST_F(PackedSinkTest, names_of_one_tensor_share_its_records) {
  sink = make({.max_record_bytes = 2000});
  const std::vector<float> x(800, 1.5F);  // in two parts
  const Shape shape = {800};
  const Shape one = {1};
  const std::string_view others[] = {"y", "z"};
  const ByteSpan bytes = std::as_bytes(std::span(x));
  ASSERT_TRUE(sink->begin_step({.step = 1}).ok());
  ASSERT_TRUE(sink->tensor({.name = "x", .shape = shape, .other_names = others}, bytes).ok());
  ASSERT_TRUE(
      sink->tensor({.name = "number", .shape = one, .other_names = others}, bytes.first(4)).ok());
  ASSERT_TRUE(sink->end_step().ok());
  const std::string log_text = log();
  const auto steps = steps_of(log_text);
  ASSERT_THAT(steps, SizeIs(1));
  const auto& raws = steps[0].raws;
  ASSERT_THAT(raws, SizeIs(6));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(raws[i].tensor, raws[i / 2 * 2].tensor);
    EXPECT_EQ(raws[i].offset, raws[i % 2].offset);
    EXPECT_EQ(raws[i].first, raws[i % 2].first);
  }
  EXPECT_NE(raws[0].tensor, raws[2].tensor);
  EXPECT_NE(raws[2].tensor, raws[4].tensor);
}

TEST_F(PackedSinkTest, large_tensors_begin_at_pieces_of_the_page_cache) {
  const std::vector<float> large(format::kLargeTensorBytes / sizeof(float), 1.5F);
  const ByteSpan bytes = std::as_bytes(std::span(large));
  const Shape shape = {static_cast<int64_t>(large.size())};
  ASSERT_TRUE(save(0, 1, 100).ok());
  ASSERT_TRUE(sink->begin_step({.step = 1}).ok());
  ASSERT_TRUE(sink->tensor({.name = "a", .shape = shape}, bytes).ok());
  ASSERT_TRUE(sink->tensor({.name = "b", .shape = shape}, bytes).ok());
  ASSERT_TRUE(sink->end_step().ok());
  ASSERT_TRUE(sink->close().ok());
  const std::string data = segment();
  const std::string log_text = log();
  const auto steps = steps_of(log_text);
  ASSERT_THAT(steps, SizeIs(2));
  ASSERT_THAT(steps[1].raws, SizeIs(2));
  for (const auto& raw : steps[1].raws) {
    const uint64_t begin = steps[1].base + raw.offset;
    const auto record = format::parse_record(as_bytes(data).subspan(begin, raw.length), begin);
    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(crc32c(record->payload), raw.crc32c);
    // Readers look for the elements near the beginning of a record.
    const auto place = format::locate_content(as_bytes(data).subspan(begin, 4096));
    ASSERT_TRUE(place);
    EXPECT_EQ((begin + place->offset) % format::kLargeAlignment, 0u);
    EXPECT_EQ(place->length, bytes.size());
  }
  EXPECT_LT(data.size(), 2 * (bytes.size() + format::kLargeAlignment) + 4096);
}

TEST_F(PackedSinkTest, an_abandoned_step_leaves_no_byte) {
  ASSERT_TRUE(save(0, 1, 100'000).ok());
  const std::string log_before = log();
  const std::string segment_before = segment();
  ASSERT_TRUE(sink->begin_step({.step = 1}).ok());
  const std::vector<float> elements(100'000);
  const Shape shape = {100'000};
  ASSERT_TRUE(
      sink->tensor({.name = "new", .shape = shape}, std::as_bytes(std::span(elements))).ok());
  EXPECT_GT(segment().size(), segment_before.size());
  sink->abandon_step();
  EXPECT_EQ(segment(), segment_before);
  EXPECT_EQ(log(), log_before);
  ASSERT_TRUE(save(2, 3).ok());
  const std::string log_text = log();
  EXPECT_THAT(steps_of(log_text), SizeIs(2));
}

TEST_F(PackedSinkTest, a_failed_step_costs_no_other) {
  storage->fail(true);
  EXPECT_FALSE(save(0, 0).ok());
  storage->fail(false);
  ASSERT_TRUE(save(1, 1).ok());
  ASSERT_TRUE(sink->begin_step({.step = 2}).ok());
  const Shape shape = {2};
  const float elements[] = {1, 2};
  ASSERT_TRUE(
      sink->tensor({.name = "later", .shape = shape}, std::as_bytes(std::span(elements))).ok());
  storage->fail(true);
  EXPECT_FALSE(sink->end_step().ok());
  sink->abandon_step();
  storage->fail(false);
  ASSERT_TRUE(save(3, 3).ok());
  const std::string log_text = log();
  const auto steps = steps_of(log_text);
  ASSERT_THAT(steps, SizeIs(2));
  EXPECT_EQ(steps[0].info.step, 1);
  EXPECT_EQ(steps[1].info.step, 3);
}

TEST_F(PackedSinkTest, a_step_that_is_open_when_the_job_ends_leaves_no_byte) {
  ASSERT_TRUE(save(0, 1).ok());
  const std::string whole = segment();
  ASSERT_TRUE(sink->begin_step({.step = 1}).ok());
  const std::vector<float> elements(100'000);
  const Shape shape = {100'000};
  ASSERT_TRUE(
      sink->tensor({.name = "new", .shape = shape}, std::as_bytes(std::span(elements))).ok());
  ASSERT_TRUE(sink->end_job({}).ok());
  sink->abandon_step();
  ASSERT_TRUE(sink->close().ok());
  std::string footer;
  ASSERT_TRUE(format::append_footer(footer, whole.size(), log()).ok());
  EXPECT_EQ(segment(), whole + footer);
}

TEST_F(PackedSinkTest, full_segments_are_closed_with_their_log_as_footer) {
  sink = make({.max_tensor_segment_bytes = 2000, .max_number_segment_bytes = 1000});
  for (Step step = 0; step < 20; ++step) ASSERT_TRUE(save(step, 1).ok());
  ASSERT_TRUE(sink->close().ok());
  const auto logs = paths("v2/log");
  const auto segments = paths("v2/seg");
  ASSERT_GT(logs.size(), 2u);
  ASSERT_EQ(logs.size(), segments.size());
  size_t steps = 0;
  for (size_t i = 0; i < logs.size(); ++i) {
    const std::string data = text(segments[i]);
    const std::string log_text = text(logs[i]);
    steps += steps_of(log_text).size();
    const auto place =
        format::parse_footer_tail(as_bytes(data).last(format::kFooterTailBytes), data.size());
    ASSERT_TRUE(place.ok()) << place.error().message;
    const auto footer =
        format::unpack_footer(*place, as_bytes(data).subspan(place->offset, place->length));
    ASSERT_TRUE(footer.ok());
    EXPECT_EQ(*footer, log_text);
  }
  EXPECT_EQ(steps, 20u);
}

TEST_F(PackedSinkTest, a_later_life_of_a_worker_has_a_greater_name_even_if_the_clock_goes_back) {
  sink = make({.clock = std::make_shared<ManualClock>(2e9)});
  ASSERT_TRUE(save(0, 1).ok());
  sink = make({.clock = std::make_shared<ManualClock>(1e9)});
  ASSERT_TRUE(save(0, 2).ok());
  const auto logs = paths("v2/log");
  ASSERT_THAT(logs, SizeIs(2));
  EXPECT_EQ(format::parse_packed_file_name(logs[1])->micros,
            format::parse_packed_file_name(logs[0])->micros + 1);
}

TEST_F(PackedSinkTest, an_old_segment_of_a_spool_is_closed_with_or_without_another_step) {
  const auto clock = std::make_shared<ManualClock>(1e9);
  sink = make({.spooled = true, .max_segment_age = std::chrono::seconds(10), .clock = clock});
  EXPECT_FALSE(sink->due());
  ASSERT_TRUE(save(0, 1).ok());
  ASSERT_TRUE(sink->due());
  EXPECT_EQ(*sink->due(), clock->now() + std::chrono::seconds(10));
  clock->advance(4);
  ASSERT_TRUE(save(1, 1).ok());
  EXPECT_EQ(*sink->due(), clock->now() + std::chrono::seconds(6)) << "the first step counts";
  clock->advance(6);
  ASSERT_TRUE(sink->tick().ok());
  EXPECT_FALSE(sink->due());
  ASSERT_TRUE(save(2, 1).ok());
  clock->advance(11);
  ASSERT_TRUE(sink->begin_step({.step = 3}).ok());
  const Shape shape = {2};
  const float elements[] = {1, 2};
  ASSERT_TRUE(sink->tensor({.name = "t", .shape = shape}, std::as_bytes(std::span(elements))).ok());
  EXPECT_FALSE(sink->due()) << "not within a step";
  ASSERT_TRUE(sink->end_step().ok());
  EXPECT_FALSE(sink->due()) << "closed with the step";
  const auto logs = paths("v2/log");
  ASSERT_THAT(logs, SizeIs(2));
  for (const std::string& path : logs) {
    const std::string log_text = text(path);
    EXPECT_THAT(steps_of(log_text), SizeIs(2));
    std::string end;
    format::append_log_entry(end, format::PackedEnd());
    EXPECT_TRUE(log_text.ends_with(end));
  }
}

TEST_F(PackedSinkTest, segments_in_a_directory_do_not_age) {
  const auto clock = std::make_shared<ManualClock>(1e9);
  sink = make({.clock = clock});
  ASSERT_TRUE(save(0, 1).ok());
  EXPECT_FALSE(sink->due());
  clock->advance(1e6);
  ASSERT_TRUE(save(1, 1).ok());
  EXPECT_THAT(paths("v2/log"), SizeIs(1));
  ASSERT_TRUE(sink->put("collections/x", "{}").ok());
  EXPECT_THAT(paths("v2/note"), ElementsAre());
}

TEST_F(PackedSinkTest, notes_tell_of_the_files_beside_the_steps_and_of_the_end) {
  const auto clock = std::make_shared<ManualClock>(1e9);
  sink = make({.spooled = true, .least_micros = uint64_t{5'000'000'000'000'000}, .clock = clock});
  ASSERT_TRUE(sink->put("collections/x", "{}").ok());
  ASSERT_TRUE(save(0, 1).ok());
  ASSERT_TRUE(sink->end_job({}).ok());
  const auto notes = paths("v2/note");
  ASSERT_THAT(notes, SizeIs(2));
  const auto note = [&](size_t i) { return *format::parse_manifest(as_bytes(text(notes[i]))); };
  EXPECT_THAT(note(0).files, ElementsAre(format::PackedManifest::File{"collections/x", "{}"}));
  EXPECT_FALSE(note(0).end_secs);
  EXPECT_EQ(note(1).end_secs, 1e9);
  EXPECT_EQ(text("collections/x"), "{}") << "also a file, as in every layout";
  EXPECT_EQ(format::parse_packed_file_name(paths("v2/log").at(0))->micros, 5'000'000'000'000'000u);
  EXPECT_EQ(note(0).writer, format::parse_packed_file_name(paths("v2/log").at(0))->writer);
}

TEST_F(PackedSinkTest, a_step_that_holds_nothing_leaves_no_file) {
  ASSERT_TRUE(sink->begin_step({.step = 0}).ok());
  ASSERT_TRUE(sink->end_step().ok());
  ASSERT_TRUE(sink->close().ok());
  EXPECT_THAT(paths(""), ElementsAre());
}

}  // namespace
}  // namespace smd
