// Holds the host's build of the kernels against the oracles of all statistics, over element types,
// lengths, alignments, layouts and special values.

#include "smd/gpu/survey.h"

#include <gtest/gtest.h>

#include <cmath>

#include "smd/gpu/host_launch.h"
#include "smd/reduce/oracle_case.h"

namespace smd::gpu {
namespace {

using oracle::Case;
using oracle::Elements;
using oracle::Flavour;
using oracle::kFlavours;

ReductionSet surveyed() {
  ReductionSet out;
  all_reductions().for_each([&](Reduction r) {
    ReductionSet one;
    one.add(r);
    if (can_survey(one)) out.add(r);
  });
  return out;
}

// The partials of a list of tensors in the memory of the host.
std::vector<Partial> partials_of(const WorkList& work) {
  std::vector<Partial> out(work.partials);
  for (const Launch& launch : work.launches) run_on_host(launch, out.data());
  return out;
}

std::span<const Partial> range_of(const std::vector<Partial>& partials, PartialRange range) {
  return std::span(partials).subspan(range.first, range.count);
}

ReductionResult survey(const TensorView& view, const ReductionSet& reductions) {
  auto work = WorkList::of({&view, 1}, needs_absolute_deviations(reductions));
  EXPECT_TRUE(work.ok()) << work.error().message;
  const auto partials = partials_of(*work);
  ReductionResult result;
  finish_survey(view.dtype, range_of(partials, work->ranges[0]), {.reductions = reductions},
                result);
  return result;
}

// Bytes that begin at a multiple of a vector, plus the offset.
class Memory final {
 public:
  Memory(size_t offset, size_t size) : bytes_(offset + size + 16), size_(size) {
    begin_ = 16 - reinterpret_cast<uintptr_t>(bytes_.data()) % 16 + offset;
  }
  std::span<std::byte> used() { return {bytes_.data() + begin_, size_}; }

 private:
  Bytes bytes_;
  size_t size_;
  size_t begin_ = 0;
};

class Survey : public testing::TestWithParam<DType> {};

std::vector<size_t> lengths(size_t item) {
  const size_t group = 64 * kThreads / item;  // what a block reads with vectors at a time, or twice
  const size_t chunk = kLeastChunkBytes / item;
  return {1,    2,         7,         31,    255,       256,       257,
          1000, group - 1, group + 1, chunk, chunk - 1, chunk + 1, 2 * chunk + 77};
}

TEST_P(Survey, agrees_with_the_oracles) {
  const DType dtype = GetParam();
  const size_t item = size_of(dtype);
  Elements elements(static_cast<uint32_t>(dtype) + 7);
  for (const size_t length : lengths(item)) {
    for (const Flavour flavour : kFlavours) {
      for (const size_t offset : {size_t{0}, item}) {
        if (offset != 0 && length > 5000) continue;
        Memory memory(offset, length * item);
        elements.fill(dtype, flavour, memory.used());
        SCOPED_TRACE(testing::Message() << "length " << length << ", flavour "
                                        << static_cast<int>(flavour) << ", offset " << offset);
        const int64_t shape[] = {static_cast<int64_t>(length)};
        const TensorView view{.data = memory.used().data(), .dtype = dtype, .shape = shape};
        Case expected(dtype, memory.used());
        for (const bool all : {true, false}) {
          ReductionSet wanted = surveyed();
          if (!all) {  // the cheaper kernel
            wanted = {};
            surveyed().for_each([&](Reduction r) {
              if (!r.abs() || !has(r.kind().needs, Needs::deviations)) wanted.add(r);
            });
          }
          const ReductionResult result = survey(view, wanted);
          EXPECT_EQ(static_cast<int>(result.values.size()), wanted.size());
          expected.check_values(result);
          expected.check_counts(result);
        }
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST_P(Survey, gives_what_the_cpu_gives_of_views_with_gaps) {
  const DType dtype = GetParam();
  const auto item = static_cast<int64_t>(size_of(dtype));
  Elements elements(static_cast<uint32_t>(dtype) + 70);
  Memory memory(0, static_cast<size_t>(40 * 60 * 50 * item));
  elements.fill(dtype, Flavour::ordinary, memory.used());
  const std::byte* data = memory.used().data();
  struct Layout {
    const char* what;
    std::vector<int64_t> shape, strides;
    int64_t from = 0;
  };
  const Layout layouts[] = {
      {"every second", {60000}, {2}},
      {"transposed", {50, 60, 40}, {1, 50, 3000}},
      {"columns", {40, 60, 7}, {3000, 50, 3}, 5},
      {"backwards", {120000}, {-1}, 119999},
      {"backwards with gaps", {40, 20}, {-3000, -100}, 119999},
      {"repeated", {3, 50, 2}, {0, 7, 0}},
      {"one element, many axes", {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {9, 9, 9, 9, 9, 9, 9, 9, 9, 9}},
      {"no axes", {}, {}},
      {"empty", {3, 0, 2}, {0, 0, 0}},
      {"half empty, gaps over several chunks", {2, 50000}, {60000, 1}},
  };
  for (const Layout& layout : layouts) {
    SCOPED_TRACE(layout.what);
    std::vector<int64_t> strides;
    for (const int64_t stride : layout.strides) strides.push_back(stride * item);
    const TensorView view{.data = data + layout.from * item,
                          .dtype = dtype,
                          .shape = layout.shape,
                          .strides_bytes = strides};
    Bytes gathered(static_cast<size_t>(view.size_bytes()));
    gather(view, 0, gathered);
    const ReductionResult result = survey(view, surveyed());
    if (view.size() == 0) {
      EXPECT_TRUE(result.values.empty());
      continue;
    }
    Case expected(dtype, gathered);
    expected.check_values(result);
    expected.check_counts(result);
  }
}

std::vector<DType> surveyed_types() {
  std::vector<DType> out;
  for (const DType dtype : oracle::numeric_types()) {
    if (can_survey(dtype)) out.push_back(dtype);
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Types, Survey, testing::ValuesIn(surveyed_types()),
                         [](const auto& type) { return std::string(name_of(type.param)); });

TEST(SurveyTest, reads_every_element_type_but_complex_numbers_and_strings) {
  EXPECT_EQ(surveyed_types().size(), kDTypeCount - 3);
}

// An element far away is the worst shift there is.
TEST(SurveyTest, keeps_the_spread_of_values_after_an_outlier) {
  std::vector<double> values(5000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e6 + std::sin(static_cast<double>(i));
  values[0] = -1e9;
  std::vector<long double> exact(values.begin(), values.end());
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const Reduction variance = *parse_reduction("variance");
  ReductionSet wanted;
  wanted.add(variance);
  const auto result =
      survey({.data = values.data(), .dtype = DType::float64, .shape = shape}, wanted);
  const auto want = static_cast<double>(variance.kind().oracle(exact));
  EXPECT_NEAR(result.find(variance)->to_double(), want, 1e-11 * want);
}

TEST(SurveyTest, keeps_a_small_spread_far_from_zero) {
  std::vector<double> values(3 * kLeastChunkBytes / 8 + 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e9 + std::sin(static_cast<double>(i));
  std::vector<long double> exact(values.begin(), values.end());
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const Reduction spread = *parse_reduction("abs_std");
  ReductionSet wanted;
  wanted.add(spread);
  const auto result =
      survey({.data = values.data(), .dtype = DType::float64, .shape = shape}, wanted);
  const auto want = static_cast<double>(spread.kind().oracle(exact));
  EXPECT_NEAR(result.find(spread)->to_double(), want, 1e-9 * want);
}

// More tensors than one launch takes, of two element types, with and without gaps and elements.
TEST(SurveyTest, a_list_gives_each_tensor_its_own_results) {
  Elements elements(3);
  constexpr size_t kTensors = 2 * kMostItems + 5;
  std::vector<Bytes> memory;
  std::vector<std::vector<int64_t>> shapes, strides;
  std::vector<TensorView> views;
  for (size_t i = 0; i < kTensors; ++i) {
    const DType dtype = i % 3 == 0 ? DType::bfloat16 : DType::float32;
    const size_t length =
        i % 11 == 10 ? 0 : (i * i * 37) % 5000 + (i == 40 ? 6 * kLeastChunkBytes : 1);
    memory.emplace_back(2 * length * size_of(dtype));
    elements.fill(dtype, Flavour::ordinary, memory.back());
    shapes.push_back({static_cast<int64_t>(length)});
    strides.push_back({static_cast<int64_t>(size_of(dtype)) * (i % 50 == 7 ? 2 : 1)});
    views.push_back({.data = memory.back().data(), .dtype = dtype});
  }
  for (size_t i = 0; i < kTensors; ++i) {
    views[i].shape = shapes[i];
    views[i].strides_bytes = strides[i];
  }
  const auto work = WorkList::of(views, false);
  ASSERT_TRUE(work.ok());
  EXPECT_LT(work->launches.size(), size_t{15});
  const auto partials = partials_of(*work);
  ReductionSet wanted;
  for (const char* name : {"min", "max", "sum", "l1", "l2", "std"})
    wanted.add(*parse_reduction(name));
  ReductionResult result, expected;
  for (size_t i = 0; i < kTensors; ++i) {
    SCOPED_TRACE(i);
    finish_survey(views[i].dtype, range_of(partials, work->ranges[i]), {.reductions = wanted},
                  result);
    ASSERT_TRUE(reduce(views[i], {.reductions = wanted}, expected).ok());
    ASSERT_EQ(result.values.size(), expected.values.size());
    for (size_t k = 0; k < result.values.size(); ++k) {
      const double want = expected.values[k].second.to_double();
      EXPECT_NEAR(result.values[k].second.to_double(), want, 1e-6 * std::abs(want) + 1e-4);
      EXPECT_EQ(result.values[k].second.dtype, expected.values[k].second.dtype);
    }
  }
}

TEST(SurveyTest, chunks_grow_with_what_is_read_until_they_are_large) {
  const auto chunk_of = [](int64_t count) {
    const int64_t shape[] = {count};
    const float nothing = 0;  // is not read
    const TensorView view{.data = &nothing, .shape = shape};
    const auto work = WorkList::of({&view, 1}, false);
    return std::get<ItemList>(work->launches[0].arguments).chunk_bytes;
  };
  EXPECT_EQ(chunk_of(1), kLeastChunkBytes);
  EXPECT_EQ(chunk_of(int64_t{80} << 20), 128u << 10);
  EXPECT_EQ(chunk_of(int64_t{1} << 40), kMostChunkBytes);
}

TEST(SurveyTest, what_a_kernel_cannot_read_is_refused_with_the_reason) {
  std::vector<float> values(100);
  const int64_t shape[] = {3};
  const int64_t odd[] = {6};
  const auto reason = [](const TensorView& view) { return check_surveyable(view).error().message; };
  EXPECT_EQ(reason({.data = values.data(), .dtype = DType::complex64, .shape = shape}),
            "Elements of type complex64 are not read on a device.");
  EXPECT_EQ(reason({.data = values.data(), .shape = shape, .strides_bytes = odd}),
            "A stride of 6 bytes is no multiple of an element.");
  const auto* between = reinterpret_cast<const std::byte*>(values.data()) + 2;
  EXPECT_EQ(reason({.data = between, .shape = shape}),
            "The tensor does not begin at a whole element.");
  ReductionSet median;
  median.add(*parse_reduction("median"));
  EXPECT_FALSE(can_survey(median));
}

}  // namespace
}  // namespace smd::gpu
