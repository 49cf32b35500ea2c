#include "smd/server/numbers_over_time.h"

#include <algorithm>
#include <cmath>

#include "smd/reduce/reduction.h"
#include "smd/server/choice.h"
#include "smd/server/heat_map.h"
#include "smd/trial/matrix.h"

namespace smd::server {
namespace {

// Where the steps of the mode stand in the snapshot.
std::vector<uint32_t> rows_of(const Snapshot& snapshot, Mode mode, std::span<const Step> steps) {
  std::vector<uint32_t> out;
  size_t at = 0;
  if (mode == Mode::global) {
    for (const Step step : steps) {
      while (at + 1 < snapshot.row_count() && snapshot.row(at).info.step < step) ++at;
      out.push_back(static_cast<uint32_t>(at));
    }
    return out;
  }
  std::unordered_map<Step, uint32_t> known;
  for (uint32_t i = 0; i < snapshot.row_count(); ++i) {
    const StepInfo& info = snapshot.row(i).info;
    if (info.mode == mode) known.try_emplace(info.mode_step, i);
  }
  for (const Step step : steps) {
    const auto found = known.find(step);
    out.push_back(found == known.end() ? 0 : found->second);
  }
  return out;
}

Json json_of(const ServedRun& run, const RunFacts& facts, uint32_t tensor,
             const std::string& statistic, const SeriesChoice& choice, const SeriesPoints& series) {
  const Model::Tensor* const about = facts.model->find(tensor);
  std::vector<Step> firsts;
  for (const SeriesPoint& point : series.points) firsts.push_back(point.first);
  const auto rows = rows_of(*facts.snapshot, choice.mode, firsts);
  const auto times = run.wall_secs(*facts.snapshot, rows);
  Json global = Json::array();
  Json last = Json::array();
  Json wall = Json::array();
  Json mean = Json::array();
  Json least = Json::array();
  Json most = Json::array();
  Json nans = Json::array();
  Json infs = Json::array();
  for (size_t i = 0; i < series.points.size(); ++i) {
    const SeriesPoint& point = series.points[i];
    const bool has_any = point.finite > 0;
    global.push_back(facts.snapshot->row(rows[i]).info.step);
    last.push_back(point.last);
    wall.push_back(finite(times[i]));
    mean.push_back(has_any ? finite(point.sum / point.finite) : Json(nullptr));
    least.push_back(has_any ? Json(point.min) : Json(nullptr));
    most.push_back(has_any ? Json(point.max) : Json(nullptr));
    nans.push_back(point.nans);
    infs.push_back(point.infs);
  }
  return {{"tensor", facts.snapshot->names().tensors[tensor]},
          {"id", tensor},
          {"role", name_of(about == nullptr ? Role::other : about->role)},
          {"statistic", statistic},
          {"worker", choice.worker.empty() ? Json(nullptr) : Json(choice.worker)},
          {"mode", name_of(choice.mode)},
          {"bucket", series.bucket},
          {"step", firsts},
          {"global_step", std::move(global)},
          {"last_step", std::move(last)},
          {"wall_secs", std::move(wall)},
          {"mean", std::move(mean)},
          {"min", std::move(least)},
          {"max", std::move(most)},
          {"nans", std::move(nans)},
          {"infs", std::move(infs)}};
}

}  // namespace

SeriesPoints make_points(std::span<const Step> steps, std::span<const double> numbers,
                         size_t most) {
  SeriesPoints out{.bucket = bucket_size(steps.size(), most), .points = {}};
  for (size_t i = 0; i < steps.size(); ++i) {
    if (i % out.bucket == 0) out.points.push_back({.first = steps[i]});
    SeriesPoint& point = out.points.back();
    point.last = steps[i];
    const double number = numbers[i];
    if (std::isnan(number)) {
      ++point.nans;
    } else if (std::isinf(number)) {
      ++point.infs;
    } else {
      point.min = point.finite == 0 ? number : std::min(point.min, number);
      point.max = point.finite == 0 ? number : std::max(point.max, number);
      point.sum += number;
      ++point.finite;
    }
  }
  return out;
}

Result<std::vector<Json>> read_series(const ServedRun& run, const RunFacts& facts,
                                      const std::vector<uint32_t>& tensors,
                                      const std::string& statistic, const SeriesChoice& choice) {
  SMD_TRY(const Statistic found, Statistic::find(facts, statistic));
  std::vector<uint32_t> having;
  for (const uint32_t id : tensors) {
    const Model::Tensor* const tensor = facts.model->find(id);
    if (tensor != nullptr && found.is_of(*tensor)) having.push_back(id);
  }
  std::vector<Json> out;
  if (having.empty()) return out;
  std::vector<Step> steps;
  std::vector<double> numbers;
  const auto add = [&](uint32_t tensor) {
    if (steps.empty()) return;
    out.push_back(
        json_of(run, facts, tensor, statistic, choice, make_points(steps, numbers, choice.points)));
  };
  const bool is_exact = statistic == "value" || facts.snapshot->find_slot(statistic, false) ||
                        parse_reduction(statistic).ok();
  const Statistic::Query query{.mode = choice.mode, .worker = choice.worker, .range = choice.range};
  if (is_exact) {
    SMD_RETURN_IF_ERROR(found.check_cost(facts, query, having));
    // In double precision, which tables of heat maps do not have.
    SMD_TRY(const Matrix matrix, read_matrix(*run.trial(), {.reduction = statistic,
                                                            .tensors = having,
                                                            .mode = choice.mode,
                                                            .worker = choice.worker,
                                                            .steps = choice.range,
                                                            .incomplete = true}));
    for (size_t row = 0; row < having.size(); ++row) {
      steps.clear();
      numbers.clear();
      for (size_t column = 0; column < matrix.columns(); ++column) {
        if (!matrix.has(row, column)) continue;
        steps.push_back(matrix.steps[column]);
        numbers.push_back(matrix.number(row, column));
      }
      add(having[row]);
    }
    return out;
  }
  NumberTable table{.tensors = having, .steps = {}, .numbers = {}};
  SMD_RETURN_IF_ERROR(found.read(run, facts, query, table));
  for (size_t i = 0; i < having.size(); ++i) {
    steps.clear();
    numbers.clear();
    for (size_t row = 0; row < table.steps.size(); ++row) {
      const float number = table.row(row)[i];
      if (is_missing(number)) continue;
      steps.push_back(table.steps[row]);
      numbers.push_back(number);
    }
    add(having[i]);
  }
  return out;
}

}  // namespace smd::server
