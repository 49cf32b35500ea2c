#include "smd/picture/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <pugixml.hpp>

namespace smd {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();

// The picture as a parser sees it.
pugi::xml_document parsed(const std::string& svg) {
  pugi::xml_document document;
  const auto result = document.load_string(svg.c_str());
  EXPECT_TRUE(result) << result.description() << "\n" << svg;
  return document;
}

size_t count(const pugi::xml_document& document, const std::string& query) {
  return document.select_nodes(query.c_str()).size();
}

PlotLine line(std::string name, size_t points, double (*f)(double)) {
  PlotLine out{.name = std::move(name)};
  for (size_t i = 0; i < points; ++i) {
    out.points.emplace_back(static_cast<double>(i), f(static_cast<double>(i)));
  }
  return out;
}

TEST(SvgChart, a_curve_with_threshold_and_mark) {
  const std::string svg =
      draw_svg({line("a", 50, [](double x) { return x; })},
               {.title = "loss", .threshold = 20, .mark = 30, .mark_label = "step 30"});
  const auto document = parsed(svg);
  EXPECT_STREQ(document.child("svg").child("title").text().get(), "loss");
  EXPECT_EQ(count(document, "//path[@class='curve s0']"), 1u);
  EXPECT_EQ(count(document, "//path[@class='threshold']"), 1u);
  EXPECT_THAT(svg, HasSubstr(">threshold 20<"));
  EXPECT_EQ(count(document, "//path[@class='mark']"), 1u);
  EXPECT_THAT(svg, HasSubstr(">step 30<"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_THAT(svg, Not(HasSubstr(">-0<")));
}

TEST(SvgChart, higher_numbers_stand_higher) {
  const std::string svg = draw_svg({line("a", 2, [](double x) { return x; })}, {.height = 240});
  const auto document = parsed(svg);
  const std::string path = document.select_node("//path[@class='curve s0']/@d").attribute().value();
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  ASSERT_EQ(std::sscanf(path.c_str(), "M%lf %lfL%lf %lf", &x0, &y0, &x1, &y1), 4) << path;
  EXPECT_LT(x0, x1);
  EXPECT_GT(y0, y1);
}

TEST(SvgChart, what_is_not_finite_breaks_the_line_and_is_marked) {
  PlotLine odd{.name = "odd"};
  for (int i = 0; i < 9; ++i) odd.points.emplace_back(i, i);
  odd.points[3].second = NAN;
  odd.points[6].second = kInf;
  const auto document = parsed(draw_svg({odd}, {}));
  EXPECT_EQ(count(document, "//path[@class='curve s0']"), 3u);
  EXPECT_EQ(count(document, "//path[@class='special']"), 2u);
}

TEST(SvgChart, a_million_points_make_a_small_picture_that_keeps_the_extremes) {
  PlotLine many = line("many", 1000000, [](double x) { return std::sin(x / 1000); });
  many.points[777777].second = 9;
  const std::string svg = draw_svg({many}, {});
  EXPECT_LT(svg.size(), 100000u);
  const auto with = parsed(svg);
  const std::string path = with.select_node("//path[@class='curve s0']/@d").attribute().value();
  double highest = 1e9;
  for (size_t at = path.find(' '); at != std::string::npos; at = path.find(' ', at + 1)) {
    highest = std::min(highest, std::strtod(path.c_str() + at, nullptr));
  }
  EXPECT_LT(highest, 45);  // the outlier is near the upper edge
}

TEST(SvgChart, a_distant_threshold_does_not_flatten_the_curve) {
  const std::string svg =
      draw_svg({line("a", 5, [](double x) { return 1 + x; })}, {.threshold = 1e9});
  EXPECT_THAT(svg, Not(HasSubstr("class=\"threshold\"")));
}

TEST(SvgChart, extreme_numbers_stay_inside) {
  const double most = std::numeric_limits<double>::max();
  for (const auto& values :
       {std::vector<double>{-most, most}, std::vector<double>{0, 0}, std::vector<double>{NAN},
        std::vector<double>{kInf, -kInf}, std::vector<double>{}, std::vector<double>{5e-324}}) {
    PlotLine series{.name = "x"};
    for (size_t i = 0; i < values.size(); ++i) {
      series.points.emplace_back(static_cast<double>(i), values[i]);
    }
    for (bool log : {false, true}) {
      const std::string svg = draw_svg({series}, {.threshold = most, .mark = 1, .log = log});
      parsed(svg);
      const std::string body = svg.substr(svg.find("</style>"));
      EXPECT_THAT(body, Not(HasSubstr("nan")));
      EXPECT_THAT(body, Not(HasSubstr("inf")));
    }
  }
}

TEST(SvgChart, names_cannot_bring_markup) {
  const std::string evil = "</svg><script>alert(1)</script>";
  const std::string svg = draw_svg({{.name = evil}, {.name = "b"}},
                                   {.title = evil, .x_label = evil, .mark = 1, .mark_label = evil});
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
  EXPECT_STREQ(parsed(svg).child("svg").child("title").text().get(), evil.c_str());
}

TEST(SvgChart, wide_ranges_of_positive_numbers_suit_a_log_axis) {
  EXPECT_TRUE(suits_log_axis({line("a", 9, [](double x) { return std::pow(10, -x); })}));
  EXPECT_FALSE(suits_log_axis({line("a", 9, [](double x) { return x; })}));
  EXPECT_FALSE(suits_log_axis({line("a", 9, [](double x) { return std::pow(-10, x); })}));
  EXPECT_FALSE(suits_log_axis({}));
  const std::string svg =
      draw_svg({line("a", 9, [](double x) { return std::pow(10, -x); })}, {.log = true});
  EXPECT_THAT(svg, HasSubstr(">1e-08<"));
}

}  // namespace
}  // namespace smd
