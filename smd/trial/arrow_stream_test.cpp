#include "smd/trial/arrow_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <utility>

#include "smd/format/file_name.h"
#include "tests/support/planted_run.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ArrowStreamTest : public testing::Test {
 protected:
  ArrowStreamTest() {
    for (Step step = 0; step < 3; ++step) {
      run.step(step).scalar("loss", static_cast<double>(step)).reduction("w", "mean", 4);
    }
  }
  ArrowArrayStream stream(size_t batch_rows = 2) {
    ArrowArrayStream out;
    export_stream(FrameReader(*Frame::create(run.trial(), {}), batch_rows), &out);
    return out;
  }

  PlantedRun run;
};

TEST_F(ArrowStreamTest, the_schema_names_all_columns) {
  auto from = stream();
  ArrowSchema schema;
  ASSERT_EQ(from.get_schema(&from, &schema), 0);
  EXPECT_STREQ(schema.format, "+s");
  std::vector<std::string> fields;
  for (int64_t i = 0; i < schema.n_children; ++i) {
    const ArrowSchema& field = *schema.children[i];
    fields.push_back(std::string(field.name) + ":" + field.format);
    if (field.dictionary != nullptr) fields.back() += std::string(":") + field.dictionary->format;
    if ((field.flags & ARROW_FLAG_NULLABLE) != 0) fields.back() += "?";
  }
  EXPECT_THAT(fields, ElementsAre("tensor:i:u", "mode:c:u", "step:l", "mode_step:l", "worker:i:u",
                                  "mean:g?", "value:g?"));
  schema.release(&schema);
  EXPECT_EQ(schema.release, nullptr);
  from.release(&from);
  EXPECT_EQ(from.release, nullptr);
}

TEST_F(ArrowStreamTest, batches_come_until_the_end) {
  auto from = stream();
  ArrowArray batch;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(from.get_next(&from, &batch), 0);
    ASSERT_NE(batch.release, nullptr);
    EXPECT_EQ(batch.length, 2);
    EXPECT_EQ(batch.n_children, 7);
    const ArrowArray& step = *batch.children[2];
    EXPECT_EQ(static_cast<const int64_t*>(step.buffers[1])[0], i);
    const ArrowArray& value = *batch.children[6];
    EXPECT_EQ(value.null_count, 1);
    EXPECT_EQ(static_cast<const uint8_t*>(value.buffers[0])[0], 1);
    EXPECT_EQ(static_cast<const double*>(value.buffers[1])[0], i);
    batch.release(&batch);
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(from.get_next(&from, &batch), 0);
    EXPECT_EQ(batch.release, nullptr);
  }
  EXPECT_EQ(from.get_last_error(&from), nullptr);
  from.release(&from);
}

TEST_F(ArrowStreamTest, batches_outlive_the_stream_and_columns_the_batch) {
  auto from = stream();
  ArrowArray batch;
  ASSERT_EQ(from.get_next(&from, &batch), 0);
  from.release(&from);

  ArrowArray tensor = *batch.children[0];
  batch.children[0]->release = nullptr;
  batch.release(&batch);
  EXPECT_EQ(batch.release, nullptr);

  const auto* codes = static_cast<const int32_t*>(tensor.buffers[1]);
  const auto* offsets = static_cast<const int32_t*>(tensor.dictionary->buffers[1]);
  const auto* texts = static_cast<const char*>(tensor.dictionary->buffers[2]);
  const auto text = [&](int32_t code) {
    return std::string(texts + offsets[code], texts + offsets[code + 1]);
  };
  EXPECT_EQ(text(codes[0]), "loss");
  EXPECT_EQ(text(codes[1]), "w");
  tensor.release(&tensor);
}

TEST_F(ArrowStreamTest, errors_have_a_number_and_a_sentence) {
  auto from = stream();
  const std::string file = format::event_file_name(1, "worker_0");
  ASSERT_TRUE(run.storage->remove(file).ok());
  ArrowArray batch;
  ASSERT_EQ(from.get_next(&from, &batch), 0);
  batch.release(&batch);
  EXPECT_EQ(from.get_next(&from, &batch), ENOENT);
  EXPECT_THAT(from.get_last_error(&from), HasSubstr(file));
  from.release(&from);
}

}  // namespace
}  // namespace smd
