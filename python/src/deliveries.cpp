#include "python/src/deliveries.h"

#include <algorithm>

#include "python/src/late_lists.h"

namespace smdebug {

bool Delivery::is_done() const {
  const std::lock_guard lock(mutex_);
  return outcome_.has_value();
}

smd::Status Delivery::wait_until_done() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return outcome_.has_value(); });
  return *outcome_;
}

void Delivery::fail(std::string message) {
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    outcome_ = smd::Error{smd::ErrorCode::unsupported, std::move(message)};
  }
  changed_.notify_all();
}

void Delivery::set_done() {
  {
    const std::lock_guard lock(mutex_);
    if (outcome_) return;
    outcome_ = smd::Status();
  }
  changed_.notify_all();
}

// ---- values

DeliveredTensor::DeliveredTensor(smd::DType dtype, smd::Shape shape)
    : dtype_(dtype), shape_(std::move(shape)) {
  const smd::TensorView view{.data = nullptr, .dtype = dtype_, .shape = shape_};
  memory_.resize(static_cast<size_t>(view.size_bytes()));
}

void DeliveredTensor::deliver(smd::ByteSpan values) {
  if (values.size() != memory_.size()) return fail("A tensor came with another size.");
  std::ranges::copy(values, memory_.begin());
  set_done();
}

smd::Result<bool> DeliveredTensor::wait() {
  SMD_RETURN_IF_ERROR(wait_until_done());
  return true;
}

smd::Status DeliveredTensor::find(size_t, const smd::ReductionRequest& request,
                                  smd::LateResults& out) {
  const smd::TensorView view{.data = memory_.data(), .dtype = dtype_, .shape = shape_};
  return reduce_late(view, request, out);
}

// ---- numbers

size_t DeliveredNumbers::size() const {
  size_t count = 0;
  for (const Tensor& tensor : tensors_) count += tensor.reductions.size();
  return count;
}

void DeliveredNumbers::deliver(std::vector<double> numbers) {
  if (numbers.size() != size()) return fail("Another number of results came than was asked for.");
  numbers_ = std::move(numbers);
  set_done();
}

smd::Result<bool> DeliveredNumbers::wait() {
  SMD_RETURN_IF_ERROR(wait_until_done());
  return true;
}

// All of them: each may tell that the tensor is a bad one.
smd::Status DeliveredNumbers::find(size_t index, const smd::ReductionRequest&,
                                   smd::LateResults& out) {
  size_t first = 0;
  for (size_t i = 0; i < index; ++i) first += tensors_[i].reductions.size();
  const auto& [dtype, reductions] = tensors_[index];
  for (size_t i = 0; i < reductions.size(); ++i) {
    out.reductions.values.emplace_back(reductions[i],
                                       smd::Number::real(dtype, numbers_[first + i]));
  }
  return {};
}

}  // namespace smdebug
