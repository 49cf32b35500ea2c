#include "smd/native/step_scope.h"

#include <fmt/format.h>

#include <utility>

namespace smd {

StepScope::StepScope(Hook& hook) : hook_(hook) { begun(hook_.begin_step()); }

StepScope::StepScope(Hook& hook, Mode mode) : hook_(hook) {
  hook_.set_mode(mode);
  begun(hook_.begin_step());
}

StepScope::StepScope(Hook& hook, Step step) : hook_(hook) { begun(hook_.begin_step(step)); }

StepScope::~StepScope() {
  if (is_open()) note(hook_.end_step());
  if (!first_error_.ok() && !asked_) hook_.warn_once(first_error_.error().message);
}

void StepScope::begun(Status status) {
  open_ = status.ok();
  step_ = hook_.step().step;
  note(std::move(status));
}

void StepScope::note(Status status) {
  if (status.ok() || !first_error_.ok()) return;
  first_error_ = std::move(status);
  asked_ = false;
}

bool StepScope::check_open(std::string_view name) {
  if (is_open()) return true;
  note(Error{ErrorCode::closed, fmt::format("'{}' was saved into a step that is over.", name)});
  return false;
}

void StepScope::save(std::string_view name, const View& tensor, Kind kind) {
  if (!check_open(name)) return;
  if (!tensor.status().ok()) {
    const Error& error = tensor.status().error();
    return note(Error{error.code, fmt::format("'{}': {}", name, error.message)});
  }
  note(hook_.save(name, tensor.tensor(), kind));
}

void StepScope::save(std::string_view name, const TensorView& tensor, Kind kind) {
  if (check_open(name)) note(hook_.save(name, tensor, kind));
}

void StepScope::save_owned(std::string_view name, const Result<OwnedTensor>& tensor, Kind kind) {
  if (!check_open(name)) return;
  if (!tensor.ok()) {
    return note(Error{tensor.error().code, fmt::format("'{}': {}", name, tensor.error().message)});
  }
  note(hook_.save_owned(name, *tensor, kind));
}

void StepScope::save_scalar(std::string_view name, double value, const ScalarOptions& options) {
  if (check_open(name)) note(hook_.save_scalar(name, value, options));
}

void StepScope::save_strings(std::string_view name, std::span<const std::string> strings,
                             std::string_view collection) {
  if (!check_open(name)) return;
  const std::vector<std::string_view> views(strings.begin(), strings.end());
  const int64_t shape[] = {static_cast<int64_t>(views.size())};
  const std::string collections[] = {std::string(collection)};
  note(hook_.save_strings(name, views, shape, collections));
}

const Status& StepScope::end() {
  if (is_open()) note(hook_.end_step());
  open_ = false;
  return status();
}

const Status& StepScope::status() {
  asked_ = true;
  return first_error_;
}

}  // namespace smd
