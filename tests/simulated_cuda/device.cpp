#include "tests/simulated_cuda/device.h"

#include "tests/simulated_cuda/registry.h"
#include "tests/simulated_cuda/settings.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace simulated_cuda {
namespace {

const std::vector<Device*>& devices() {
  static const auto& all = *new std::vector<Device*>([] {
    std::vector<Device*> out;
    const Settings& settings = Settings::get();
    for (int i = 0; i < settings.devices; ++i) {
      out.push_back(Registry<Device>::all().add(new Device(i)));
      if (settings.failure && settings.failure->first == i) {
        out.back()->fail_after(settings.failure->second);
      }
    }
    return out;
  }());
  return all;
}

}  // namespace

Device* Device::find(int ordinal) {
  if (ordinal < 0 || ordinal >= static_cast<int>(devices().size())) return nullptr;
  return devices()[static_cast<size_t>(ordinal)];
}

Device* Device::find(void* context) {
  Device* const found = Registry<Device>::all().find(context);
  return found != nullptr && found->is_retained_ ? found : nullptr;
}

std::vector<Device*>& Device::context_stack() {
  thread_local std::vector<Device*> stack;
  return stack;
}

Device* Device::current() { return context_stack().empty() ? nullptr : context_stack().back(); }

void* Device::retain_context() {
  is_retained_ = true;
  return this;
}

Stream& Device::null_stream() {
  const std::lock_guard lock(mutex_);
  if (null_stream_ == nullptr) {
    null_stream_ = new Stream(*this);
    streams_.push_back(null_stream_);
  }
  return *null_stream_;
}

Stream& Device::new_stream() {
  Stream* const stream = Registry<Stream>::all().add(new Stream(*this));
  const std::lock_guard lock(mutex_);
  streams_.push_back(stream);
  return *stream;
}

std::vector<std::shared_ptr<Moment>> Device::mark_all() {
  std::vector<std::shared_ptr<Moment>> out;
  const std::lock_guard lock(mutex_);
  for (Stream* const stream : streams_) out.push_back(stream->mark());
  return out;
}

bool Device::begin_work() {
  const std::lock_guard lock(mutex_);
  if (failure_ != kSuccess) return false;
  if (!is_to_fail_ || left_-- > 0) return true;
  is_to_fail_ = false;
  failure_ = kLaunchFailed;
  return false;
}

void Device::fail_after(unsigned long count) {
  const std::lock_guard lock(mutex_);
  is_to_fail_ = true;
  left_ = count;
}

void Device::repair() {
  for (const auto& moment : mark_all()) moment->wait();
  const std::lock_guard lock(mutex_);
  is_to_fail_ = false;
  failure_ = kSuccess;
}

}  // namespace simulated_cuda

void simulated_cuda_fail(int device, unsigned long count) {
  simulated_cuda::Device::find(device)->fail_after(count);
}

void simulated_cuda_repair(int device) { simulated_cuda::Device::find(device)->repair(); }
