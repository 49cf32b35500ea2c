#include "smd/cli/json_output.h"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace smd::cli {
namespace {

TEST(JsonOutput, is_one_line_of_ascii) {
  std::ostringstream out;
  write_json(out, {{"name", "é\n"}, {"steps", {1, 2}}});
  EXPECT_EQ(out.str(), "{\"name\": \"\\u00e9\\n\", \"steps\": [1, 2]}\n");
}

TEST(JsonOutput, numbers_that_json_lacks_are_words) {
  EXPECT_EQ(json_number(1.5).dump(), "1.5");
  EXPECT_EQ(json_number(std::numeric_limits<double>::quiet_NaN()).dump(), "\"NaN\"");
  EXPECT_EQ(json_number(-std::numeric_limits<double>::infinity()).dump(), "\"-Infinity\"");
}

}  // namespace
}  // namespace smd::cli
