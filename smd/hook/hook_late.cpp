// The part of the hook that deals with tensors that a device is still reading.

#include <fmt/format.h>

#include <cmath>

#include "smd/hook/hook.h"
#include "smd/types/tensor_name.h"

namespace smd {
namespace {

// The writer thread finds the results, so that the training thread has nothing to do for them;
// unless nobody writes them.
bool is_there(const std::shared_ptr<LateBatch>& batch) {
  return batch->has_results() || (batch.use_count() == 1 && batch->is_ready());
}

}  // namespace

Status Hook::check_name(Ticket& ticket) {
  if (!ticket.is_checked_) SMD_RETURN_IF_ERROR(check_tensor_name(ticket.name()));
  ticket.is_checked_ = true;
  return {};
}

void Hook::join_kind(Ticket& ticket) {
  if (ticket.kind() == Kind::automatic || ticket.joined_key_ == plan_key()) return;
  join_kind(ticket.name(), ticket.kind());
  ticket.joined_key_ = plan_key();
}

Action Hook::wanted(Ticket& ticket) {
  if (!is_step_wanted() || !is_recording()) return {};
  join_kind(ticket);
  look_up(ticket);
  return with_observed(saving_ ? ticket.wanted_ : Action{}, ticket.observed_);
}

Action Hook::with_observed(Action action, const Action& seen) const {
  if (!observes_ || seen.empty()) return action;
  action.reductions.merge(recorded_reductions(seen));
  action.raw = action.raw || (recorder_ && recorder_->options().raw);
  return action;
}

LateItem Hook::late_item(Ticket& ticket) {
  look_up(ticket);
  const Action action = saving_ && writer_ ? ticket.wanted_ : Action{};
  const bool shown = writer_ && writer_->has_outputs();
  LateItem item{.name = ticket.name(),
                .number = ticket.number_,
                .saved = action.reductions,
                .metric = shown && action.metric,
                .scalar = shown && action.scalar};
  if (recorder_) item.recorded = recorded_reductions(ticket.observed_);
  if (!action.histogram_of.empty()) {
    item.shown_as = fmt::format("{}/{}", action.histogram_of, ticket.name());
  }
  if (!watching_) return item;
  std::erase(unseen_watches_, ticket.name());
  if (!unseen_watches_.empty()) seen_names_.push_back(ticket.name());
  item.watched = plan_->is_watched(step().mode, ticket.name());
  return item;
}

Status Hook::save_late(std::span<const LateListed> tensors, std::shared_ptr<LateList> list) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_wanted() || !is_recording()) return {};
  const double now = options_.clock->unix_secs();
  Status names;
  bool written = false;
  std::vector<LateItem> items;
  items.reserve(tensors.size());
  for (const auto& [ticket, index] : tensors) {
    if (Status name = check_name(*ticket); !name.ok()) {
      names = std::move(name);
      continue;
    }
    LateItem item = late_item(*ticket);
    item.index = index;
    if (item.is_written()) {
      written = true;
      tell_membership(item.name);
      ++counted_.tensors;
      counted_.bytes += static_cast<uint64_t>(item.saved.size()) * sizeof(Number::bits);
    }
    items.push_back(std::move(item));
  }
  const size_t held = list->size_bytes();
  auto batch = std::make_shared<LateBatch>(std::move(list), std::move(items), now);
  if (written) {
    open_step();
    writer_->late_numbers(now, batch, held);
  }
  late_.push_back({.step = step(), .batch = std::move(batch), .raw = {}});
  return names;
}

Status Hook::save_late_values(Ticket& ticket, const OwnedTensor& tensor,
                              std::shared_ptr<LateMemory> memory) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_wanted() || !is_recording()) return {};
  SMD_RETURN_IF_ERROR(check_name(ticket));
  const TensorView view = tensor.view();
  SMD_RETURN_IF_ERROR(check(view));
  join_kind(ticket);
  look_up(ticket);
  const double now = options_.clock->unix_secs();
  if (recorder_ && recorder_->options().raw && !ticket.observed_.empty()) {
    late_.push_back(
        {.step = step(), .batch = {}, .raw = LateRaw{ticket.name(), tensor, memory, now}});
  }
  if (!saving_ || !ticket.wanted_.raw || !writer_) return {};
  const format::TensorHead head{.name = ticket.name(), .dtype = view.dtype, .shape = view.shape};
  // The packed layout stores larger tensors in parts.
  if (options_.config.layout != RunLayout::packed) {
    Status fits = format::check_record_size(head, static_cast<uint64_t>(view.size()));
    if (!fits.ok()) return guard_.handle("save", std::move(fits.error()));
  }
  const auto bytes = static_cast<size_t>(view.size_bytes());
  if (!has_room(bytes)) {
    leave_out(ticket.name(), bytes);
    return {};
  }
  tell_membership(ticket.name());
  open_step();
  ++counted_.tensors;
  counted_.bytes += bytes;
  writer_->late_tensor(ticket.name(), tensor, now, std::move(memory));
  return {};
}

void Hook::settle_late(bool wait) {
  while (!late_.empty()) {
    const Late& late = late_.front();
    if (late.batch) {
      if (!wait && !is_there(late.batch)) return;
      look_at(late.step, *late.batch);
    } else if (late.raw) {
      const LateRaw& raw = *late.raw;
      if (!wait && !raw.memory->is_ready()) return;
      const auto filled = raw.memory->wait();
      if (filled.ok() && *filled) {
        recorder_->add_late_raw(late.step.step, raw.name, raw.tensor.view(), raw.wall_secs);
      }
    } else if (bad_.is_looking()) {
      bad_.end_step(late.step.mode);
    }
    late_.pop_front();
  }
}

void Hook::look_at(const StepInfo& at, LateBatch& batch) {
  const auto results = batch.results();
  if (!results.ok()) return;  // the writer reports a device that has failed
  for (size_t i = 0; i < results->size(); ++i) {
    const LateItem& item = batch.items()[i];
    const LateResults& found = (*results)[i];
    // What the run has is remembered for the report of a bad tensor; the recorder knows more.
    if (item.number && (recorder_ || bad_.is_looking())) {
      stored_.clear();
      add_stored(found, recorder_ ? item.recorded : item.saved, stored_);
      (recorder_ ? *recorder_ : recent_)
          .add_late(at.step, *item.number, batch.wall_secs(), stored_);
    }
    const NonFinite counts = found.nonfinite.value_or(NonFinite{});
    if (bad_.is_looking()) see_late(at, item.name, found);
    if (item.watched) trigger_late(at, item.name, counts.nan > 0);
    if (item.metric && counts.total() > 0) warn_of_metric(item.name, counts.nan > 0);
  }
}

void Hook::see_late(const StepInfo& at, std::string_view name, const LateResults& found) {
  if (found.nonfinite) {
    bad_.see(at, name, *found.nonfinite);
    return;
  }
  std::vector<std::pair<std::string, Number>> results;
  for (const auto& [reduction, number] : found.reductions.values) {
    results.emplace_back(reduction.name(), number);
  }
  bad_.see(at, name, results);
}

void Hook::end_late_step() {
  if (is_step_wanted()) late_.push_back({.step = step(), .batch = {}, .raw = {}});
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
