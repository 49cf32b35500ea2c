#include "smd/format/summary.h"

#include <gtest/gtest.h>

#include <protozero/pbf_reader.hpp>
#include <vector>

#include "smd/format/internal/hex.h"
#include "smd/format/tfrecord.h"

namespace smd::format {
namespace {

using protozero::pbf_reader;

// The Summary.Value of the only record.
std::string value_of(const std::string& file) {
  const auto record = parse_record(as_bytes(file), 0);
  EXPECT_TRUE(record.ok());
  EXPECT_EQ(record->footer, Footer::checksum);
  EXPECT_EQ(record->size_bytes, file.size());
  const auto payload = as_text(record->payload);
  pbf_reader event(payload.data(), payload.size());
  EXPECT_TRUE(event.next(5));
  pbf_reader summary = event.get_message();
  EXPECT_TRUE(summary.next(1));
  return summary.get_bytes();
}

TEST(Summary, scalar_has_these_bytes) {
  std::string out;
  append_scalar(out, {.tag = "scalar/lr", .step = 3, .wall_secs = 1600000000.5}, 0.5f);
  EXPECT_EQ(out, internal::from_hex(
                     "1f 00 00 00 00 00 00 00 51 4b 44 18 09 00 00 20 00 84 d7 d7 41 10 03 2a 12 "
                     "0a 10 0a 09 73 63 61 6c 61 72 2f 6c 72 15 00 00 00 3f b1 26 c6 de"));
}

TEST(Summary, histogram_holds_its_buckets) {
  const std::vector<double> limits = {-1, 0, 1};
  const std::vector<double> counts = {0, 2, 1};
  std::string out;
  append_histogram(out, {.tag = "w", .step = 1},
                   {.min = -0.5,
                    .max = 0.5,
                    .count = 3,
                    .sum = -0.25,
                    .sum_squares = 0.75,
                    .limits = limits,
                    .counts = counts});
  const std::string content = value_of(out);
  pbf_reader value(content);
  ASSERT_TRUE(value.next(1));
  EXPECT_EQ(value.get_string(), "w");
  ASSERT_TRUE(value.next(5));
  pbf_reader histogram = value.get_message();
  std::vector<double> singles;
  std::vector<std::vector<double>> lists;
  while (histogram.next()) {
    if (histogram.tag() <= 5) {
      singles.push_back(histogram.get_double());
    } else {
      const auto list = histogram.get_packed_double();
      lists.emplace_back(list.begin(), list.end());
    }
  }
  EXPECT_EQ(singles, (std::vector<double>{-0.5, 0.5, 3, -0.25, 0.75}));
  EXPECT_EQ(lists, (std::vector<std::vector<double>>{limits, counts}));
}

TEST(Summary, text_names_its_plugin) {
  std::string out;
  append_text(out, {.tag = "collections"}, "# *hello*");
  const std::string content = value_of(out);
  pbf_reader value(content);
  ASSERT_TRUE(value.next(8));
  pbf_reader tensor = value.get_message();
  ASSERT_TRUE(tensor.next(1));
  EXPECT_EQ(tensor.get_int32(), 7);
  ASSERT_TRUE(tensor.next(8));
  EXPECT_EQ(tensor.get_string(), "# *hello*");
  ASSERT_TRUE(value.next(9));
  pbf_reader metadata = value.get_message();
  ASSERT_TRUE(metadata.next(1));
  pbf_reader plugin = metadata.get_message();
  ASSERT_TRUE(plugin.next(1));
  EXPECT_EQ(plugin.get_string(), "text");
}

TEST(Summary, files_are_named_by_mode_step_and_writer) {
  EXPECT_EQ(summary_file_name(Mode::train, 12, "77_host"), "TRAIN/000000000012_77_host.tfevents");
}

}  // namespace
}  // namespace smd::format
