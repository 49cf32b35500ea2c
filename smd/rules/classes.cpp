#include "smd/rules/classes.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "smd/rules/elements.h"

namespace smd::rules {
namespace {

constexpr double kLargestExact = 9e15;  // below, doubles are exact

bool is_class(double number) {
  return std::nearbyint(number) == number && std::fabs(number) < kLargestExact;
}

// The place of the largest number of each group of `width`.
std::vector<int64_t> largest_of(const std::vector<double>& numbers, size_t width) {
  std::vector<int64_t> out;
  out.reserve(numbers.size() / width);
  for (size_t first = 0; first < numbers.size(); first += width) {
    size_t best = 0;
    bool has_nan = false;
    for (size_t i = 0; i < width; ++i) {
      has_nan = has_nan || std::isnan(numbers[first + i]);
      if (numbers[first + i] > numbers[first + best]) best = i;
    }
    out.push_back(has_nan ? kNoClass : static_cast<int64_t>(best));
  }
  return out;
}

bool are_one_hot(const std::vector<double>& numbers, size_t width) {
  for (size_t first = 0; first < numbers.size(); first += width) {
    size_t ones = 0;
    for (size_t i = first; i < first + width; ++i) {
      if (numbers[i] != 0 && numbers[i] != 1) return false;
      ones += numbers[i] == 1;
    }
    if (ones != 1) return false;
  }
  return true;
}

Status check_real(const TensorView& tensor) {
  if (info_of(tensor.dtype).kind != DTypeKind::complex) return {};
  return Error{ErrorCode::unsupported, "Complex numbers are not classes."};
}

size_t last_axis(const TensorView& tensor) {
  return tensor.shape.empty() ? 1 : static_cast<size_t>(tensor.shape.back());
}

}  // namespace

Result<std::vector<int64_t>> label_classes(const TensorView& labels) {
  SMD_RETURN_IF_ERROR(check_real(labels));
  SMD_TRY(const auto numbers, to_doubles(labels));
  const size_t width = last_axis(labels);
  if (labels.shape.size() > 1 && width > 1 && are_one_hot(numbers, width)) {
    return largest_of(numbers, width);
  }
  std::vector<int64_t> out;
  out.reserve(numbers.size());
  for (double number : numbers) {
    if (!is_class(number)) {
      return Error{
          ErrorCode::unsupported,
          fmt::format("Labels must be whole numbers to be classes, and one is {:g}.", number)};
    }
    out.push_back(static_cast<int64_t>(number));
  }
  return out;
}

Result<std::vector<int64_t>> predicted_classes(const TensorView& predictions, bool is_scores) {
  SMD_RETURN_IF_ERROR(check_real(predictions));
  if (is_scores && last_axis(predictions) > 0) {
    SMD_TRY(const auto numbers, to_doubles(predictions));
    return largest_of(numbers, last_axis(predictions));
  }
  std::vector<int64_t> out;
  SMD_RETURN_IF_ERROR(for_each_block(predictions, [&](int64_t, std::span<const double> block) {
    for (double number : block) {
      const double nearest = std::floor(number + 0.5);
      out.push_back(std::fabs(nearest) < kLargestExact ? static_cast<int64_t>(nearest) : kNoClass);
    }
  }));
  return out;
}

Result<ClassPairs> read_class_pairs(const StepView& step, const TensorRow& labels,
                                    const TensorRow& predictions, Scores scores) {
  SMD_TRY(const TensorValue* label_value, step.value(labels));
  SMD_TRY(const TensorValue* prediction_value, step.value(predictions));
  ClassPairs out;
  SMD_TRY(out.labels, label_classes(label_value->view()));
  const TensorView view = prediction_value->view();
  const auto count = static_cast<size_t>(view.size());
  const size_t width = last_axis(view);
  const bool is_scores = scores == Scores::yes || (scores == Scores::if_needed && width > 1 &&
                                                   count == out.labels.size() * width);
  SMD_TRY(out.predictions, predicted_classes(view, is_scores));
  if (out.labels.size() != out.predictions.size()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("'{}' has {} predictions for the {} labels of '{}' at step {}.{}",
                             step.tensor(predictions), out.predictions.size(), out.labels.size(),
                             step.tensor(labels), step.info().step,
                             !is_scores && count == out.labels.size() * width
                                 ? " Its last axis seems to hold scores: give argmax=true."
                                 : "")};
  }
  return out;
}

}  // namespace smd::rules
