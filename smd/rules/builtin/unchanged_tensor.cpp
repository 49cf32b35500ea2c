#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <tuple>

#include "smd/rules/closeness.h"
#include "smd/rules/held_values.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "UnchangedTensor";
constexpr size_t kMostListed = 32;

class UnchangedTensor final : public Rule {
 public:
  UnchangedTensor(Selection tensors, size_t window, const Tolerance& tolerance, HeldValues values)
      : tensors_(std::move(tensors)),
        window_(window),
        tolerance_(tolerance),
        values_(std::move(values)) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return tensors_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* now, step.value(row));
      if (now->dtype == DType::string || now->view().size() == 0) return {};
      Window& past = past_[{row.tensor, tensors_.owner(row), step.info().mode}];
      const bool is_full = past.size() + 1 == window_;
      has_judged_ = has_judged_ || is_full;
      HeldValue kept;
      if (is_full) {
        SMD_TRY(const bool is_same_as_last, judge(step, row, *now, past, hits));
        if (is_same_as_last) kept = past.back().value;  // one memory for what does not change
        past.pop_front();
      }
      if (kept == nullptr) kept = values_.hold(*now, step.tensor(row));
      if (kept == nullptr) {
        past.clear();
      } else {
        past.push_back({step.info().step, std::move(kept)});
      }
      return {};
    });
  }

  std::optional<std::string> missing() const override {
    if (has_judged_) return std::nullopt;
    return fmt::format("It needs a tensor at {} steps of one mode, and the run has fewer.",
                       window_);
  }

 private:
  struct Past {
    Step step = 0;
    HeldValue value;
  };
  using Window = std::deque<Past>;  // the steps before, the oldest first

  // Whether the values are those of the step before to the bit.
  Result<bool> judge(const StepView& step, const TensorRow& row, const TensorValue& now,
                     const Window& past, Hits& hits) const {
    double largest = 0;
    bool is_same_as_last = false;
    // The newest first, as what moves differs from it already.
    for (auto at = past.rbegin(); at != past.rend(); ++at) {
      const TensorValue& before = *at->value;
      if (before.shape != now.shape) return is_same_as_last;
      SMD_TRY(const Closeness found,
              compare(now.view(), before.view(), tolerance_, Thoroughness::until_one_differs));
      if (!found.all_close()) return is_same_as_last;
      largest = std::max(largest, found.max_absolute);
      if (at == past.rbegin()) {
        is_same_as_last =
            now.dtype == before.dtype && std::ranges::equal(now.elements, before.elements);
      }
    }
    const bool is_first = hits.empty();
    const auto steps = static_cast<double>(window_);
    Violation* hit = hits.add(step, row, "unchanged_steps", steps, Op::equal, steps);
    if (hit == nullptr) return is_same_as_last;
    Json listed = Json::array();
    for (const Past& one : past) {
      if (listed.size() + 1 < kMostListed) listed.push_back(one.step);
    }
    listed.push_back(step.info().step);
    hit->with("steps", std::move(listed)).with("max_abs_difference", largest);
    if (is_first) {
      hits.say(fmt::format("'{}' did not change over its last {} saved steps, {} to {}.",
                           step.tensor(row), window_, past.front().step, step.info().step));
    }
    return is_same_as_last;
  }

  Selection tensors_;
  const size_t window_;  // steps, with the one that is judged
  const Tolerance tolerance_;
  HeldValues values_;
  std::map<std::tuple<uint32_t, uint32_t, Mode>, Window> past_;
  bool has_judged_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "num_steps",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "Fires when a tensor is the same in this many saved steps in a row.",
     .range = "[2,]"},
    kRtol,
    kAtol,
    {.name = "equal_nan",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "NaN is the same as NaN."},
    kMaxMemoryMib,
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  SMD_RETURN_IF_ERROR(require_selector(kName, parameters));
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .values = true},
                                          parameters));
  return make_rule<UnchangedTensor>(
      std::move(tensors), static_cast<size_t>(parameters.integer("num_steps")),
      tolerance_of(parameters), HeldValues(kName, parameters, context.log));
}

}  // namespace

extern const RuleKind unchanged_tensor;
const RuleKind unchanged_tensor = {
    .name = kName,
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "A tensor has stopped changing.",
    .sees =
        "Each selected tensor against its values at the num_steps - 1 saved steps before, in "
        "the same mode; fires when all elements are the same as in each of them. Floating "
        "numbers may differ by atol + rtol * |older value|; integers must be equal unless you "
        "give a tolerance.",
    .why =
        "Weights that stay the same do not learn, and outputs or losses that stay the same say "
        "that the model ignores its input.",
    .fix =
        "For weights, check that the layer requires gradients, that the optimizer holds these "
        "very parameters and that its learning rate is above zero. For outputs and losses, "
        "check that each step gets another batch. Leave out layers that are frozen on purpose "
        "with exclude_regex.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
