#pragma once

// Labels and predictions as numbers of classes. Pure functions.

#include <cstdint>
#include <limits>
#include <vector>

#include "smd/base/result.h"
#include "smd/rules/step_view.h"

namespace smd::rules {

// Of a prediction that is NaN: it is wrong whatever the label.
inline constexpr int64_t kNoClass = std::numeric_limits<int64_t>::min();

// Whether predictions hold one score for each class along their last axis.
enum class Scores : uint8_t {
  no,         // they are classes or, when floating, lie next to one: 0.5 belongs to 1
  yes,        // the largest score wins, the first of equal ones
  if_needed,  // yes, if there are so many more predictions than labels
};

// Labels of two or more axes of which the last one is one-hot count by the place of the one; others
// are classes themselves. `unsupported`: they are not whole numbers, so these are not classes.
Result<std::vector<int64_t>> label_classes(const TensorView& labels);
// `unsupported`: strings and complex numbers.
Result<std::vector<int64_t>> predicted_classes(const TensorView& predictions, bool is_scores);

// One of each for every sample.
struct ClassPairs {
  std::vector<int64_t> labels;
  std::vector<int64_t> predictions;
};
// The values of two tensors of one step. invalid_argument: the lengths differ. `unsupported`: see
// above. Other errors tell of damaged files.
Result<ClassPairs> read_class_pairs(const StepView& step, const TensorRow& labels,
                                    const TensorRow& predictions, Scores scores);

}  // namespace smd::rules
