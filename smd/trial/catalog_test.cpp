#include "smd/trial/catalog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/planted_run.h"
#include "tests/support/planted_sink.h"

namespace smd {
namespace {

using testing::ElementsAre;

class CatalogTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Layouts, CatalogTest, testing::Bool(),
                         [](const auto& chosen) { return chosen.param ? "packed" : "original"; });

TEST_P(CatalogTest, tells_types_shapes_times_and_numbers) {
  PlantedRun run;
  run.collections();
  const std::unique_ptr<Sink> sink = planted_sink({.storage = run.storage, .packed = GetParam()});
  for (Step step : {2, 5}) {
    ASSERT_TRUE(sink->begin_step({.step = step, .mode = Mode::eval, .mode_step = step / 2}).ok());
    const std::vector<float> values(200, 1);
    const std::vector<double> loss = {1};
    const int64_t shape[] = {10, 20};
    const double secs = 100.0 + static_cast<double>(step);
    ASSERT_TRUE(sink->tensor({.name = "raw", .shape = shape, .wall_secs = secs},
                             std::as_bytes(std::span(values)))
                    .ok());
    ASSERT_TRUE(sink->tensor({.name = "loss", .dtype = DType::float64, .wall_secs = secs},
                             std::as_bytes(std::span(loss)))
                    .ok());
    const StoredReduction stored[] = {{.name = "min", .dtype = DType::float32},
                                      {.name = "abs_max", .dtype = DType::float64}};
    ASSERT_TRUE(sink->reductions("reduced", secs, stored).ok());
    const int64_t other[] = {7};
    ASSERT_TRUE(sink->shape("shaped", "original/shaped", other).ok());
    ASSERT_TRUE(sink->end_step().ok());
  }
  ASSERT_TRUE(sink->close().ok());

  const auto catalog = read_catalog(*run.trial());
  ASSERT_TRUE(catalog.ok()) << catalog.error().message;
  ASSERT_EQ(catalog->tensors.size(), 4);
  EXPECT_EQ(catalog->tensors[0].name, "loss");
  EXPECT_EQ(catalog->tensors[0].dtype, DType::float64);
  EXPECT_EQ(catalog->tensors[1].name, "raw");
  EXPECT_EQ(catalog->tensors[1].dtype, DType::float32);
  EXPECT_EQ(catalog->tensors[1].shape, (Shape{10, 20}));
  EXPECT_EQ(catalog->tensors[2].name, "reduced");
  EXPECT_EQ(catalog->tensors[2].dtype, std::nullopt);
  EXPECT_EQ(catalog->tensors[2].shape, std::nullopt);
  EXPECT_EQ(catalog->tensors[3].shape, Shape{7});

  ASSERT_EQ(catalog->steps.size(), 2);
  EXPECT_EQ(catalog->steps[1].info.step, 5);
  EXPECT_EQ(catalog->steps[1].info.mode, Mode::eval);
  EXPECT_EQ(catalog->steps[1].info.mode_step, 2);
  EXPECT_EQ(catalog->steps[1].wall_secs, 105);
  EXPECT_EQ(catalog->steps[1].workers, 1);
  EXPECT_TRUE(catalog->steps[1].complete);

  EXPECT_THAT(catalog->workers, ElementsAre("worker_0"));
  std::vector<std::string> names;
  std::vector<bool> float32;
  for (const auto& number : catalog->numbers) {
    names.push_back(number.name);
    float32.push_back(number.float32);
  }
  EXPECT_THAT(names, ElementsAre("min", "abs_max", "value"));
  EXPECT_THAT(float32, ElementsAre(GetParam(), false, false));
}

}  // namespace
}  // namespace smd
