#include "smd/trial/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "smd/base/nearest.h"
#include "smd/base/pending_writes.h"
#include "smd/reduce/reduce.h"
#include "smd/trial/source.h"
#include "smd/trial/staging.h"

namespace smd {
namespace {

// How long reading waits for steps that this process is just writing.
constexpr std::chrono::seconds kSettle{1};

Error missing(std::string message) { return {ErrorCode::not_found, std::move(message)}; }

Result<uint32_t> tensor_number(const Snapshot& snapshot, std::string_view name) {
  if (const auto id = snapshot.find_tensor(name)) return *id;
  const auto& names = snapshot.names().tensors.all();
  return missing(fmt::format("There is no tensor '{}'.{}", name, did_you_mean(name, names)));
}

Result<std::optional<uint32_t>> worker_number(const Snapshot& snapshot, std::string_view name) {
  if (name.empty()) return std::optional<uint32_t>();
  if (const auto id = snapshot.names().workers.find(name)) return std::optional(*id);
  const auto& names = snapshot.names().workers.all();
  return missing(fmt::format("There is no worker '{}'.{}", name, did_you_mean(name, names)));
}

Result<const StepRow*> step_row(const Snapshot& snapshot, Mode mode, Step step) {
  if (const StepRow* row = snapshot.find_row(mode, step)) return row;
  return missing(fmt::format("Step {} of mode {} was not saved.", step, name_of(mode)));
}

Result<Number> reduce_one(const TensorValue& value, Reduction reduction) {
  ReductionRequest request;
  request.reductions.add(reduction);
  ReductionResult result;
  SMD_RETURN_IF_ERROR(reduce(value.view(), request, result));
  if (result.values.empty()) {
    return missing(fmt::format("A tensor of {} with {} elements has no {}.", name_of(value.dtype),
                               value.view().size(), reduction.name()));
  }
  return result.values.front().second;
}

Result<Number> single_number(const TensorValue& value) {
  if (value.dtype == DType::string || value.view().size() != 1) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("The tensor holds {} elements, not a single number; ask for a "
                    "reduction of it.",
                    value.dtype == DType::string ? static_cast<int64_t>(value.strings.size())
                                                 : value.view().size())};
  }
  SMD_TRY(const Reduction max, parse_reduction("max"));
  return reduce_one(value, max);
}

}  // namespace

// The newest snapshot and what else readers ask for while a refresh is under way.
struct Trial::Published {
  std::mutex mutex;
  std::shared_ptr<const Snapshot> snapshot;  // guarded by mutex
  std::atomic<bool> ended{false};
};

Trial::Trial(std::shared_ptr<storage::Storage> storage, TrialOptions options)
    : storage_(std::move(storage)),
      options_(std::move(options)),
      source_(found_source({.storage = storage_, .log = options_.log, .check = options_.check})),
      staging_(std::make_unique<Staging>(
          StagingOptions{.range = options_.range, .wait_window = options_.wait_window})),
      published_(std::make_shared<Published>()) {
  publish();
}

Trial::~Trial() = default;

Result<std::unique_ptr<Trial>> Trial::open(std::string_view path, TrialOptions options) {
  SMD_TRY(auto storage, storage::open_storage(path));
  return open(std::move(storage), std::move(options));
}

Result<std::unique_ptr<Trial>> Trial::open(std::shared_ptr<storage::Storage> storage,
                                           TrialOptions options) {
  settle_pending_writes(kSettle);
  std::unique_ptr<Trial> trial(new Trial(std::move(storage), std::move(options)));
  std::lock_guard lock(trial->refreshing_);
  SMD_RETURN_IF_ERROR(trial->source_->refresh(*trial->staging_));
  trial->staging_->limit_waiting();
  SMD_TRY(const auto ended, trial->source_->ended());
  trial->published_->ended = ended.has_value();
  trial->publish();
  return trial;
}

void Trial::publish() {
  auto snapshot = staging_->publish();
  std::lock_guard lock(published_->mutex);
  published_->snapshot = std::move(snapshot);
}

std::shared_ptr<const Snapshot> Trial::snapshot() const {
  std::lock_guard lock(published_->mutex);
  return published_->snapshot;
}

bool Trial::is_open() const {
  const auto now = snapshot();
  return !now->workers().empty() &&
         static_cast<int64_t>(now->workers().size()) >= now->num_workers();
}

bool Trial::has_ended() const { return published_->ended; }

Status Trial::refresh() {
  if (snapshot()->loaded_all()) return {};
  settle_pending_writes(kSettle);
  std::lock_guard lock(refreshing_);
  SMD_TRY(auto ended, source_->ended());
  SMD_RETURN_IF_ERROR(source_->refresh(*staging_));
  if (!ended) {
    // Should the job have ended meanwhile, nobody else would say so: a watch tells things once.
    SMD_TRY(ended, source_->ended());
    if (ended) SMD_RETURN_IF_ERROR(source_->refresh(*staging_));
  }
  if (ended) {
    published_->ended = true;
    const double left = options_.end_delay_secs - (options_.clock->unix_secs() - *ended);
    if (left > 0) {
      std::this_thread::sleep_for(
          std::chrono::duration<double>(std::min(left, options_.end_delay_secs)));
      SMD_RETURN_IF_ERROR(source_->refresh(*staging_));
    }
    staging_->finish();
  }
  staging_->limit_waiting();
  publish();
  return {};
}

bool Trial::wait(std::chrono::steady_clock::time_point deadline) { return source_->wait(deadline); }

Result<TensorValue> Trial::read(const Snapshot& snapshot, const Location& at) const {
  return source_->read(snapshot, at);
}

Result<TensorDescription> Trial::describe(const Snapshot& snapshot, const Location& at) const {
  return source_->describe(snapshot, at);
}

Status Trial::read_numbers(const Snapshot& snapshot, std::span<const Location> at,
                           std::span<double> out) const {
  return source_->read_numbers(snapshot, at, out);
}

Status Trial::read_single_numbers(const Snapshot& snapshot, std::span<const Location> at,
                                  std::span<std::optional<double>> out) const {
  return source_->read_single_numbers(snapshot, at, out);
}

Result<TensorValue> Trial::value(std::string_view tensor, const ValueQuery& query) {
  const auto now = snapshot();
  SMD_TRY(const uint32_t id, tensor_number(*now, tensor));
  SMD_TRY(const StepRow* row, step_row(*now, query.mode, query.step));
  SMD_TRY(const auto worker, worker_number(*now, query.worker));
  const auto at = now->find(*row, id, Slot::value(), worker);
  if (!at) {
    return missing(fmt::format("The value of '{}' was not saved at step {} of mode {}.", tensor,
                               query.step, name_of(query.mode)));
  }
  return read(*now, *at);
}

Result<Number> Trial::reduction(std::string_view tensor, std::string_view reduction,
                                const ValueQuery& query) {
  const auto now = snapshot();
  SMD_TRY(const uint32_t id, tensor_number(*now, tensor));
  SMD_TRY(const StepRow* row, step_row(*now, query.mode, query.step));
  SMD_TRY(const auto worker, worker_number(*now, query.worker));
  if (const auto slot = now->find_slot(reduction, false)) {
    if (const auto at = now->find(*row, id, *slot, worker)) {
      SMD_TRY(const TensorValue value, read(*now, *at));
      return single_number(value);
    }
  }
  SMD_TRY(const Reduction wanted, parse_reduction(reduction));
  const auto at = now->find(*row, id, Slot::value(), worker);
  if (!at) {
    return missing(fmt::format("Neither {} nor the value of '{}' was saved at step {} of mode {}.",
                               reduction, tensor, query.step, name_of(query.mode)));
  }
  SMD_TRY(const TensorValue value, read(*now, *at));
  return reduce_one(value, wanted);
}

Result<Series> Trial::series(std::string_view tensor, const SeriesQuery& query) {
  const auto now = snapshot();
  SMD_TRY(const uint32_t id, tensor_number(*now, tensor));
  SMD_TRY(const auto worker, worker_number(*now, query.worker));
  std::optional<Reduction> wanted;
  std::optional<Slot> slot = Slot::value();
  if (!query.reduction.empty()) {
    slot = now->find_slot(query.reduction, false);
    auto parsed = parse_reduction(query.reduction);
    if (parsed.ok()) wanted = *parsed;
    if (!slot && !parsed.ok()) return parsed.error();
  }

  struct Point {
    Step step;
    std::optional<Location> stored;    // the number itself
    std::optional<Location> computed;  // the tensor that it is computed from
  };
  std::vector<Point> points;
  for (size_t i = 0; i < now->row_count(); ++i) {
    const StepRow& row = now->row(i);
    if (query.mode != Mode::global && row.info.mode != query.mode) continue;
    if (!query.incomplete && !now->is_complete(row)) continue;
    Point point{.step = query.mode == Mode::global ? row.info.step : row.info.mode_step};
    if (slot) point.stored = now->find(row, id, *slot, worker);
    if (!point.stored && wanted) point.computed = now->find(row, id, Slot::value(), worker);
    if (point.stored || point.computed) points.push_back(point);
  }
  // A resumed job may repeat a mode step: as everywhere, the first one counts.
  std::ranges::stable_sort(points, {}, &Point::step);
  const auto same = [](const Point& a, const Point& b) { return a.step == b.step; };
  points.erase(std::unique(points.begin(), points.end(), same), points.end());

  Series series;
  std::vector<Location> stored;
  for (const Point& point : points) {
    series.steps.push_back(point.step);
    if (point.stored) stored.push_back(*point.stored);
  }
  std::vector<double> numbers(stored.size());
  SMD_RETURN_IF_ERROR(read_numbers(*now, stored, numbers));
  auto next = numbers.begin();
  for (const Point& point : points) {
    if (point.stored) {
      series.values.push_back(*next++);
      continue;
    }
    SMD_TRY(const TensorValue value, read(*now, *point.computed));
    const auto number = reduce_one(value, *wanted);
    constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
    series.values.push_back(number.ok() ? number->to_double() : kNothing);
  }
  return series;
}

}  // namespace smd
