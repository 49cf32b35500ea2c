#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>

#include "smd/rules/closeness.h"
#include "smd/rules/number_text.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "SimilarAcrossRuns";

struct Options {
  Tolerance tolerance;
  bool fires_when_missing = false;
  double timeout_secs = 0;
  bool is_first_worker = true;
};

// A run to compare with, which may still be growing.
class OtherRun final {
 public:
  OtherRun(std::shared_ptr<Trial> trial, double timeout_secs, std::shared_ptr<const Clock> clock)
      : trial_(std::move(trial)),
        name_(trial_->name()),
        timeout_secs_(timeout_secs),
        clock_(std::move(clock)) {}

  const std::string& name() const { return name_; }
  bool has_begun() const { return trial_->is_open(); }

  // Waits until the step is there or known to be absent. False: it is neither at the deadline.
  Result<bool> wait_for(Step step) {
    snapshot_ = trial_->snapshot();
    if (is_decided(step)) return true;
    const size_t known = snapshot_->row_count();
    SMD_RETURN_IF_ERROR(refresh());
    // A run that has not moved since it was waited for in vain may be dead.
    if (has_given_up_ && snapshot_->row_count() == known) return is_decided(step);
    const auto deadline =
        clock_->now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(timeout_secs_));
    has_given_up_ = false;
    while (!is_decided(step)) {
      if (clock_->now() >= deadline || !trial_->wait(deadline)) {
        has_given_up_ = true;
        break;
      }
      SMD_RETURN_IF_ERROR(refresh());
    }
    return is_decided(step);
  }

  // nullopt: it does not have it. Without a worker the first that has it counts.
  Result<std::optional<TensorValue>> read(Step step, std::string_view tensor,
                                          std::optional<std::string_view> worker) const {
    std::optional<TensorValue> out;
    const StepRow* row = snapshot_->find_row(step);
    const auto number = snapshot_->find_tensor(tensor);
    if (row == nullptr || !number) return out;
    std::optional<uint32_t> from;
    if (worker && snapshot_->workers().size() > 1) {
      from = snapshot_->names().workers.find(*worker);
      if (!from) return out;
    }
    const auto at = snapshot_->find(*row, *number, Slot::value(), from);
    if (!at) return out;
    SMD_TRY(out, trial_->read(*snapshot_, *at));
    return out;
  }

 private:
  Status refresh() {
    SMD_RETURN_IF_ERROR(trial_->refresh());
    snapshot_ = trial_->snapshot();
    return {};
  }
  bool is_decided(Step step) const {
    return snapshot_->state(Mode::global, step) != StepState::not_yet_available;
  }

  const std::shared_ptr<Trial> trial_;
  const std::string name_;
  const double timeout_secs_;
  const std::shared_ptr<const Clock> clock_;
  std::shared_ptr<const Snapshot> snapshot_;
  bool has_given_up_ = false;
};

class SimilarAcrossRuns final : public Rule {
 public:
  SimilarAcrossRuns(Selection tensors, std::vector<OtherRun> others, const Options& options,
                    std::shared_ptr<Log> log)
      : tensors_(std::move(tensors)),
        others_(std::move(others)),
        options_(options),
        log_(std::move(log)) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    std::vector<bool> is_decided(others_.size(), false);
    bool has_waited = false;
    return tensors_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      if (value->dtype == DType::string || value->view().size() == 0) return {};
      for (size_t i = 0; i < others_.size(); ++i) {
        if (!has_waited) {
          SMD_TRY(is_decided[i], others_[i].wait_for(step.info().step));
        }
        SMD_RETURN_IF_ERROR(judge(step, row, *value, others_[i], is_decided[i], hits));
      }
      has_waited = true;
      return {};
    });
  }

  Status finish(const RunView&, Hits&) override {
    if (uncompared_ > 0) {
      log_->info(fmt::format("{} could not compare {} values, which another run does not have.",
                             kName, uncompared_));
    }
    return {};
  }

  std::optional<std::string> missing() const override {
    if (compared_ > 0) return std::nullopt;
    std::vector<std::string> names;
    for (const OtherRun& other : others_) {
      if (!other.has_begun()) {
        return fmt::format("There is no run to compare with in '{}' yet.", other.name());
      }
      names.push_back("'" + other.name() + "'");
    }
    return fmt::format("It needs the same tensors at the same steps in {}, which has none of them.",
                       fmt::join(names, ", "));
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, const TensorValue& value,
               const OtherRun& other, bool is_decided, Hits& hits) {
    std::optional<TensorValue> there;
    if (is_decided) {
      const auto worker = options_.is_first_worker
                              ? std::nullopt
                              : std::optional<std::string_view>(step.worker(row));
      SMD_TRY(there, other.read(step.info().step, step.tensor(row), worker));
    }
    const bool is_first = hits.empty();
    if (!there || there->dtype == DType::string) {
      ++uncompared_;
      // A step that may still come is not missing.
      if (!options_.fires_when_missing || !is_decided) return {};
      ++compared_;
      Violation* hit = hits.add(step, row, "missing_values", 1, Op::equal, 1);
      if (hit != nullptr) describe(*hit, other);
      if (is_first) {
        hits.say(fmt::format("'{}' is not there at step {} in '{}'.", step.tensor(row),
                             step.info().step, other.name()));
      }
      return {};
    }
    ++compared_;
    if (there->shape != value.shape) {
      Violation* hit = hits.add(step, row, "shape_differs", 1, Op::equal, 1);
      if (hit != nullptr) {
        describe(*hit, other);
        hit->with("shape", Json(value.shape)).with("other_shape", Json(there->shape));
      }
      if (is_first) {
        hits.say(fmt::format("'{}' has the shape ({}) here and ({}) in '{}'.", step.tensor(row),
                             fmt::join(value.shape, ", "), fmt::join(there->shape, ", "),
                             other.name()));
      }
      return {};
    }
    SMD_TRY(const Closeness found,
            compare(value.view(), there->view(), options_.tolerance, Thoroughness::all));
    if (found.all_close()) return {};
    Violation* hit = hits.add(step, row, "difference", found.difference, Op::above, found.allowed);
    if (hit != nullptr) {
      describe(*hit, other);
      hit->with("max_abs_difference", found.max_absolute)
          .with("max_rel_difference", found.max_relative)
          .with("index", Json(found.worst))
          .with("value", json_of(found.value))
          .with("other_value", json_of(found.reference))
          .with("differing", Json(found.differing))
          .with("elements", Json(value.view().size()));
    }
    if (is_first) {
      hits.say(
          fmt::format("'{}' is {} here and {} in '{}' at index {}; {} of its {} "
                      "elements differ.",
                      step.tensor(row), number_text(found.value), number_text(found.reference),
                      other.name(), found.worst, found.differing, value.view().size()));
    }
    return {};
  }

  void describe(Violation& hit, const OtherRun& other) const {
    hit.with("other_trial", Json(other.name())).with("uncompared", Json(uncompared_));
  }

  Selection tensors_;
  std::vector<OtherRun> others_;
  const Options options_;
  const std::shared_ptr<Log> log_;
  uint64_t compared_ = 0;
  uint64_t uncompared_ = 0;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "other_trials",
     .type = ParameterType::list,
     .default_text = "",
     .help = "Directories or addresses of the runs to compare with.",
     .aliases = "other_trial"},
    kCollectionNames,
    {.name = kTensorRegex.name,
     .type = kTensorRegex.type,
     .default_text = kTensorRegex.default_text,
     .help = kTensorRegex.help,
     .aliases = "include_regex"},
    {.name = kRtol.name,
     .type = kRtol.type,
     .default_text = kRtol.default_text,
     .help = kRtol.help,
     .range = kRtol.range,
     .is_extension = true},
    {.name = kAtol.name,
     .type = kAtol.type,
     .default_text = kAtol.default_text,
     .help = kAtol.help,
     .range = kAtol.range,
     .is_extension = true},
    {.name = "equal_nan",
     .type = ParameterType::boolean,
     .default_text = "true",
     .help = "NaN is the same as NaN.",
     .is_extension = true},
    {.name = "missing",
     .type = ParameterType::text,
     .default_text = "ignore",
     .help = "What a tensor or step means that the other run does not have.",
     .choices = "ignore fire",
     .is_extension = true},
    {.name = "other_timeout",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "How many seconds to wait for a step of another run that is still growing.",
     .range = "[0,86400]",
     .is_extension = true},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  std::vector<std::shared_ptr<Trial>> trials = context.other_trials;
  if (trials.empty()) {
    if (!parameters.has("other_trials")) {
      return Error{ErrorCode::not_found,
                   fmt::format("{} needs other_trials, the runs to compare with.", kName)};
    }
    for (const std::string& place : parameters.list("other_trials")) {
      SMD_TRY(std::shared_ptr<Trial> trial,
              Trial::open(place, {.clock = context.clock, .log = context.log}));
      trials.push_back(std::move(trial));
    }
  }
  const Options options{.tolerance = tolerance_of(parameters),
                        .fires_when_missing = parameters.text("missing") == "fire",
                        .timeout_secs = parameters.real("other_timeout"),
                        .is_first_worker = parameters.text("workers") == "first"};
  std::vector<OtherRun> others;
  for (auto& trial : trials) {
    others.emplace_back(std::move(trial), options.timeout_secs, context.clock);
  }
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .values = true},
                                          parameters));
  return make_rule<SimilarAcrossRuns>(std::move(tensors), std::move(others), options, context.log);
}

}  // namespace

extern const RuleKind similar_across_runs;
const RuleKind similar_across_runs = {
    .name = kName,
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "Tensors differ from those of another run.",
    .sees =
        "Each selected tensor against the same tensor at the same global step of the other "
        "runs; fires when the shape differs or an element differs by more than atol + rtol * "
        "|value there|. Element types may differ; integers must be equal unless you give a "
        "tolerance. What another run lacks is counted and not compared.",
    .why =
        "Two runs that should be the same, such as one on other hardware or with a changed "
        "program, part at the first tensor that differs.",
    .fix =
        "Look at the first step and the tensors listed there. If inputs differ already, compare "
        "seeds and the order of the data; if weights differ at step 0, the initialisation; if "
        "outputs differ first, the operation that makes them. Raise rtol if the order of "
        "additions is all that differs.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
