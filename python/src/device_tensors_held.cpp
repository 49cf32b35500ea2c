// The part of DeviceTensors that lets tensors wait, so that many of them share a launch.

#include <algorithm>
#include <tuple>
#include <utility>

#include "python/src/device_tensors.h"
#include "python/src/errors.h"
#include "python/src/values.h"

namespace smdebug {

namespace gpu = smd::gpu;

nb::object DeviceTensors::alias_of(nb::handle tensor) {
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  PyObject* const self = tensor.ptr();
  nb::object alias = nb::steal(PyObject_VectorcallMethod(detach, &self, 1, nullptr));
  if (!alias.is_valid()) throw nb::python_error();
  return alias;
}

size_t DeviceTensors::most_held(int device) const {
  const auto known = cuda_device(device);
  return known.ok() ? std::min(most_held_, (*known)->memory_bytes() / kHeldShare) : 0;
}

void DeviceTensors::hold(const Offered& tensor, int64_t version, Wish wish, bool is_activation) {
  const smd::TensorView& view = *tensor.view;
  held_.push_back({.name = std::string(tensor.name),
                   .alias = alias_of(tensor.tensor),
                   .version = version,
                   .stream = stream_of(tensor.device),
                   .device = tensor.device,
                   .wish = wish,
                   .is_activation = is_activation,
                   .dtype = view.dtype,
                   .data = view.data,
                   .shape = {view.shape.begin(), view.shape.end()},
                   .strides_bytes = {view.strides_bytes.begin(), view.strides_bytes.end()}});
  held_bytes_ += static_cast<size_t>(view.size_bytes());
  const size_t most = most_held(tensor.device);
  // Twice as much is alive while some are being read beside the program.
  is_full_of_activations_ = is_activation && 2 * held_bytes_ >= most;
  if (is_full_of_activations_ || held_bytes_ >= most) full_();
  is_full_of_activations_ = false;
}

bool DeviceTensors::hold_gradient(const Offered& gradient, Wish wish) {
  if (!may_hold_ || (wish != Wish::statistics && wish != Wish::copy)) return false;
  const auto version = version_of(gradient.tensor);
  if (!version) return false;
  if (!std::exchange(is_queued_, true)) {
    try {
      queue_();
    } catch (nb::python_error&) {  // not inside of backward
      is_queued_ = false;
      return false;
    }
  }
  hold(gradient, *version, wish, false);
  return true;
}

bool DeviceTensors::hold_activation(const Offered& tensor) {
  // On other streams than the first, memory may be used again before it is read.
  if (stream_of(tensor.device) != 0) return false;
  const auto bytes = static_cast<size_t>(tensor.view->size_bytes());
  if (4 * bytes >= most_held(tensor.device)) return false;
  const auto version = version_of(tensor.tensor);
  if (!version) return false;
  const auto known = may_wait_.find(tensor.name);
  if (known == may_wait_.end()) {
    try_activation(tensor, *version);
    return false;
  }
  if (!known->second) return false;
  hold(tensor, *version, Wish::statistics, true);
  return true;
}

void DeviceTensors::try_activation(const Offered& tensor, int64_t version) {
  const auto bytes = static_cast<size_t>(tensor.view->size_bytes());
  on_trial_.push_back({std::string(tensor.name), alias_of(tensor.tensor), version, bytes});
  on_trial_bytes_ += bytes;
  while (on_trial_bytes_ >= most_held(tensor.device)) end_trial();
}

void DeviceTensors::end_trial() {
  const OnTrial tried = std::move(on_trial_.front());
  on_trial_.pop_front();
  on_trial_bytes_ -= tried.bytes;
  const bool steady = version_of(tried.alias) == tried.version;
  // A module may be called several times under one name.
  auto [known, added] = may_wait_.try_emplace(tried.name, steady);
  if (!steady) known->second = false;
}

void DeviceTensors::forget() {
  while (!on_trial_.empty()) end_trial();
  seen_.clear();
}

void DeviceTensors::release_before() {
  if (has_held()) full_();
}

bool DeviceTensors::is_unchanged(const Held& item) {
  const auto device = cuda_device(item.device);
  const auto stream = reinterpret_cast<gpu::Stream>(item.stream);
  const bool captured = device.ok() && (*device)->is_capturing(stream);
  if (!captured && version_of(item.alias) == item.version) return true;
  if (item.is_activation) {
    may_wait_[item.name] = false;
  } else {
    may_hold_ = false;
  }
  return false;
}

bool DeviceTensors::read_beside(std::deque<Held>& held) {
  Beside next;
  const Held& first = held.front();
  for (const Held& item : held) {
    const bool fits = item.is_activation && item.device == first.device &&
                      item.stream == first.stream && version_of(item.alias) == item.version;
    if (!fits) return false;
  }
  std::vector<smd::TensorView> views;
  views.reserve(held.size());
  std::vector<Offered> offered;
  for (const Held& item : held) {
    views.push_back(item.view());
    offered.push_back({item.name, item.alias, &views.back(), item.device});
  }
  const Launch launch = plan(first.device, offered, false);
  if (launch.wanted.size() != held.size()) return false;
  next.survey = start(launch, first.device, first.stream, true);
  if (!next.survey) return false;
  for (const Launch::Wanted& wanted : launch.wanted) next.views.push_back(wanted.view);
  next.items = std::move(held);
  beside_ = std::move(next);
  return true;
}

void DeviceTensors::settle_beside(nb::list& changed) {
  if (!beside_) return;
  const Beside read = *std::exchange(beside_, std::nullopt);
  const Held& first = read.items.front();
  // Nobody has queued a change so far, and whoever does so after this comes after the reading.
  if (const auto device = cuda_device(first.device); device.ok()) {
    const auto stream = reinterpret_cast<gpu::Stream>(first.stream);
    const smd::Status waits = (*device)->wait_for(*read.survey, stream);
    if (!waits.ok()) give_up(first.device, waits.error());
  }
  for (size_t i = 0; i < read.items.size(); ++i) {
    const Held& item = read.items[i];
    if (!is_unchanged(item)) {
      changed.append(to_text(item.name));
      continue;
    }
    const smd::TensorView view = item.view();
    save({item.name, item.alias, &view, item.device}, hook_->wanted(item.name), read.survey,
         read.views[i]);
  }
}

std::pair<nb::list, nb::list> DeviceTensors::release() {
  std::deque<Held> held = std::exchange(held_, {});
  held_bytes_ = 0;
  is_queued_ = false;
  nb::list left, changed;
  settle_beside(changed);
  if (is_full_of_activations_ && read_beside(held)) return {std::move(left), std::move(changed)};
  std::map<std::tuple<int, uintptr_t, Wish>, std::vector<const Held*>> launches;
  for (const Held& item : held) {
    if (is_unchanged(item)) {
      launches[{item.device, item.stream, item.wish}].push_back(&item);
    } else {
      changed.append(to_text(item.name));
    }
  }
  for (const auto& [where, items] : launches) {
    const auto& [device, stream, wish] = where;
    std::vector<smd::TensorView> views;
    views.reserve(items.size());
    std::vector<Offered> offered;
    for (const Held* item : items) {
      views.push_back(item->view());
      offered.push_back({item->name, item->alias, &views.back(), device});
    }
    const size_t done = wish == Wish::copy ? copy_on(device, stream, offered)
                        : survey_on(device, stream, offered, false) ? items.size()
                                                                    : 0;
    for (size_t i = done; i < items.size(); ++i) {
      left.append(nb::make_tuple(to_text(items[i]->name), items[i]->alias));
    }
  }
  return {std::move(left), std::move(changed)};
}

}  // namespace smdebug
