#pragma once

// The mean of each loss in training, and in the evaluation that follows. One thread at a time.

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "smd/rules/hit.h"
#include "smd/rules/step_view.h"

namespace smd::rules {

// Of the finite losses only.
struct LossMean {
  double sum = 0;
  int64_t count = 0;
  bool has_any = false;  // or not finite

  void add(double loss);
  double value() const { return sum / static_cast<double>(count); }
};

class EvaluationMeans final {
 public:
  using Key = std::pair<uint32_t, uint32_t>;  // tensor, worker
  struct Means {
    Key key;
    LossMean train;  // since the evaluation before
    LossMean eval;
  };

  // Whether an evaluation goes on that this mode ends.
  bool is_ended_by(Mode mode) const { return is_open_ && mode != Mode::eval; }
  // Takes the losses of a step, after close() if it ends an evaluation.
  void add(const StepView& step, std::span<const TensorRow* const> losses);
  // Ends the evaluation: losses that have finite values on both sides, by names and workers.
  std::vector<Means> close(const RunView& run);
  // The same when the run ends; hits belong to the last step of the evaluation. Empty: there is
  // none.
  std::vector<Means> finish(const RunView& run, Hits& hits);

 private:
  struct Sides {
    LossMean train, eval;
  };

  std::map<Key, Sides> sides_;
  bool is_open_ = false;
  StepInfo last_step_;  // of the evaluation
  double last_secs_ = 0;
};

}  // namespace smd::rules
