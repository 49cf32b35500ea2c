#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/fingerprint.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

enum class State : uint8_t { unknown, equal, different, diverged };

class RankDivergence final : public Rule {
 public:
  RankDivergence(Selection weights, Selection shards, double tolerance, bool replicated)
      : weights_(std::move(weights)),
        shards_(std::move(shards)),
        tolerance_(tolerance),
        replicated_(replicated) {}

  std::vector<Selection*> selections() override { return {&weights_, &shards_}; }

  Status observe(const StepView& step, Hits& hits) override {
    SMD_RETURN_IF_ERROR(shards_.for_each(
        step, [&](const TensorRow& row) -> Status { return read_shards(step, row); }));
    group_.clear();
    worst_ = Severity::info;
    const Status judged = weights_.for_each(step, [&](const TensorRow& row) -> Status {
      if (!group_.empty() && group_.front()->tensor != row.tensor) {
        SMD_RETURN_IF_ERROR(judge(step, hits));
        group_.clear();
      }
      group_.push_back(&row);
      return {};
    });
    return judged.ok() ? judge(step, hits) : judged;
  }

 private:
  Status read_shards(const StepView& step, const TensorRow& row) {
    SMD_TRY(const TensorValue* value, step.value(row));
    if (value->strings.empty() || value->strings.front() == last_shards_) return {};
    last_shards_ = value->strings.front();
    SMD_TRY(const Json parts, parse_json(last_shards_, "smdebug/shards"));
    for (const auto& [name, part] : parts.items()) sharded_.insert(name);
    return {};
  }

  // The rows of one tensor.
  Status judge(const StepView& step, Hits& hits) {
    if (group_.size() < 2) return {};
    const TensorRow& first = *group_.front();
    State& state = states_.at(first.tensor, 0).state;
    if (state == State::different || state == State::diverged) return {};
    if (sharded_.contains(step.tensor(first))) return {};
    prints_.clear();
    for (const TensorRow* row : group_) {
      SMD_TRY(auto print, Fingerprint::of(step, *row));
      prints_.push_back(std::move(print));
    }
    // Most workers are right, if any.
    size_t best = 0;
    size_t most = 0;
    Comparison difference;
    for (size_t i = 0; i < prints_.size(); ++i) {
      size_t same = 0;
      for (size_t j = 0; j < prints_.size(); ++j) {
        const Comparison one = compare(prints_[i], prints_[j], tolerance_);
        if (i != j && one.outcome == Comparison::Outcome::unlike) {
          // Parts of a whole, or nothing that could be compared.
          if (!prints_[i].empty() && !prints_[j].empty()) state = State::different;
          return {};
        }
        same += one.outcome == Comparison::Outcome::equal ? 1 : 0;
        if (one.outcome == Comparison::Outcome::different) difference = one;
      }
      if (same > most) best = i, most = same;
      if (most > prints_.size() / 2) break;
    }
    if (most == prints_.size()) {
      state = State::equal;
      return {};
    }
    const bool is_expected = state == State::unknown && !replicated_;
    state = is_expected ? State::different : State::diverged;
    return report(step, best, is_expected, difference, hits);
  }

  Status report(const StepView& step, size_t best, bool is_expected, const Comparison& how,
                Hits& hits) {
    const TensorRow& norm = *group_[best];
    std::vector<std::string> others;
    for (size_t i = 0; i < group_.size(); ++i) {
      if (compare(prints_[best], prints_[i], tolerance_).outcome == Comparison::Outcome::equal) {
        continue;
      }
      others.push_back(step.worker(*group_[i]));
      double distance = how.difference;
      if (how.by == "values") {
        SMD_TRY(distance, largest_difference(step, norm, *group_[i]));
      }
      Violation* hit = hits.add(step, *group_[i], how.by == "values" ? "max_difference" : how.by,
                                distance, Op::above, 0);
      if (hit == nullptr) continue;
      hit->with("compared", Json(how.by == "values" ? "values" : "statistics"))
          .with("equal_workers", Json(equal_workers(step, best)));
    }
    worst_ = std::max(worst_, is_expected ? Severity::info : Severity::error);
    hits.set_severity(worst_);
    if (is_told_at_ == step.info().step && is_expected) return {};
    is_told_at_ = step.info().step;
    hits.say(is_expected
                 ? fmt::format("'{}' differs between workers from the first saved step on: it is "
                               "held in parts, or it was never made equal.",
                               step.tensor(norm))
                 : fmt::format("'{}' is no longer equal on all workers: {} differ{} from {}.",
                               step.tensor(norm), fmt::join(others, ", "),
                               others.size() == 1 ? "s" : "",
                               fmt::join(equal_workers(step, best), ", ")));
    return {};
  }

  std::vector<std::string> equal_workers(const StepView& step, size_t best) const {
    std::vector<std::string> out;
    for (size_t i = 0; i < group_.size(); ++i) {
      const auto outcome = compare(prints_[best], prints_[i], tolerance_).outcome;
      if (outcome == Comparison::Outcome::equal) out.push_back(step.worker(*group_[i]));
    }
    return out;
  }

  static Result<double> largest_difference(const StepView& step, const TensorRow& a,
                                           const TensorRow& b) {
    SMD_TRY(const TensorValue* one, step.value(a));
    SMD_TRY(const auto left, to_doubles(one->view()));
    SMD_TRY(const TensorValue* other, step.value(b));
    SMD_TRY(const auto right, to_doubles(other->view()));
    double out = 0;
    for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
      const double distance = std::fabs(left[i] - right[i]);
      if (!(distance <= out)) out = distance;
      if (std::isnan(out)) break;
    }
    return out;
  }

  struct Known {
    State state = State::unknown;
  };

  Selection weights_;
  Selection shards_;
  double tolerance_;
  bool replicated_;
  RowTable<Known> states_;  // by tensor alone
  std::string last_shards_;
  std::set<std::string> sharded_;
  std::vector<const TensorRow*> group_;
  std::vector<Fingerprint> prints_;  // of group_
  Severity worst_ = Severity::info;  // of this step
  Step is_told_at_ = -1;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    kAllWorkers,
    {.name = "tolerance",
     .type = ParameterType::real,
     .default_text = "1e-6",
     .help = "How far saved sums and norms may be apart, relative to the larger one; values, "
             "minima and maxima must be the same.",
     .range = "[0,1)"},
    {.name = "replicated",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "All selected tensors must be equal from the first saved step on; without it, tensors "
             "that differ at once are taken for parts of a whole and reported as information."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions options{.what = "weights",
                           .collections = parameters.list("collection_names"),
                           .patterns = parameters.list("tensor_regex"),
                           .context = fingerprint_statistics()};
  if (options.collections.empty() && options.patterns.empty()) {
    options.collections = {std::string(collection_keys::kWeights),
                           std::string(collection_keys::kBiases)};
    options.exclude = {"^gradient", "^feature_importance"};
  }
  SMD_TRY(auto weights, Selection::create(std::move(options), parameters));
  // Where workers say which tensors they hold parts of: JSON, by tensor name.
  SMD_TRY(auto shards, Selection::create({.what = "places of parts",
                                          .patterns = {"^smdebug/shards$"},
                                          .values = true,
                                          .is_required = false},
                                         parameters));
  return make_rule<RankDivergence>(std::move(weights), std::move(shards),
                                   parameters.real("tolerance"), parameters.boolean("replicated"));
}

}  // namespace

extern const RuleKind rank_divergence;
const RuleKind rank_divergence = {
    .name = "RankDivergence",
    .group = RuleGroup::deep_learning,
    .severity = Severity::error,
    .summary = "Weights that were equal on all workers have become different.",
    .sees =
        "Each weight on every worker that saved it at the step: the elements where they were "
        "saved, else all saved statistics; fires at the first step at which a weight that was "
        "equal on all workers is not. Tensors that are recorded in parts are left out.",
    .why =
        "Data-parallel training relies on equal weights. Once they differ, every worker trains "
        "a model of its own, and the one that is saved is not the one that the loss was "
        "computed for.",
    .fix =
        "Look at what the named workers did differently in the step before: gradient clipping, "
        "a skipped or unsynchronised step, a forward that bypasses the data-parallel wrapper, "
        "or a faulty device. Restore all workers from one checkpoint.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
