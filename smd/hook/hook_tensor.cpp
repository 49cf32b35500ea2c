// The part of the hook that saves the tensors that a model offers.

#include <fmt/format.h>

#include "smd/collection/change_count.h"
#include "smd/format/tensor_record.h"
#include "smd/hook/hook.h"
#include "smd/hook/stored_name.h"
#include "smd/types/tensor_name.h"

namespace smd {

// While it lives, a tensor is at hand.
class Hook::AtHand final {
 public:
  AtHand(Hook& hook, uint64_t content) : hook_(hook) { hook_.content_ = content; }
  ~AtHand() {
    hook_.content_ = 0;
    hook_.done_ = nullptr;
    hook_.reduced_already_ = false;
  }
  AtHand(const AtHand&) = delete;
  AtHand& operator=(const AtHand&) = delete;

 private:
  Hook& hook_;
};

Status Hook::save(std::string_view name, const TensorView& tensor, Kind kind) {
  return offer(name, tensor, nullptr, kind);
}

Status Hook::save_owned(std::string_view name, const OwnedTensor& tensor, Kind kind) {
  return offer(name, tensor.view(), &tensor, kind);
}

Status Hook::offer(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                   Kind kind) {
  SMD_RETURN_IF_ERROR(check_usable());
  return takes(name) ? offer_wanted(name, tensor, owned, kind) : Status();
}

bool Hook::takes(std::string_view name) {
  if (is_step_wanted() && fork_guard_.in_owner()) return true;
  if (!step_clock_.started() && recording_) warn_of_early(name);
  return false;
}

Status Hook::offer_wanted(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                          Kind kind) {
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  const AtHand at_hand(*this, 0);
  join_kind(name, kind);
  if (watching_) SMD_RETURN_IF_ERROR(watch(name, tensor));
  if (observes_) SMD_RETURN_IF_ERROR(observe(name, tensor));
  return saving_ ? record(name, tensor, owned, plan_->wanted(name)) : Status();
}

uint64_t Hook::plan_key() {
  if (const uint64_t changes = ChangeCount::get(); changes != seen_changes_) {
    seen_changes_ = changes;
    plan_->renew_keys();
  }
  return plan_->key();
}

void Hook::look_up(Ticket& ticket) {
  const uint64_t key = plan_key();
  if (ticket.key_ == key) return;
  ticket.wanted_ = plan_->wanted(ticket.name());
  ticket.observed_ = observes_ ? plan_->observed(ticket.name()) : Action{};
  ticket.number_.reset();
  if (!ticket.wanted_.empty() || !ticket.observed_.empty()) {
    ticket.number_ = (recorder_ ? *recorder_ : recent_).number_of(ticket.name());
  }
  ticket.key_ = key;
}

Status Hook::save(Ticket& ticket, const TensorView& tensor, uint64_t content) {
  const std::string_view name = ticket.name();
  SMD_RETURN_IF_ERROR(check_usable());
  if (!takes(name)) return {};
  SMD_RETURN_IF_ERROR(check_name(ticket));
  SMD_RETURN_IF_ERROR(check(tensor));
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  const AtHand at_hand(*this, content);
  join_kind(ticket);
  if (watching_) SMD_RETURN_IF_ERROR(watch(name, tensor));
  if (saving_ || observes_) look_up(ticket);
  if (observes_) {
    SMD_RETURN_IF_ERROR(observe(name, tensor, ticket.observed_, saving_ ? ticket.wanted_ : Action{},
                                ticket.number_));
  }
  return saving_ ? record(name, tensor, nullptr, ticket.wanted_, ticket.number_) : Status();
}

bool Hook::prepare_jobs(std::span<const Listed> list) {
  constexpr int64_t kLeastBytes = 4 << 20;
  if (!saving_ || watching_ || observes_ || !takes("") || !SecondReader::has_processor())
    return false;
  jobs_.resize(list.size());
  int64_t bytes = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const TensorView& tensor = list[i].tensor;
    if (!check(tensor).ok()) return false;
    look_up(*list[i].ticket);
    const Action& wanted = list[i].ticket->wanted_;
    jobs_[i].tensor = tensor;
    jobs_[i].request = {
        .reductions = wanted.reductions,
        .histogram = !wanted.histogram_of.empty() && tensor.dtype != DType::boolean};
    if (!wanted.reductions.empty() || jobs_[i].request.histogram) bytes += tensor.size_bytes();
  }
  return bytes >= kLeastBytes;
}

Status Hook::save_list(std::span<const Listed> list) {
  const bool shared = prepare_jobs(list);
  if (shared) second_reader_.begin(jobs_);
  size_t i = 0;
  Status status;
  for (; i < list.size() && status.ok() && (!shared || second_reader_.take()); ++i) {
    status = save(*list[i].ticket, list[i].tensor);
  }
  if (shared) second_reader_.finish();
  for (; i < list.size() && status.ok(); ++i) {
    done_ = &jobs_[i];
    status = save(*list[i].ticket, list[i].tensor);
  }
  done_ = nullptr;
  return status;
}

void Hook::warn_of_early(std::string_view name) {
  warn_once(fmt::format("'{}' was saved before the first step began; it is dropped.", name));
}

void Hook::join_kind(std::string_view name, Kind kind) {
  const std::string_view target = collection_of(kind);
  if (target.empty()) return;
  const auto collection = collections_->create(target);
  if (collection.ok() && !(*collection)->has_tensor_name(name))
    (*collection)->add_tensor_name(name);
}

Status Hook::save_named(std::span<const std::string> names, const TensorView& tensor) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_step_saved() || !fork_guard_.in_owner()) return {};
  SMD_RETURN_IF_ERROR(check(tensor));
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  std::vector<std::string_view> stored;
  for (const std::string& name : names) {
    SMD_RETURN_IF_ERROR(check_tensor_name(name));
    SMD_TRY(const bool values, record_numbers(name, tensor, plan_->wanted(name)));
    if (values) stored.push_back(name);
  }
  if (stored.empty()) return {};
  return record_values(stored.front(), tensor, nullptr, std::span(stored).subspan(1));
}

Status Hook::record(std::string_view name, const TensorView& tensor, const OwnedTensor* owned,
                    const Action& action, std::optional<uint32_t> number) {
  SMD_TRY(const bool values, record_numbers(name, tensor, action, number));
  return values ? record_values(name, tensor, owned) : Status();
}

Result<bool> Hook::record_numbers(std::string_view name, const TensorView& tensor,
                                  const Action& action, std::optional<uint32_t> number) {
  if (action.empty()) return false;
  if (!writer_) {
    warn_once(fmt::format("Dry run: '{}' would be saved.", name));
    return false;
  }
  tell_membership(name);
  const bool has_elements = tensor.size() > 0;
  ++counted_.tensors;
  if ((action.metric || action.scalar) && has_elements && writer_->has_outputs()) {
    open_step();
    emit_mean(name, tensor, action);
  }
  if (action.shape) {
    open_step();
    writer_->shape(name, name, tensor.shape);
  }
  if (!action.reductions.empty() || !action.histogram_of.empty())
    SMD_RETURN_IF_ERROR(reduce_into_step(name, tensor, action, number));
  return action.raw && has_elements;
}

Status Hook::record_values(std::string_view name, const TensorView& tensor,
                           const OwnedTensor* owned,
                           std::span<const std::string_view> other_names) {
  const double now = options_.clock->unix_secs();
  const format::TensorHead head{
      .name = name, .dtype = tensor.dtype, .shape = tensor.shape, .other_names = other_names};
  // The packed layout stores larger tensors in parts.
  const bool any_size = options_.config.layout == RunLayout::packed;
  if (Status fits = any_size
                        ? Status()
                        : format::check_record_size(head, static_cast<uint64_t>(tensor.size()));
      !fits.ok()) {
    return guard_.handle("save", std::move(fits.error()));
  }
  const auto bytes = static_cast<size_t>(tensor.size_bytes());
  if (!has_room(bytes)) {
    leave_out(name, bytes);
    return {};
  }
  open_step();
  counted_.bytes += bytes;
  if (owned != nullptr) {
    writer_->tensor(name, *owned, now);
  } else {
    writer_->tensor(name, tensor, now, other_names);
  }
  return {};
}

bool Hook::has_room(size_t bytes) const {
  return options_.config.overflow == Overflow::block || !writer_ || writer_->has_room(bytes);
}

void Hook::leave_out(std::string_view name, size_t bytes) {
  ++counted_.left_out;
  counted_.left_out_bytes += bytes;
  if (counted_.left_out > 1) return;
  options_.log->warning(
      fmt::format("The values of '{}' at step {}, {} bytes, found no room in the queue, which "
                  "takes {}; they are left out, and so are others that find none.",
                  name, step().step, bytes, options_.writer.max_queue_bytes));
}

Status Hook::reduce_into_step(std::string_view name, const TensorView& tensor, const Action& action,
                              std::optional<uint32_t> number) {
  const ReductionSet& reductions = action.reductions;
  if (tensor.size() == 0) {
    if (!reductions.empty()) {
      warn_once(fmt::format("'{}' has no elements: no reductions of it are saved.", name));
    }
    return {};
  }
  const bool histogram = !action.histogram_of.empty() && tensor.dtype != DType::boolean;
  if (!reduced_already_) {
    const ReductionRequest request{.reductions = reductions, .histogram = histogram};
    if (Status reduced = reduce_at_hand(tensor, request); !reduced.ok()) {
      return guard_.handle("reduce", std::move(reduced.error()));
    }
    SMD_RETURN_IF_ERROR(look_for_bad(name, tensor));
  }
  store_reductions(reductions);
  if (static_cast<int>(stored_.size()) < reductions.size()) {
    warn_once(fmt::format("'{}' is {}: only norms and reductions of absolute values are saved.",
                          name, name_of(tensor.dtype)));
  }
  const double now = options_.clock->unix_secs();
  if (histogram) emit_histogram(name, action.histogram_of, now);
  if (stored_.empty()) return {};
  remember(name, number, now);
  open_step();
  counted_.bytes += stored_.size() * sizeof(Number::bits);
  writer_->reductions(name, now, stored_);
  return {};
}

Status Hook::reduce_at_hand(const TensorView& tensor, const ReductionRequest& request) {
  if (done_ != nullptr && KnownResults::covers(done_->request, request)) {
    reduced_ = &done_->result;
    return done_->status;
  }
  reduced_ = &scratch_;
  if (content_ == 0) return reduce(tensor, request, scratch_);
  if (const ReductionResult* known = known_.find(content_, request)) {
    reduced_ = known;
    return {};
  }
  ReductionResult& result = known_.add(content_, request);
  reduced_ = &result;
  Status reduced = reduce(tensor, request, result);
  if (!reduced.ok()) known_.drop(content_);
  return reduced;
}

void Hook::remember(std::string_view name, std::optional<uint32_t> number, double wall_secs) {
  if (!remembers_saved()) return;
  if (number) {
    recent_.add(*number, wall_secs, stored_);
  } else {
    recent_.add(name, wall_secs, stored_);
  }
}

Status Hook::save_undue(std::string_view name, const TensorView& tensor, Kind kind) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  if (!is_recording() || !plan_ || !step_clock_.started() || step_ended_) return {};
  const auto collection = collections_->find(collection_of(kind));
  const Action* wanted = plan_->wanted_by(collection_of(kind));
  if (!collection || wanted == nullptr) return {};
  const SaveConfig& config =
      collection->save_config() ? *collection->save_config() : plan_options_.save_config;
  const SaveConfigMode* when = config.mode(step().mode);
  if (when != nullptr && when->end_step && step().mode_step >= *when->end_step) return {};
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  join_kind(name, kind);
  return record(name, tensor, nullptr, *wanted);
}

Status Hook::save_reductions(std::string_view name,
                             std::span<const std::pair<std::string, Number>> values) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  const bool looking = is_step_wanted() && is_recording();
  const double now = options_.clock->unix_secs();
  const ReductionSet saved = looking && saving_ ? plan_->wanted(name).reductions : ReductionSet();
  ReductionSet recorded;
  if (recorder_ && looking) recorded = recorded_reductions(plan_->observed(name));
  std::vector<StoredReduction> kept;
  stored_.clear();
  for (const auto& [label, number] : values) {
    SMD_TRY(const Reduction reduction, parse_reduction(label));
    const StoredReduction value{
        .name = stored_name(reduction), .dtype = number.dtype, .bits = number.bits};
    if (saved.contains(reduction)) stored_.push_back(value);
    if (recorded.contains(reduction)) kept.push_back(value);
  }
  if (!looking) return {};
  if (recorder_) recorder_->add(name, now, kept);
  if (bad_.is_looking()) bad_.see(step(), name, values);
  if (stored_.empty() || !writer_) return {};
  tell_membership(name);
  remember(name, std::nullopt, now);
  open_step();
  ++counted_.tensors;
  counted_.bytes += stored_.size() * sizeof(Number::bits);
  writer_->reductions(name, now, stored_);
  return {};
}

Status Hook::save_shape(std::string_view name, std::span<const int64_t> shape) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(element_count(shape));
  if (!saving_ || !is_recording() || !plan_->wanted(name).shape || !writer_) return {};
  tell_membership(name);
  open_step();
  writer_->shape(name, name, shape);
  return {};
}

}  // namespace smd
