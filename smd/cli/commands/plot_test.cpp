#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <pugixml.hpp>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;

class PlotCommand : public ProgramTestCase {
 protected:
  PlotCommand() {
    planted.storage = storage::local_storage(root);
    planted.collections();
    for (Step s = 0; s < 5; ++s) {
      const auto x = static_cast<double>(s);
      planted.step(s)
          .scalar("loss", s == 3 ? std::numeric_limits<double>::quiet_NaN() : 8 / (x + 1))
          .scalar("zero", x)
          .floats("w", {0, static_cast<float>(s)})
          .reduction("only", "max", x);
    }
  }

  const std::string root = folder + "/run";
  PlantedRun planted;
};

TEST_F(PlotCommand, a_curve_is_drawn_with_its_axes) {
  EXPECT_EQ(run({"plot", root, "zero", "--ascii", "--width", "20", "--height", "5"}), 0) << err;
  EXPECT_EQ(out,
            "zero  5 steps, last 4\n"
            "4 +              ooo\n"
            "  |          oooo   \n"
            "2 +      oooo       \n"
            "  |  oooo           \n"
            "0 +oo               \n"
            "  +-----------------\n"
            "   0     step      4\n");
}

TEST_F(PlotCommand, nan_is_marked_and_counted) {
  EXPECT_EQ(run({"plot", root, "loss", "--width", "40"}), 0);
  EXPECT_THAT(out, HasSubstr("× NaN"));
  EXPECT_THAT(out, HasSubstr("loss: NaN 1 at step 3\n"));
}

TEST_F(PlotCommand, several_series_have_a_legend) {
  EXPECT_EQ(run({"plot", root, "loss", "w"}), 0);
  EXPECT_THAT(out, HasSubstr("  o loss\n  x w (mean)\n"));
  EXPECT_EQ(run({"plot", root, "loss", "w", "--color", "always"}), 0);
  EXPECT_THAT(out, HasSubstr("\x1b[36m—\x1b[0m loss"));
}

TEST_F(PlotCommand, the_reduction_can_be_chosen) {
  EXPECT_EQ(run({"plot", "--json", root, "w", "--reduction", "max"}), 0);
  EXPECT_EQ(json()["series"][0]["reduction"], "max");
  EXPECT_EQ(json()["series"][0]["values"], Json({0.0, 1.0, 2.0, 3.0, 4.0}));
  EXPECT_EQ(run({"plot", "--json", root, "w"}), 0);
  EXPECT_EQ(json()["series"][0]["reduction"], "mean");
  EXPECT_EQ(json()["series"][0]["values"][4], 2.0);
  EXPECT_EQ(run({"plot", "--json", root, "loss", "--mode", "train"}), 0);
  EXPECT_EQ(json()["mode"], "TRAIN");
  EXPECT_EQ(json()["series"][0]["reduction"], nullptr);
  EXPECT_EQ(json()["series"][0]["values"][3], "NaN");
}

TEST_F(PlotCommand, a_logarithmic_scale_leaves_out_what_is_not_positive) {
  EXPECT_EQ(run({"plot", root, "zero", "--log", "--ascii"}), 0);
  EXPECT_THAT(out, HasSubstr("\n4 +"));
  EXPECT_THAT(out, HasSubstr("\n2 +"));
  EXPECT_THAT(out, HasSubstr("\n1 +"));
  EXPECT_THAT(out, HasSubstr("zero: not positive, so not drawn, 1 at step 0\n"));
}

TEST_F(PlotCommand, what_cannot_be_drawn_is_told) {
  EXPECT_EQ(run({"plot", root, "only"}), 2);
  EXPECT_THAT(err,
              HasSubstr("There is no mean of 'only' to draw in mode GLOBAL; stored of it: max."));
  EXPECT_EQ(run({"plot", root, "only", "--reduction", "max"}), 0);
  EXPECT_EQ(run({"plot", root, "w", "--reduction", "meann"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'mean'?"));
  EXPECT_EQ(run({"plot", root, "los"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'loss'"));
  EXPECT_EQ(run({"plot", root, "loss", "--width", "3"}), 2);
  EXPECT_EQ(run({"plot", root}), 2);
  EXPECT_EQ(out, "");
}

TEST_F(PlotCommand, a_picture_is_written_instead) {
  const std::string path = folder + "/pictures/loss.svg";
  EXPECT_EQ(run({"plot", root, "loss", "zero", "--svg", path, "--threshold", "2", "--mark", "1",
                 "--title", "Two <curves>"}),
            0)
      << err;
  EXPECT_EQ(out, "");
  pugi::xml_document picture;
  ASSERT_TRUE(picture.load_file(path.c_str()));
  EXPECT_STREQ(picture.child("svg").child("title").text().get(), "Two <curves>");
  EXPECT_TRUE(picture.select_node("//path[@class='curve s1']"));
  EXPECT_TRUE(picture.select_node("//path[@class='threshold']"));
  EXPECT_STREQ(picture.select_node("//text[@class='mark']").node().text().get(), "step 1");
  EXPECT_EQ(run({"plot", root, "loss", "--svg", folder}), 2);
  EXPECT_THAT(err, HasSubstr("as it is a directory"));
}

}  // namespace
}  // namespace smd::cli
