#pragma once

// The first tensor of a training that held a NaN or an infinity, and those of the same step that
// came after it. Fed in the order in which tensors are seen, which is the order of execution. Costs
// a look at numbers that were computed anyway; only a tensor that looks bad is read again. One
// thread at a time.

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/base/result.h"
#include "smd/reduce/nonfinite.h"
#include "smd/reduce/reduce.h"
#include "smd/types/step.h"

namespace smd {

// Where a tensor was made, said by whoever knows.
struct CallSite {
  std::string module = {};
  std::string file = {};
  int64_t line = 0;  // 0: not known
  std::string text = {};
  std::string note = {};  // a full sentence about what is not known
};

struct BadTensor {
  std::string name;
  std::optional<NonFinite> counts;  // nullopt: only a result of the tensor was seen, not its values
};

// Additive masks hold -inf on purpose. So a tensor that holds no other non-finite value, and did so
// in the first step of a mode, is taken for one and never counts.
class BadTensors final {
 public:
  // Whether anything is still looked for: not after the step of the first bad tensor.
  bool is_looking() const { return !reported_; }

  // The results of a pass over a tensor; true: it is the first bad one. Errors are those of
  // reading.
  Result<bool> see(const StepInfo& step, std::string_view name, const TensorView& tensor,
                   const ReductionResult& results);
  // Its counts, from elsewhere.
  bool see(const StepInfo& step, std::string_view name, const NonFinite& counts);
  // Results alone, computed elsewhere.
  bool see(const StepInfo& step, std::string_view name,
           std::span<const std::pair<std::string, Number>> results);

  // Found and not yet reported.
  bool is_found() const { return !bad_.empty() && !reported_; }
  const StepInfo& step() const { return step_; }
  // The first one, then those of its step that came after it, at most kListed. Those of later
  // steps, seen before the first one is reported, are none of them.
  const std::vector<BadTensor>& tensors() const { return bad_; }
  int64_t count() const { return count_; }
  const CallSite& call_site() const { return call_site_; }
  void set_call_site(CallSite site) { call_site_ = std::move(site); }

  // Tensors that are taken for masks.
  const std::set<std::string, std::less<>>& masks() const { return masks_; }
  // A step in which tensors were seen is over.
  void end_step(Mode mode) { mode_seen_[index_of(mode)] = true; }

  // The step is over and the finding was handed on.
  void mark_reported() { reported_ = true; }

  static constexpr size_t kListed = 100;

 private:
  bool add(const StepInfo& step, BadTensor bad);
  bool is_mask(const StepInfo& step, std::string_view name);

  StepInfo step_;
  std::vector<BadTensor> bad_;
  int64_t count_ = 0;
  CallSite call_site_;
  std::set<std::string, std::less<>> masks_;
  std::array<bool, kModes.size()> mode_seen_{};
  bool reported_ = false;
};

}  // namespace smd
