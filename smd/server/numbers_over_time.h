#pragma once

// A series of numbers for a chart, with so many points that a screen shows them all: neighbours
// become buckets with mean, least and greatest. Plain values, pure functions but for reading.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/base/json.h"
#include "smd/base/result.h"
#include "smd/server/served_run.h"
#include "smd/server/statistic.h"

namespace smd::server {

struct SeriesPoint {
  Step first = 0;
  Step last = 0;
  double sum = 0;  // of the finite numbers
  double min = 0;
  double max = 0;
  uint32_t finite = 0;
  uint32_t nans = 0;
  uint32_t infs = 0;
};

// Steps with their numbers; at most `most` points of `bucket` steps each.
struct SeriesPoints {
  size_t bucket = 1;
  std::vector<SeriesPoint> points;
};
SeriesPoints make_points(std::span<const Step> steps, std::span<const double> numbers, size_t most);

// What several series have in common.
struct SeriesChoice {
  Mode mode = Mode::global;
  std::string worker;  // empty: the first that has it
  StepRange range;
  size_t points = 1000;
};

// Of each of the tensors that has the statistic at some step: the objects that openapi.yaml calls
// Series. Errors tell of damaged files.
Result<std::vector<Json>> read_series(const ServedRun& run, const RunFacts& facts,
                                      const std::vector<uint32_t>& tensors,
                                      const std::string& statistic, const SeriesChoice& choice);

}  // namespace smd::server
