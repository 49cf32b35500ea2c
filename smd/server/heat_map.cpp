#include "smd/server/heat_map.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace smd::server {
namespace {

constexpr size_t kHeadBytes = 64;
constexpr size_t kAlignment = 8;
constexpr uint32_t kOneTensor = 1;
constexpr uint32_t kOneStep = 2;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What is known of the numbers of one cell so far.
struct Cell {
  double sum = 0;
  float min = std::numeric_limits<float>::infinity();
  float max = -std::numeric_limits<float>::infinity();
  uint32_t finite = 0;
  uint32_t nonfinite = 0;
};

class BlockWriter final {
 public:
  template <typename T>
  void put(size_t offset, T value) {
    std::memcpy(out_.data() + offset, &value, sizeof value);
  }
  // Room for so many, at a multiple of the alignment; where it begins.
  template <typename T>
  size_t add(size_t count) {
    const size_t begin = (out_.size() + kAlignment - 1) / kAlignment * kAlignment;
    out_.resize(begin + count * sizeof(T), '\0');
    return begin;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

}  // namespace

std::string heat_map(const NumberTable& table, const HeatMapOptions& options) {
  const size_t tensors = options.tensors.size();
  const size_t steps = options.end_step - options.first_step;
  const size_t per_row = bucket_size(tensors, options.most_rows);
  const size_t per_column = bucket_size(steps, options.most_columns);
  const size_t rows = (tensors + per_row - 1) / per_row;
  const size_t columns = (steps + per_column - 1) / per_column;

  // Where the tensors stand in a row of the table.
  std::vector<uint32_t> places(tensors);
  uint32_t most_id = 0;
  for (const uint32_t id : table.tensors) most_id = std::max(most_id, id);
  std::vector<uint32_t> by_id(size_t{most_id} + 1, kNone);
  for (uint32_t i = 0; i < table.tensors.size(); ++i) by_id[table.tensors[i]] = i;
  for (size_t i = 0; i < tensors; ++i) places[i] = by_id[options.tensors[i]];

  BlockWriter out;
  const size_t head = out.add<char>(kHeadBytes);
  const size_t ids = out.add<uint32_t>(tensors);
  const size_t bounds = out.add<uint32_t>(rows + 1);
  const size_t first_steps = out.add<int64_t>(columns);
  const size_t last_steps = out.add<int64_t>(columns);
  std::vector<std::pair<uint32_t, size_t>> channels;  // which, and where
  for (const uint32_t channel : {kMeanChannel, kMinChannel, kMaxChannel}) {
    if ((options.channels & channel) != 0)
      channels.emplace_back(channel, out.add<float>(rows * columns));
  }
  const size_t nonfinite = out.add<uint16_t>(rows * columns);

  for (size_t i = 0; i < tensors; ++i) out.put(ids + i * 4, options.tensors[i]);
  for (size_t r = 0; r <= rows; ++r) {
    out.put(bounds + r * 4, static_cast<uint32_t>(std::min(tensors, r * per_row)));
  }
  float least = kNan;
  float most = kNan;
  float least_positive = kNan;
  std::vector<Cell> cells(rows);
  for (size_t c = 0; c < columns; ++c) {
    const size_t begin = options.first_step + c * per_column;
    const size_t end = std::min(options.end_step, begin + per_column);
    out.put(first_steps + c * 8, int64_t{table.steps[begin]});
    out.put(last_steps + c * 8, int64_t{table.steps[end - 1]});
    std::fill(cells.begin(), cells.end(), Cell());
    for (size_t s = begin; s < end; ++s) {
      const auto numbers = table.row(s);
      for (size_t r = 0, i = 0; r < rows; ++r) {
        Cell cell = cells[r];
        for (const size_t row_end = std::min(tensors, i + per_row); i < row_end; ++i) {
          const float number = numbers[places[i]];
          if (std::isfinite(number)) {
            cell.sum += double{number};
            cell.min = std::min(cell.min, number);
            cell.max = std::max(cell.max, number);
            ++cell.finite;
          } else if (!is_missing(number)) {
            ++cell.nonfinite;
          }
        }
        cells[r] = cell;
      }
    }
    for (size_t r = 0; r < rows; ++r) {
      const Cell& cell = cells[r];
      const bool has_any = cell.finite > 0;
      const float mean = has_any ? static_cast<float>(cell.sum / cell.finite) : kNan;
      if (has_any) {
        least = std::fmin(least, mean);
        most = std::fmax(most, mean);
        if (mean > 0) least_positive = std::fmin(least_positive, mean);
      }
      for (const auto& [channel, where] : channels) {
        const float number = channel == kMeanChannel  ? mean
                             : !has_any               ? kNan
                             : channel == kMinChannel ? cell.min
                                                      : cell.max;
        out.put(where + (r * columns + c) * 4, number);
      }
      out.put(nonfinite + (r * columns + c) * 2,
              static_cast<uint16_t>(std::min<uint32_t>(cell.nonfinite, UINT16_MAX)));
    }
  }

  out.put(head, uint32_t{0x48444D53});  // "SMDH"
  out.put(head + 4, uint16_t{1});
  out.put(head + 6, uint16_t{kHeadBytes});
  out.put(head + 8, static_cast<uint32_t>(rows));
  out.put(head + 12, static_cast<uint32_t>(columns));
  out.put(head + 16, options.channels);
  out.put(head + 20, (per_row == 1 ? kOneTensor : 0) | (per_column == 1 ? kOneStep : 0));
  out.put(head + 24, options.revision);
  out.put(head + 32, static_cast<uint32_t>(tensors));
  out.put(head + 36, options.choice_size);
  out.put(head + 40, static_cast<uint32_t>(steps));
  out.put(head + 44, options.catalogue);
  out.put(head + 48, least);
  out.put(head + 52, most);
  out.put(head + 56, least_positive);
  out.put(head + 60, 0.0F);
  return out.take();
}

}  // namespace smd::server
