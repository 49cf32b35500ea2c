#pragma once

// A statistic of many tensors over many steps, made small enough for a screen, as the bytes that
// docs/reference/http.md describes. Pure functions.

#include <cstdint>
#include <string>
#include <vector>

#include "smd/server/number_table.h"

namespace smd::server {

enum Channel : uint32_t { kMeanChannel = 1, kMinChannel = 2, kMaxChannel = 4 };

struct HeatMapOptions {
  // Of the table, in the order of the rows.
  std::vector<uint32_t> tensors;
  uint32_t choice_size = 0;  // tensors there are to choose from
  size_t first_step = 0;     // positions in the table's steps, half open
  size_t end_step = 0;
  uint32_t most_rows = 1000;
  uint32_t most_columns = 1000;
  uint32_t channels = kMeanChannel;
  uint64_t revision = 0;
  uint32_t catalogue = 0;
};

std::string heat_map(const NumberTable& table, const HeatMapOptions& options);

// How many neighbours become one, so that there are at most `most`.
inline size_t bucket_size(size_t count, size_t most) {
  return count == 0 ? 1 : (count + most - 1) / most;
}

}  // namespace smd::server
