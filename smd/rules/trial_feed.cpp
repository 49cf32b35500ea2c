#include "smd/rules/trial_feed.h"

#include <algorithm>
#include <deque>
#include <map>

namespace smd::rules {
namespace {

// Numbers that are read at once.
constexpr size_t kMostNumbers = size_t{1} << 19;
constexpr size_t kMostSteps = 4096;
constexpr size_t kMostPlans = 256;
// Records of a single number are not longer unless their names are.
constexpr uint64_t kSingleBytes = 512;

bool may_be_single(const Layout::Entry& entry, std::string_view name) {
  if (entry.form == Layout::Form::split) return false;
  return entry.form != Layout::Form::record || entry.length <= kSingleBytes + 9 * name.size();
}

}  // namespace

// How the rows of a step come from the layouts of its parts.
struct TrialFeed::Plan {
  struct Row {
    TensorRow proto;
    uint32_t part = 0;     // nth of the step
    uint32_t raw = kNone;  // entry of the value
    StatisticSet wanted;
    StatisticSet derived;  // wanted, and welcome
  };
  struct Cell {
    uint32_t part = 0;
    uint32_t entry = 0;
    uint32_t row = 0;
    Statistic statistic = Statistic::value;
  };
  uint64_t id = 0;
  std::vector<Row> rows;    // sorted by name and worker
  std::vector<Cell> cells;  // by part and place in the file
  std::deque<Shape> shapes;
};

struct TrialFeed::Plans {
  std::map<std::vector<uint32_t>, std::shared_ptr<const Plan>> known;
  uint64_t runner_revision = 0;
  uint64_t collections_revision = 0;
  uint64_t last_id = 0;
  std::vector<uint32_t> key;
  std::vector<uint32_t> last_key;
  std::shared_ptr<const Plan> last;
};

TrialFeed::TrialFeed(std::shared_ptr<Trial> trial, TrialFeedOptions options)
    : trial_(std::move(trial)),
      options_(options),
      name_(trial_->name()),
      plans_(std::make_unique<Plans>()),
      next_step_(options.steps.begin) {}

TrialFeed::~TrialFeed() = default;

RunView TrialFeed::run_view() const {
  return {.name = name_,
          .names = &snapshot_->names(),
          .collections = &snapshot_->collections(),
          .collections_revision = snapshot_->collections_revision() + 1};
}

TrialFeed::Plan TrialFeed::make_plan(const StepRow& step, const Runner& runner) const {
  Plan plan;
  const RunView run = run_view();
  uint32_t nth = 0;
  snapshot_->for_each_part(step, [&](uint32_t, const Part& part) {
    const Layout& layout = snapshot_->layout_of(part);
    std::vector<std::pair<uint64_t, size_t>> saved;  // where the first entry lies, row
    for (const uint32_t tensor : layout.tensors()) {
      const Runner::Wanted wanted = runner.wanted(run, tensor);
      if (!wanted.any) continue;
      Plan::Row row{.proto = {.tensor = tensor, .worker = part.worker},
                    .part = nth,
                    .raw = layout.find(tensor, Slot::value()).value_or(kNone),
                    .wanted = wanted.statistics,
                    .derived = wanted.statistics};
      row.derived.merge(wanted.context);
      row.proto.has_value = row.raw != kNone;
      if (const auto* shape = layout.shape_of(tensor)) {
        plan.shapes.push_back(shape->shape);
        row.proto.shape = &plan.shapes.back();
      }
      uint64_t first = UINT64_MAX;
      for (const Layout::Entry& entry : layout.entries_of(tensor)) {
        first = std::min(first, entry.offset);
      }
      saved.emplace_back(first, plan.rows.size());
      plan.rows.push_back(std::move(row));
    }
    // Numbers of a packed step stand by kind, apart from its records, so places do not tell when
    // they came; the numbers of the names do, as names are numbered in the order in which their
    // writer first saved them.
    const bool has_block = std::ranges::any_of(layout.entries(), [](const Layout::Entry& entry) {
      return entry.form == Layout::Form::number || entry.form == Layout::Form::scalar;
    });
    if (!has_block) std::ranges::stable_sort(saved);
    for (uint32_t i = 0; i < saved.size(); ++i) plan.rows[saved[i].second].proto.order = i;
    ++nth;
  });
  std::ranges::stable_sort(plan.rows, [&](const Plan::Row& a, const Plan::Row& b) {
    return run.tensor(a.proto.tensor) < run.tensor(b.proto.tensor);
  });
  for (size_t i = 0; i < plan.rows.size(); ++i) {
    plan.rows[i].proto.is_first_worker =
        i == 0 || plan.rows[i - 1].proto.tensor != plan.rows[i].proto.tensor;
  }

  // What is stored of them.
  std::vector<const Layout*> layouts;
  snapshot_->for_each_part(
      step, [&](uint32_t, const Part& part) { layouts.push_back(&snapshot_->layout_of(part)); });
  for (uint32_t r = 0; r < plan.rows.size(); ++r) {
    const Plan::Row& row = plan.rows[r];
    const Layout& layout = *layouts[row.part];
    const StatisticSet sources = sources_of(row.derived);
    for (const Layout::Entry& entry : layout.entries_of(row.proto.tensor)) {
      const auto number = static_cast<uint32_t>(&entry - layout.entries().data());
      const Slot slot = Slot::from_id(entry.slot);
      const auto statistic =
          slot.is_value() ? Statistic::value : find_statistic(snapshot_->slot_name(slot));
      if (!statistic || !sources.contains(*statistic)) continue;
      if (slot.is_value() && !may_be_single(entry, run.tensor(row.proto.tensor))) continue;
      plan.cells.push_back({row.part, number, r, *statistic});
    }
  }
  std::ranges::sort(plan.cells, [&](const Plan::Cell& a, const Plan::Cell& b) {
    return std::pair(a.part, layouts[a.part]->entries()[a.entry].offset) <
           std::pair(b.part, layouts[b.part]->entries()[b.entry].offset);
  });
  return plan;
}

std::shared_ptr<const TrialFeed::Plan> TrialFeed::plan_of(const StepRow& row,
                                                          const Runner& runner) {
  Plans& plans = *plans_;
  plans.key.clear();
  snapshot_->for_each_part(row, [&](uint32_t, const Part& part) {
    plans.key.push_back(part.layout);
    plans.key.push_back(part.worker);
  });
  if (plans.last && plans.key == plans.last_key) return plans.last;
  auto& place = plans.known[plans.key];
  if (!place) {
    auto made = std::make_shared<Plan>(make_plan(row, runner));
    made->id = ++plans.last_id;
    place = std::move(made);
  }
  plans.last = place;
  plans.last_key = plans.key;
  return plans.last;
}

// Some steps and all their stored numbers.
class TrialFeed::Reading final {
 public:
  Reading(const Trial& trial, const Snapshot& snapshot) : trial_(trial), snapshot_(snapshot) {}

  void add(const StepRow& row, std::shared_ptr<const Plan> plan) {
    std::vector<uint32_t> parts;
    snapshot_.for_each_part(row, [&](uint32_t id, const Part&) { parts.push_back(id); });
    for (const Plan::Cell& cell : plan->cells) at_.push_back({parts[cell.part], cell.entry});
    steps_.push_back({&row, std::move(plan), std::move(parts)});
  }
  size_t numbers() const { return at_.size(); }
  size_t size() const { return steps_.size(); }

  Status read() {
    numbers_.assign(at_.size(), std::nullopt);
    return trial_.read_single_numbers(snapshot_, at_, numbers_);
  }

  struct Step {
    const StepRow* row = nullptr;
    std::shared_ptr<const Plan> plan;
    std::vector<uint32_t> parts;
  };
  const std::vector<Step>& steps() const { return steps_; }

  // The rows of the next step, into the view. An error tells of damaged files.
  Status fill(const Step& step, const RunView& run, StepView& view) {
    const Plan& plan = *step.plan;
    double wall_secs = 0;
    for (uint32_t part : step.parts) {
      wall_secs = std::max(wall_secs, snapshot_.part(part).wall_secs);
    }
    const auto location = [&step](const Plan::Row& row) {
      return Location{step.parts[row.part], row.raw};
    };
    view.begin(run, step.row->info, wall_secs, plan.id,
               [this, &step, location](const TensorRow& row) {
                 return trial_.read(snapshot_, location(step.plan->rows[row.index]));
               });
    statistics_.resize(plan.rows.size());
    for (Statistics& one : statistics_) one.clear();
    for (const Plan::Cell& cell : plan.cells) {
      const auto& number = numbers_[next_++];
      if (number) statistics_[cell.row].set(cell.statistic, *number);
    }
    for (uint32_t r = 0; r < plan.rows.size(); ++r) {
      const Plan::Row& planned = plan.rows[r];
      Statistics& known = statistics_[r];
      TensorRow& row = view.add(planned.proto);
      derive(planned.derived, row.shape, known);
      if (planned.raw != kNone && !known.present.contains_all(planned.wanted)) {
        SMD_RETURN_IF_ERROR(compute_from_value(planned, location(planned), row, view, known));
      }
      view.set(row, known);
    }
    return {};
  }

 private:
  Status compute_from_value(const Plan::Row& planned, const Location& at, TensorRow& row,
                            StepView& view, Statistics& known) {
    SMD_TRY(TensorValue value, trial_.read(snapshot_, at));
    SMD_RETURN_IF_ERROR(compute(value.view(), planned.derived.without(known.present), known));
    derive(planned.derived, &value.shape, known);
    view.set_value(row, std::move(value));
    return {};
  }

  const Trial& trial_;
  const Snapshot& snapshot_;
  std::vector<Step> steps_;
  std::vector<Location> at_;
  std::vector<std::optional<double>> numbers_;
  size_t next_ = 0;
  std::vector<Statistics> statistics_;
};

Status TrialFeed::give(std::span<const StepRow* const> rows, Runner& runner) {
  Reading reading(*trial_, *snapshot_);
  for (const StepRow* row : rows) reading.add(*row, plan_of(*row, runner));
  SMD_RETURN_IF_ERROR(reading.read());
  const RunView run = run_view();
  for (const auto& step : reading.steps()) {
    const Status filled = reading.fill(step, run, view_);
    if (filled.ok()) {
      observed_ = snapshot_;
      runner.observe(view_);
    } else {
      if (unreadable_steps_++ == 0) first_problem_ = filled.error().message;
    }
    next_step_ = step.row->info.step + 1;
  }
  return {};
}

Status TrialFeed::advance(Runner& runner, std::optional<Step> end_step) {
  snapshot_ = trial_->snapshot();
  const bool all = options_.incomplete || snapshot_->loaded_all();
  std::vector<const StepRow*> rows;
  for (size_t i = 0; i < snapshot_->row_count(); ++i) {
    const StepRow& row = snapshot_->row(i);
    if (row.info.step < next_step_) continue;
    if (options_.steps.end && row.info.step >= *options_.steps.end) break;
    if (end_step && row.info.step >= *end_step) break;
    if (!all && row.info.step > snapshot_->last_complete_step()) break;
    rows.push_back(&row);
  }
  view_.set_columns(runner.columns());
  for (size_t first = 0; first < rows.size() && runner.is_active();) {
    Plans& plans = *plans_;
    if (plans.runner_revision != runner.revision() ||
        plans.collections_revision != snapshot_->collections_revision() ||
        plans.known.size() > kMostPlans) {
      plans.known.clear();
      plans.last = nullptr;
      plans.runner_revision = runner.revision();
      plans.collections_revision = snapshot_->collections_revision();
    }
    size_t end = first;
    for (size_t numbers = 0; end < rows.size() && end - first < kMostSteps; ++end) {
      numbers += plan_of(*rows[end], runner)->cells.size();
      if (numbers > kMostNumbers && end > first) break;
    }
    const std::span<const StepRow* const> batch(rows.data() + first, end - first);
    if (!give(batch, runner).ok()) {
      // One by one, so that a damaged step costs no other.
      std::optional<Error> problem;
      bool any = false;
      const Step before = next_step_;
      for (const StepRow* row : batch) {
        const Status given = give({&row, 1}, runner);
        any = any || given.ok();
        if (given.ok()) continue;
        if (!problem) problem = given.error();
        if (unreadable_steps_++ == 0) first_problem_ = given.error().message;
        next_step_ = row->info.step + 1;
      }
      if (!any && problem) {
        next_step_ = before;
        unreadable_steps_ -= batch.size();
        return *problem;
      }
    }
    first = end;
  }
  return {};
}

}  // namespace smd::rules
