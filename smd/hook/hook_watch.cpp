// The part of the hook that looks at every step: its cost and the budget, tensors that are watched
// for a NaN, the flight recorder and the first bad tensor.

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/nearest.h"
#include "smd/hook/findings.h"
#include "smd/hook/hook.h"
#include "smd/hook/stored_name.h"
#include "smd/types/tensor_name.h"
#include "smd/types/worker.h"

namespace smd {
namespace {

// A chief announces a new stride so many of its saved steps ahead: time for others to read it.
constexpr Step kNoticeAhead = 4;
constexpr std::string_view kFlightFolder = "flight";
constexpr uint64_t kMostNoticeBytes = 4096;
constexpr std::string_view kWhenNan = "smdebug/when_nan";

ReductionSet parsed(std::initializer_list<std::string_view> names) {
  ReductionSet set;
  for (const std::string_view name : names) set.add(*parse_reduction(name));
  return set;
}

}  // namespace

// ---- cost

Bill Hook::bill() const {
  Bill bill = counted_;
  bill.cost_secs = meter_.cost_secs();
  bill.training_secs = meter_.training_secs();
  if (budget_) bill.stride = budget_->stride();
  return bill;
}

bool Hook::is_only_worker() const {
  return worker_.count == 1 || options_.config.include_workers == IncludeWorkers::one;
}

void Hook::find_stretched_collections() {
  plan_options_.stretched_collections.clear();
  for (const auto& collection : collections_->collections()) {
    if (is_scalar_collection(collection->name()) || !inherited_.holds(*collection)) continue;
    plan_options_.stretched_collections.push_back(collection->name());
  }
}

void Hook::settle_budget() {
  const StepInfo& now = step();
  const Step since = now.step - std::exchange(settled_step_, now.step);
  if (!is_only_worker() && worker_.name != worker_.chief) {
    if (spool_) return;
    const auto text = storage::read_all(*storage_, StrideNotice::kPath, kMostNoticeBytes);
    if (!text.ok()) return;  // nothing was announced yet
    const auto notice = StrideNotice::parse(as_text(*text));
    if (!notice.ok() || notice->stride == budget_->stride()) return;
    next_stride_ = *notice;
    stride_from_ = notice->from_step;
    return;
  }
  const int64_t stride = budget_->settle({.cost_secs = meter_.cost_secs(),
                                          .training_secs = meter_.training_secs(),
                                          .steps = counted_.steps});
  if (stride == budget_->stride() || stride_from_ != kNever) return;
  if (is_only_worker()) return use_stride(stride);
  if (spool_) {
    warn_once(
        "Intervals stay as they are although max_overhead is given: workers that record to an "
        "object store cannot agree on longer ones.");
    return;
  }
  next_stride_ = {.from_step = now.step + kNoticeAhead * std::max<Step>(since, 1),
                  .stride = stride};
  stride_from_ = next_stride_.from_step;
  writer_->put(StrideNotice::kPath, next_stride_.to_json());
}

void Hook::use_stride(int64_t stride) {
  stride_from_ = kNever;
  budget_->use(stride);
  plan_->set_stride(stride, options_.config.max_interval);
  for (Mode mode : kModes) {
    next_active_[index_of(mode)] =
        plan_->next_active(mode, step_clock_.mode_step(mode) + 1).value_or(kNever);
  }
}

// ---- tensors that are watched for a NaN

Status Hook::watch(std::string_view name, const TensorView& tensor) {
  const Mode mode = step().mode;
  std::erase(unseen_watches_, name);
  if (!unseen_watches_.empty()) seen_names_.emplace_back(name);
  if (!plan_->is_watched(mode, name)) return {};
  SMD_TRY(const bool nan, contains_nan(tensor));
  auto [known, added] = nan_before_[index_of(mode)].try_emplace(std::string(name), false);
  if (!std::exchange(known->second, nan) && nan) {
    if (!saving_) plan_->deactivate();
    plan_->trigger(mode, name);
    saving_ = true;
    triggered_[index_of(mode)] = name;
    step_trigger_ = name;
    options_.log->warning(fmt::format("'{}' holds a NaN at step {} ({} step {}): saving starts.",
                                      name, step().step, name_of(mode), step().mode_step));
    open_step();
    if (writer_) {
      const int64_t one[] = {1};
      writer_->strings(kWhenNan, one, {{name}}, options_.clock->unix_secs());
    }
  }
  return {};
}

// Under the name that people gave it and under the one it is stored as.
Status Hook::watch_scalar(std::string_view name, const Number& value) {
  const TensorView view{.data = value.bits.data(), .dtype = value.dtype, .shape = {}};
  SMD_RETURN_IF_ERROR(watch(name, view));
  return watch(std::string(kScalarPrefix).append(name), view);
}

void Hook::report_unseen_watches() {
  for (const std::string& name : unseen_watches_) {
    options_.log->warning(
        fmt::format("'{}' is watched for NaN but no tensor of this name was seen in the "
                    "first step.{}",
                    name, did_you_mean(name, seen_names_)));
  }
  unseen_watches_.clear();
  seen_names_ = {};
}

// ---- what is looked at in every step

ReductionSet Hook::recorded_reductions(const Action& seen) const {
  static const ReductionSet usual = parsed({"min", "max", "mean", "std", "l2"});
  static const ReductionSet extrema = parsed({"min", "max"});
  if (seen.empty()) return {};
  ReductionSet set = !recorder_                ? ReductionSet()
                     : seen.reductions.empty() ? usual
                                               : seen.reductions;
  if (bad_.is_looking()) set.merge(extrema);
  return set;
}

void Hook::store_reductions(const ReductionSet& wanted) {
  stored_.clear();
  for (const auto& [reduction, number] : reduced_->values) {
    if (!wanted.contains(reduction)) continue;
    stored_.push_back({.name = stored_name(reduction), .dtype = number.dtype, .bits = number.bits});
  }
}

Status Hook::observe(std::string_view name, const TensorView& tensor) {
  const Action seen = plan_->observed(name);
  return observe(name, tensor, seen, saving_ ? plan_->wanted(name) : Action{});
}

Status Hook::observe(std::string_view name, const TensorView& tensor, const Action& seen,
                     const Action& saved, std::optional<uint32_t> number) {
  static const ReductionSet magnitude = parsed({"abs_max"});
  if (seen.empty() || tensor.size() == 0) return {};
  const ReductionSet recorded = recorded_reductions(seen);
  ReductionRequest request{.reductions = recorded};
  if (info_of(tensor.dtype).kind == DTypeKind::complex) request.reductions.merge(magnitude);
  request.reductions.merge(saved.reductions);
  request.histogram = !saved.histogram_of.empty() && tensor.dtype != DType::boolean;
  if (Status reduced = reduce_at_hand(tensor, request); !reduced.ok()) {
    return guard_.handle("reduce", std::move(reduced.error()));
  }
  reduced_already_ = true;
  SMD_RETURN_IF_ERROR(look_for_bad(name, tensor));
  if (!recorder_) return {};
  const double now = options_.clock->unix_secs();
  store_reductions(recorded);
  recorder_->add(number ? *number : recorder_->number_of(name), now, stored_);
  if (recorder_->options().raw) recorder_->add_raw(name, tensor, now);
  return {};
}

Status Hook::look_for_bad(std::string_view name, const TensorView& tensor) {
  if (!bad_.is_looking()) return {};
  auto bad = bad_.see(step(), name, tensor, *reduced_);
  return bad.ok() ? Status() : guard_.handle("reduce", std::move(bad.error()));
}

std::optional<std::string> Hook::first_bad_tensor() const {
  if (!bad_.is_found()) return std::nullopt;
  return bad_.tensors().front().name;
}

void Hook::report_bad_tensor() {
  BadTensorFinding finding{
      .bad = bad_, .worker = worker_.name, .last_saved_step = last_saved_step_};
  const std::string& name = bad_.tensors().front().name;
  finding.before = recorder_ ? recorder_->history(name) : recent_.history(name);
  options_.log->warning(to_text(finding));
  if (writer_) {
    writer_->put(bad_tensor_file_name(worker_to_file_name(worker_.name)), to_json(finding));
  }
  if (recorder_ && dump_reason_.empty()) dump_reason_ = fmt::format("'{}' is not finite", name);
  bad_.mark_reported();
}

// ---- flight recorder

Status Hook::dump_flight_recorder(std::string_view reason) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!recorder_) {
    return Error{ErrorCode::invalid_argument,
                 "There is no flight recorder; give the hook flight_recorder, the number of steps "
                 "to keep."};
  }
  if (!is_recording()) return {};
  dump_reason_ = reason.empty() ? "asked for" : reason;
  if (step_ended_ || !step_clock_.started() || !plan_) {
    write_flight_recorder();
  }
  return {};
}

Status Hook::dump_ended_steps(std::string_view reason) {
  SMD_RETURN_IF_ERROR(dump_flight_recorder(reason));
  if (is_recording() && !dump_reason_.empty()) write_flight_recorder(Dumped::ended_steps);
  return {};
}

FlightRun& Hook::flight_run() {
  if (!flight_run_) {
    const std::string worker = worker_to_file_name(worker_.name);
    std::string folder(kFlightFolder);
    if (!is_only_worker()) folder.append("/").append(worker);
    flight_run_ = std::make_unique<FlightRun>(FlightRunOptions{.run = storage_,
                                                               .folder = folder,
                                                               .worker = worker,
                                                               .durable = options_.config.durable,
                                                               .writer = options_.writer});
  }
  return *flight_run_;
}

void Hook::write_flight_recorder(Dumped which) {
  const bool with_current = which == Dumped::all_steps;
  const std::string reason = dump_reason_;
  if (with_current) dump_reason_.clear();
  if (!recorder_ || !writer_) return;
  settle_late(true);
  FlightDump dump{.reason = reason, .worker = worker_.name};
  std::vector<StepInfo> late;
  for (const StepInfo& kept : recorder_->unsaved()) {
    const bool is_current = kept.step == step().step && !step_ended_;
    if (is_current && !with_current) continue;
    const bool in_order = !last_saved_step_ || kept.step > *last_saved_step_;
    // The steps of the run come in order, and each from all workers.
    if (!is_only_worker() || step_open_ || !in_order) {
      late.push_back(kept);
      continue;
    }
    if (!exported_) export_collections();
    dump.in_run.push_back(kept.step);
    if (is_current) {
      open_step();  // what else it has comes with it
      recorder_->write_step(kept.step, *writer_);
      continue;
    }
    writer_->begin_step(kept);
    recorder_->write_step(kept.step, *writer_);
    writer_->end_step();
    last_saved_step_ = kept.step;
    ++counted_.saved_steps;
  }
  if (!late.empty()) {
    FlightRun& run = flight_run();
    const int64_t workers = collections_->num_workers();
    (void)collections_->set_num_workers(1);
    run.write(*recorder_, late, collections_->to_json());
    (void)collections_->set_num_workers(workers);
    for (const StepInfo& kept : late) dump.in_folder.push_back(kept.step);
    dump.folder = run.folder();
  }
  if (!with_current && dump.in_run.empty() && dump.in_folder.empty()) return;
  options_.log->warning(to_text(dump));
  std::string file = worker_to_file_name(worker_.name);
  if (++dumps_ > 1) file += fmt::format("_{}", dumps_);
  writer_->put(flight_file_name(file), to_json(dump));
  if (with_current) {
    recorder_->clear();
  } else {
    recorder_->mark_saved_before(step().step);
  }
}

bool Hook::wait_until_written(std::chrono::milliseconds most) {
  bool written = true;
  if (writer_) written = writer_->wait_until_written(most);
  return (!flight_run_ || flight_run_->wait_until_written(most)) && written;
}

}  // namespace smd
