#include "smd/writer/internal/growing_segment.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "smd/format/packed_file_name.h"
#include "smd/format/packed_footer.h"
#include "smd/format/packed_log.h"

namespace smd::internal {
namespace {

class GrowingSegmentTest : public testing::Test {
 protected:
  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  const std::string writer = format::writer_name("w", format::incarnation_text(1, 2));
  GrowingSegment segment =
      *GrowingSegment::open(*storage, {.writer = writer, .number = 3}, Durability::off);

  std::string data() const { return text(format::segment_file_name(writer, 3)); }
  std::string log() const { return text(format::log_file_name(writer, 3)); }

 private:
  std::string text(const std::string& path) const {
    return std::string(as_text(*storage::read_all(*storage, path)));
  }
};

TEST_F(GrowingSegmentTest, the_log_tells_of_a_step_when_all_of_it_is_there) {
  const std::string elements(100'000, 'e');
  segment.begin_step();
  segment.buffer() += "head ";
  ASSERT_TRUE(segment.append(as_bytes(elements)).ok());
  segment.buffer() += " end";
  EXPECT_EQ(segment.position(), elements.size() + 9);
  EXPECT_EQ(log(), "");
  EXPECT_FALSE(segment.has_steps());
  ASSERT_TRUE(segment.commit_step("entry").ok());
  EXPECT_EQ(data(), "head " + elements + " end");
  EXPECT_EQ(log(), "entry");
  segment.begin_step();
  EXPECT_EQ(segment.base(), elements.size() + 9);
}

TEST_F(GrowingSegmentTest, an_abandoned_step_leaves_nothing_in_files_and_buffer) {
  segment.begin_step();
  segment.buffer() += "first";
  ASSERT_TRUE(segment.commit_step("entry").ok());
  segment.begin_step();
  ASSERT_TRUE(segment.append(as_bytes(std::string(100'000, 'x'))).ok());
  segment.buffer() += "second";
  segment.abandon_step();
  EXPECT_EQ(data(), "first");
  EXPECT_EQ(segment.position(), 5u);
  EXPECT_EQ(log(), "entry");
}

TEST_F(GrowingSegmentTest, few_elements_wait_in_the_buffer_until_there_are_many) {
  const std::string elements(10'000, 'e');
  segment.begin_step();
  ASSERT_TRUE(segment.append(as_bytes(elements)).ok());
  EXPECT_EQ(data(), "");
  while (data().empty()) ASSERT_TRUE(segment.append(as_bytes(elements)).ok());
  EXPECT_EQ(data().size(), segment.position());
  EXPECT_EQ(segment.buffer(), "");
}

TEST_F(GrowingSegmentTest, closing_adds_the_log_as_a_footer) {
  segment.begin_step();
  segment.buffer() += "step";
  ASSERT_TRUE(segment.commit_step("entry").ok());
  ASSERT_TRUE(segment.close().ok());
  std::string closed = "entry";
  format::append_log_entry(closed, format::PackedEnd());
  std::string footer;
  ASSERT_TRUE(format::append_footer(footer, 4, closed).ok());
  EXPECT_EQ(log(), closed);
  EXPECT_EQ(data(), "step" + footer);
}

TEST_F(GrowingSegmentTest, without_a_step_closing_leaves_both_files_empty) {
  ASSERT_TRUE(segment.close().ok());
  EXPECT_EQ(data(), "");
  EXPECT_EQ(log(), "");
}

}  // namespace
}  // namespace smd::internal
