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
  held_.push_back({.name = tensor.name,
                   .alias = alias_of(tensor.tensor),
                   .version = version,
                   .device = tensor.device,
                   .stream = tensor.stream,
                   .wish = wish,
                   .is_activation = is_activation});
  held_bytes_ += static_cast<size_t>(tensor.view->size_bytes());
  const size_t most = most_held(tensor.device);
  // Twice as much is alive while some are being read beside the program.
  is_full_of_activations_ = is_activation && 2 * held_bytes_ >= most;
  if (is_full_of_activations_ || held_bytes_ >= most) full_();
  is_full_of_activations_ = false;
}

std::vector<DeviceTensors::Offered> DeviceTensors::offered_again(std::span<const Held* const> held,
                                                                 std::deque<DeviceView>& views,
                                                                 nb::list& gone) const {
  std::vector<Offered> out;
  out.reserve(held.size());
  for (const Held* item : held) {
    DeviceView& view = views.emplace_back();
    if (look(item->alias, view)) {
      out.push_back({item->name, item->alias, &view.view, item->device, item->stream});
    } else {
      gone.append(to_text(item->name->ticket.name()));
    }
  }
  return out;
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
  if (tensor.stream != 0) return false;
  const auto bytes = static_cast<size_t>(tensor.view->size_bytes());
  if (4 * bytes >= most_held(tensor.device)) return false;
  const auto version = version_of(tensor.tensor);
  if (!version) return false;
  if (!tensor.name->may_wait) {
    try_activation(tensor, *version);
    return false;
  }
  if (!*tensor.name->may_wait) return false;
  hold(tensor, *version, Wish::statistics, true);
  return true;
}

void DeviceTensors::try_activation(const Offered& tensor, int64_t version) {
  const auto bytes = static_cast<size_t>(tensor.view->size_bytes());
  on_trial_.push_back({tensor.name, alias_of(tensor.tensor), version, bytes});
  on_trial_bytes_ += bytes;
  while (on_trial_bytes_ >= most_held(tensor.device)) end_trial();
}

void DeviceTensors::end_trial() {
  const OnTrial tried = std::move(on_trial_.front());
  on_trial_.pop_front();
  on_trial_bytes_ -= tried.bytes;
  const bool steady = version_of(tried.alias) == tried.version;
  // A module may be called several times under one name.
  tried.name->may_wait = tried.name->may_wait.value_or(true) && steady;
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
    item.name->may_wait = false;
  } else {
    may_hold_ = false;
  }
  return false;
}

bool DeviceTensors::read_beside(std::deque<Held>& held) {
  const Held& first = held.front();
  std::vector<const Held*> items;
  for (const Held& item : held) {
    const bool fits = item.is_activation && item.device == first.device &&
                      item.stream == first.stream && version_of(item.alias) == item.version;
    if (!fits) return false;
    items.push_back(&item);
  }
  std::deque<DeviceView> views;
  nb::list gone;
  const std::vector<Offered> offered = offered_again(items, views, gone);
  const Launch launch = plan(first.device, offered, false);
  if (launch.wanted.size() != held.size()) return false;
  Beside next;
  next.survey = start(launch, first.device, first.stream, true);
  if (!next.survey) return false;
  next.list = std::make_shared<SurveyedList>(next.survey, launch.dtypes(), permission_);
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
  std::vector<smd::Hook::LateListed> listed;
  for (size_t i = 0; i < read.items.size(); ++i) {
    const Held& item = read.items[i];
    smd::Ticket& ticket = item.name->ticket;
    if (!is_unchanged(item)) {
      changed.append(to_text(ticket.name()));
      continue;
    }
    listed.push_back({&ticket, read.views[i]});
    if (DeviceView view; hook_->wanted(ticket).shape && look(item.alias, view)) {
      check(hook_->save_shape(ticket.name(), view.view.shape));
    }
  }
  check(hook_->save_late(listed, read.list));
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
      changed.append(to_text(item.name->ticket.name()));
    }
  }
  for (const auto& [where, items] : launches) {
    const auto& [device, stream, wish] = where;
    std::deque<DeviceView> views;
    const std::vector<Offered> offered = offered_again(items, views, changed);
    const size_t done = wish == Wish::copy ? copy_on(device, stream, offered)
                        : survey_on(device, stream, offered, false) ? offered.size()
                                                                    : 0;
    for (size_t i = done; i < offered.size(); ++i) {
      left.append(nb::make_tuple(to_text(offered[i].name->ticket.name()), offered[i].tensor));
    }
  }
  return {std::move(left), std::move(changed)};
}

}  // namespace smdebug
