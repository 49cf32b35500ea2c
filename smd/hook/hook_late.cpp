// The part of the hook that deals with tensors whose statistics a device is still computing.

#include <fmt/format.h>

#include "smd/hook/hook.h"
#include "smd/hook/stored_name.h"
#include "smd/summary/summary_files.h"
#include "smd/types/tensor_name.h"

namespace smd {
namespace {

std::vector<StoredReduction> stored_of(const LateResults& results, const ReductionSet& wanted) {
  std::vector<StoredReduction> out;
  for (const auto& [reduction, number] : results.reductions.values) {
    if (!wanted.contains(reduction)) continue;
    out.push_back({.name = stored_name(reduction), .dtype = number.dtype, .bits = number.bits});
  }
  return out;
}

// The writer thread joins the results, so that the training thread has nothing to do for them;
// unless nobody writes them.
bool is_there(const std::shared_ptr<LateTensor>& tensor) {
  return tensor->has_results() || (tensor.use_count() == 1 && tensor->is_ready());
}

// What the writer thread waits for.
class SavedLate final : public LateReductions {
 public:
  // `shown_as`: the name of its histogram; empty: none.
  SavedLate(std::shared_ptr<LateTensor> tensor, const ReductionSet& saved, std::string shown_as,
            double wall_secs)
      : tensor_(std::move(tensor)),
        saved_(saved),
        shown_as_(std::move(shown_as)),
        wall_secs_(wall_secs) {}

  Result<std::span<const StoredReduction>> wait() override {
    SMD_TRY(results_, tensor_->results());
    stored_ = stored_of(*results_, saved_);
    return std::span<const StoredReduction>(stored_);
  }

  std::optional<SavedHistogram> histogram() override {
    if (shown_as_.empty() || results_->reductions.histogram.counts.empty()) return std::nullopt;
    return SavedHistogram{.name = shown_as_,
                          .wall_secs = wall_secs_,
                          .histogram = view_of(results_->reductions.histogram)};
  }

 private:
  const std::shared_ptr<LateTensor> tensor_;
  const ReductionSet saved_;
  const std::string shown_as_;
  const double wall_secs_;
  const LateResults* results_ = nullptr;
  std::vector<StoredReduction> stored_;
};

}  // namespace

Status Hook::save_late(std::string_view name, std::shared_ptr<LateTensor> tensor) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  if (!is_step_wanted() || !is_recording()) return {};
  const double now = options_.clock->unix_secs();
  if (watching_) {
    std::erase(unseen_watches_, name);
    if (!unseen_watches_.empty()) seen_names_.emplace_back(name);
  }
  const bool watched = watching_ && plan_->is_watched(step().mode, name);
  const Action action = saving_ ? plan_->wanted(name) : Action{};
  const ReductionSet& saved = action.reductions;
  const ReductionSet recorded =
      recorder_ ? recorded_reductions(plan_->observed(name)) : ReductionSet();
  if (watched || recorder_ || bad_.is_looking()) {
    late_.push_back({.step = step(),
                     .name = std::string(name),
                     .wall_secs = now,
                     .watched = watched,
                     .saved = saved,
                     .recorded = recorded,
                     .tensor = tensor});
  }
  if ((saved.empty() && action.histogram_of.empty()) || !writer_) return {};
  tell_membership(name);
  open_step();
  ++counted_.tensors;
  counted_.bytes += static_cast<uint64_t>(saved.size()) * sizeof(Number::bits);
  const size_t held = tensor->size_bytes();
  std::string shown_as;
  if (!action.histogram_of.empty()) shown_as = fmt::format("{}/{}", action.histogram_of, name);
  writer_->late_reductions(
      name, now, std::make_shared<SavedLate>(std::move(tensor), saved, std::move(shown_as), now),
      held);
  return {};
}

Result<Hook::LateWish> Hook::late_wish(std::string_view name, Kind kind) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  if (!is_step_wanted() || !is_recording()) return LateWish{};
  join_kind(name, kind);
  const Action action = saving_ ? plan_->wanted(name) : Action{};
  const bool shown = (action.metric || action.scalar) && writer_ && writer_->has_outputs();
  const bool watched = watching_ && plan_->is_watched(step().mode, name);
  const bool kept = recorder_ && recorder_->options().raw && !plan_->observed(name).empty();
  return LateWish{.raw = action.raw, .now = shown || watched || kept};
}

Status Hook::save_late_values(std::string_view name, const OwnedTensor& tensor,
                              std::shared_ptr<LateMemory> memory) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_saved() || !is_recording() || !writer_) return {};
  const TensorView view = tensor.view();
  SMD_RETURN_IF_ERROR(check(view));
  const format::TensorHead head{.name = name, .dtype = view.dtype, .shape = view.shape};
  // The packed layout stores larger tensors in parts.
  if (options_.config.layout != RunLayout::packed) {
    Status fits = format::check_record_size(head, static_cast<uint64_t>(view.size()));
    if (!fits.ok()) return guard_.handle("save", std::move(fits.error()));
  }
  tell_membership(name);
  open_step();
  ++counted_.tensors;
  counted_.bytes += static_cast<uint64_t>(view.size_bytes());
  writer_->late_tensor(name, tensor, options_.clock->unix_secs(), std::move(memory));
  return {};
}

void Hook::settle_late(bool wait) {
  while (!late_.empty()) {
    const Late& late = late_.front();
    if (!late.tensor) {
      if (bad_.is_looking()) bad_.end_step(late.step.mode);
      late_.pop_front();
      continue;
    }
    if (!wait && !is_there(late.tensor)) return;
    // The writer reports a device that has failed.
    if (const auto results = late.tensor->results(); results.ok()) {
      const LateResults& found = **results;
      if (recorder_) {
        recorder_->add_late(late.step.step, late.name, late.wall_secs,
                            stored_of(found, late.recorded));
      } else if (bad_.is_looking()) {
        recent_.add_late(late.step.step, late.name, late.wall_secs, stored_of(found, late.saved));
      }
      if (bad_.is_looking()) bad_.see(late.step, late.name, found.nonfinite);
      if (late.watched) trigger_late(late.step, late.name, found.nonfinite.nan > 0);
    }
    late_.pop_front();
  }
}

void Hook::end_late_step() {
  if (is_step_wanted()) late_.push_back({.step = step()});
  settle_late(false);
}

bool Hook::is_bad_step_complete() const {
  return late_.empty() || late_.front().step.step > bad_.step().step;
}

void Hook::trigger_late(const StepInfo& at, std::string_view name, bool nan) {
  const auto mode = index_of(at.mode);
  auto [known, added] = nan_before_[mode].try_emplace(std::string(name), false);
  if (std::exchange(known->second, nan) || !nan) return;
  triggered_[mode] = name;
  options_.log->warning(
      fmt::format("'{}' holds a NaN at step {} ({} step {}): saving starts with the next step.",
                  name, at.step, name_of(at.mode), at.mode_step));
}

}  // namespace smd
