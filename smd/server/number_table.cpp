#include "smd/server/number_table.h"

#include <algorithm>
#include <limits>

namespace smd::server {
namespace {

// A tile of the matrix fits the first cache.
constexpr size_t kTile = 32;

template <typename NumberAt>
void transpose(size_t rows, size_t first, size_t columns, NumberAt&& number_at, float* out) {
  const size_t width = rows;
  for (size_t c0 = 0; c0 < columns; c0 += kTile) {
    const size_t c1 = std::min(columns, c0 + kTile);
    for (size_t r0 = 0; r0 < rows; r0 += kTile) {
      const size_t r1 = std::min(rows, r0 + kTile);
      for (size_t r = r0; r < r1; ++r) {
        for (size_t c = c0; c < c1; ++c) out[c * width + r] = number_at(r, first + c);
      }
    }
  }
}

}  // namespace

float to_float(double number) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (std::isnan(number)) return std::numeric_limits<float>::quiet_NaN();
  if (std::isinf(number)) return static_cast<float>(number);
  return static_cast<float>(std::clamp(number, -kMost, kMost));
}

std::span<float> NumberTable::add_row(Step step) {
  steps.push_back(step);
  numbers.resize(numbers.size() + tensors.size(), missing_number());
  return std::span(numbers).last(tensors.size());
}

void NumberTable::append(const Matrix& matrix) {
  size_t first = 0;
  while (!steps.empty() && first < matrix.columns() && matrix.steps[first] <= steps.back()) ++first;
  const size_t columns = matrix.columns() - first;
  const size_t begin = numbers.size();
  numbers.resize(begin + columns * tensors.size());
  float* const out = numbers.data() + begin;
  if (matrix.dtype == DType::float32 && matrix.present.empty()) {
    const auto* const from = reinterpret_cast<const float*>(matrix.elements.data());
    const size_t width = matrix.columns();
    transpose(
        matrix.rows(), first, columns,
        [&](size_t r, size_t c) {
          const float number = from[r * width + c];
          return is_missing(number) ? std::numeric_limits<float>::quiet_NaN() : number;
        },
        out);
  } else {
    transpose(
        matrix.rows(), first, columns,
        [&](size_t r, size_t c) {
          return matrix.has(r, c) ? to_float(matrix.number(r, c)) : missing_number();
        },
        out);
  }
  steps.insert(steps.end(), matrix.steps.begin() + static_cast<std::ptrdiff_t>(first),
               matrix.steps.end());
}

void NumberTable::cut(Step step) {
  const auto end = std::lower_bound(steps.begin(), steps.end(), step);
  steps.erase(end, steps.end());
  numbers.resize(steps.size() * tensors.size());
}

}  // namespace smd::server
