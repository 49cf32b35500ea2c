#include "smd/rules/evaluation_means.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace smd::rules {

void LossMean::add(double loss) {
  has_any = true;
  if (!std::isfinite(loss)) return;
  sum += loss;
  ++count;
}

void EvaluationMeans::add(const StepView& step, std::span<const TensorRow* const> losses) {
  const Mode mode = step.info().mode;
  if (mode != Mode::train && mode != Mode::eval) return;
  for (const TensorRow* row : losses) {
    Sides& sides = sides_[{row->tensor, row->worker}];
    (mode == Mode::train ? sides.train : sides.eval).add(step.number(*row, Statistic::mean));
  }
  if (mode != Mode::eval || losses.empty()) return;
  is_open_ = true;
  last_step_ = step.info();
  last_secs_ = step.wall_secs();
}

std::vector<EvaluationMeans::Means> EvaluationMeans::close(const RunView& run) {
  is_open_ = false;
  std::vector<Means> found;
  for (auto& [key, sides] : sides_) {
    if (!sides.eval.has_any) continue;
    const Sides ended = std::exchange(sides, {});
    if (ended.train.count > 0 && ended.eval.count > 0) {
      found.push_back({key, ended.train, ended.eval});
    }
  }
  std::ranges::sort(found, {}, [&](const Means& means) {
    return std::pair<std::string_view, std::string_view>(run.tensor(means.key.first),
                                                         run.worker(means.key.second));
  });
  return found;
}

std::vector<EvaluationMeans::Means> EvaluationMeans::finish(const RunView& run, Hits& hits) {
  if (!is_open_) return {};
  hits.set_step(last_step_, last_secs_);
  return close(run);
}

}  // namespace smd::rules
