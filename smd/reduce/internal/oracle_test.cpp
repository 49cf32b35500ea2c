// Holds every instruction set against the oracles of all kinds, over element types, lengths,
// alignments and special values. A new kind is found and tested without a line here.

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/reduce_with.h"
#include "smd/reduce/oracle_case.h"

namespace smd::internal {
namespace {

using oracle::Case;
using oracle::Elements;
using oracle::Flavour;
using oracle::kFlavours;

std::vector<size_t> lengths() {
  std::vector<size_t> out;
  for (size_t i = 0; i <= 3 * 16 + 1; ++i) out.push_back(i);  // three vectors of 64 bytes
  for (size_t blocks : {1, 2, 3}) {
    for (size_t more : {0, 1, 17}) out.push_back(blocks * kBlockElements + more - 1);
  }
  for (size_t more : {0, 1, 17, 3000}) out.push_back(kLongBlockElements + more - 1);
  return out;
}

class Oracle : public testing::TestWithParam<DType> {};

TEST_P(Oracle, agrees_with_every_instruction_set) {
  const DType dtype = GetParam();
  const size_t item = size_of(dtype);
  Elements elements(static_cast<uint32_t>(dtype) + 1);
  ReductionResult result;
  size_t offset = 0;
  for (size_t length : lengths()) {
    for (Flavour flavour : kFlavours) {
      offset = (offset + 7) % 64;  // aligned or not, for vectors and for elements
      Bytes bytes(64 + length * item);
      const std::span<std::byte> used(bytes.data() + offset, length * item);
      elements.fill(dtype, flavour, used);
      Case expected(dtype, used);
      const int64_t shape[] = {static_cast<int64_t>(length)};
      const TensorView view{.data = used.data(), .dtype = dtype, .shape = shape};
      for (const Kernels* kernels : available_kernels()) {
        SCOPED_TRACE(testing::Message() << kernels->target << ", length " << length << ", flavour "
                                        << static_cast<int>(flavour) << ", offset " << offset);
        ASSERT_TRUE(reduce_with(*kernels, view, {all_reductions(), true}, result).ok());
        expected.check_values(result);
        expected.check_counts(result);
        const auto nan = contains_nan_with(*kernels, view);
        ASSERT_TRUE(nan.ok());
        EXPECT_EQ(*nan, result.nan_count > 0);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

// A reduction asked alone takes other loops than all of them together.
TEST_P(Oracle, agrees_with_each_reduction_alone) {
  const DType dtype = GetParam();
  const size_t item = size_of(dtype);
  Elements elements(static_cast<uint32_t>(dtype) + 100);
  ReductionResult result;
  for (size_t length : {size_t{1}, size_t{33}, kBlockElements + 5, kLongBlockElements + 5}) {
    for (Flavour flavour : kFlavours) {
      Bytes bytes(length * item);
      elements.fill(dtype, flavour, bytes);
      Case expected(dtype, bytes);
      const int64_t shape[] = {static_cast<int64_t>(length)};
      const TensorView view{.data = bytes.data(), .dtype = dtype, .shape = shape};
      all_reductions().for_each([&](Reduction r) {
        ReductionSet one;
        one.add(r);
        for (const Kernels* kernels : available_kernels()) {
          SCOPED_TRACE(testing::Message() << kernels->target << ", length " << length
                                          << ", flavour " << static_cast<int>(flavour));
          ASSERT_TRUE(reduce_with(*kernels, view, {one, false}, result).ok());
          expected.check_values(result);
          ASSERT_TRUE(reduce_with(*kernels, view, {{}, true}, result).ok());
          EXPECT_TRUE(result.values.empty());
          expected.check_counts(result);
        }
      });
      if (testing::Test::HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Oracle, testing::ValuesIn(oracle::numeric_types()),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace smd::internal
