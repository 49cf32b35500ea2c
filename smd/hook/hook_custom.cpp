// The part of the hook that saves what the program hands over by itself: tensors and strings for
// collections that it names, and scalars.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "smd/hook/hook.h"
#include "smd/types/tensor_name.h"

namespace smd {

bool Hook::wants_tensor(std::span<const std::string> collections) {
  if (!is_recording() || closed_ || !plan_ || !step_clock_.started() || step_ended_) return false;
  return saving_ || user_wants_tensor(collections);
}

// Without wishes.
bool Hook::user_wants_tensor(std::span<const std::string> collections) {
  if (saving_ && plan_->any_due()) return true;
  for (const std::string& name : collections) {
    const auto collection = collections_->find(name);
    const SaveConfig& config = collection && collection->save_config() ? *collection->save_config()
                                                                       : plan_options_.save_config;
    if (config.should_save(step().mode, step().mode_step)) return true;
  }
  return false;
}

Result<Action> Hook::custom_action(std::string_view name,
                                   std::span<const std::string> collections) {
  const bool by_user = user_wants_tensor(collections);
  bool changed = false;
  for (const std::string& target : collections) {
    SMD_TRY(const auto collection, collections_->create(target));
    if (!collection->has_tensor_name(name)) collection->add_tensor_name(name);
    if (plan_->wanted_by(target) == nullptr && target != collection_keys::kScalars) {
      auto& custom = plan_options_.custom_collections;
      if (std::ranges::find(custom, target) == custom.end()) custom.push_back(target);
      changed = true;
    }
  }
  if (changed) {
    const bool was_saving = saving_;
    SMD_RETURN_IF_ERROR(prepare());
    plan_->activate(step().mode, step().mode_step);
    if (!step_trigger_.empty()) plan_->trigger(step().mode, step_trigger_);
    saving_ = was_saving || plan_->any_active();
  }
  Action action = saving_ ? plan_->due(name) : Action{};
  for (const std::string& target : collections) {
    if (!by_user) break;
    const Action* own = plan_->wanted_by(target);
    if (own != nullptr) {
      action.merge(*own);
    } else {
      action.raw = true;  // `scalars` only lists names
    }
  }
  if (saving_ && !action.raw) action.merge(plan_->wished(name));
  return action;
}

Status Hook::save_tensor(std::string_view name, const TensorView& tensor,
                         std::span<const std::string> collections) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_RETURN_IF_ERROR(check(tensor));
  if (!is_recording()) return {};
  if (!step_clock_.started() || !plan_) {
    warn_of_early(name);
    return {};
  }
  if (step_ended_) {
    warn_once(fmt::format("'{}' was saved between two steps; it is dropped.", name));
    return {};
  }
  const CostMeter::CallScope cost(meter_, tensor.size_bytes());
  if (watching_) SMD_RETURN_IF_ERROR(watch(name, tensor));
  if (observes_) SMD_RETURN_IF_ERROR(observe(name, tensor));
  reduced_already_ = false;  // its collections may want more than those of the plan
  if (!wants_tensor(collections)) return {};
  SMD_TRY(const Action action, custom_action(name, collections));
  return record(name, tensor, nullptr, action);
}

Status Hook::save_strings(std::string_view name, std::span<const std::string_view> strings,
                          std::span<const int64_t> shape,
                          std::span<const std::string> collections) {
  SMD_RETURN_IF_ERROR(check_usable());
  SMD_RETURN_IF_ERROR(check_tensor_name(name));
  SMD_TRY(const int64_t count, element_count(shape));
  if (count != static_cast<int64_t>(strings.size())) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} strings do not fill the shape [{}] of '{}'.", strings.size(),
                             fmt::join(shape, ", "), name)};
  }
  if (!is_recording() || !wants_tensor(collections)) return {};
  SMD_TRY(const Action action, custom_action(name, collections));
  if (!writer_ || action.empty()) return {};
  tell_membership(name);
  if (action.shape) {
    open_step();
    writer_->shape(name, name, shape);
  }
  if (!action.reductions.empty())
    warn_once(fmt::format("'{}' holds strings: no reductions are saved.", name));
  if (!action.raw || strings.empty()) return {};
  open_step();
  writer_->strings(name, shape, strings, options_.clock->unix_secs());
  return {};
}

Status Hook::save_scalar(std::string_view name, const Number& value, const ScalarOptions& options) {
  SMD_RETURN_IF_ERROR(check_usable());
  if (!is_recording()) return {};
  if (watching_) SMD_RETURN_IF_ERROR(watch_scalar(name, value));
  if (observes_ && watching_ && bad_.is_looking()) {
    const std::pair<std::string, Number> result[] = {{"max", value}};
    bad_.see(step(), std::string(kScalarPrefix).append(name), result);
  }
  const double wall_secs = options.wall_secs ? *options.wall_secs : options_.clock->unix_secs();
  if (!scalars_.knows(name)) SMD_RETURN_IF_ERROR(check_tensor_name(name));
  if (!scalars_.set(name, value, {.wall_secs = wall_secs, .is_metric = options.sm_metric})) {
    return {};
  }
  // A new name: the slow path, once.
  SMD_TRY(const auto collection, collections_->create(collection_keys::kScalars));
  const bool planned = planned_revision_ == collections_->revision();
  collection->add_tensor_name(scalars_.last_added());
  if (planned) planned_revision_ = collections_->revision();  // no plan depends on this list
  return {};
}

Status Hook::save_scalar(std::string_view name, double value, const ScalarOptions& options) {
  return save_scalar(name, Number::real(DType::float64, value), options);
}

}  // namespace smd
