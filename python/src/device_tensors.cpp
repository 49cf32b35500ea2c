#include "python/src/device_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "python/src/errors.h"
#include "python/src/late_tensors.h"
#include "python/src/values.h"
#include "smd/config/environment.h"
#include "smd/gpu/survey.h"

namespace smdebug {
namespace {

namespace gpu = smd::gpu;

std::string cache_folder() {
  const smd::Environment environment = smd::Environment::of_process();
  if (const auto own = environment.find("SMDEBUG_KERNEL_CACHE_DIR")) return std::string(*own);
  if (const auto caches = environment.find("XDG_CACHE_HOME"); caches && !caches->empty()) {
    return std::string(*caches) + "/smdebug/kernels";
  }
  const auto home = environment.find("HOME");
  if (!home || home->empty()) return {};
  return std::string(*home) + "/.cache/smdebug/kernels";
}

// nullopt: what the device has room for.
smd::Result<std::optional<size_t>> ring_bytes() {
  constexpr std::string_view kName = "SMDEBUG_DEVICE_RING_BYTES";
  const smd::Environment environment = smd::Environment::of_process();
  const auto text = environment.find(kName);
  if (!text || text->empty()) return std::optional<size_t>();
  size_t bytes = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), bytes);
  if (error != std::errc() || end != text->data() + text->size()) {
    return smd::Error{smd::ErrorCode::invalid_argument,
                      fmt::format("{} is a number of bytes, not '{}'.", kName, *text)};
  }
  return std::optional(bytes);
}

// Whether a copy has to be waited for by nobody but the writer.
bool is_late(const smd::Hook::LateWish& wish) { return !wish.now; }

}  // namespace

smd::Result<gpu::Device*> cuda_device(int ordinal) {
  static std::mutex& mutex = *new std::mutex;
  static auto& devices = *new std::map<int, std::unique_ptr<gpu::Device>>;
  const std::lock_guard lock(mutex);
  auto& device = devices[ordinal];
  if (!device) {
    SMD_TRY(const auto ring, ring_bytes());
    SMD_TRY(device, gpu::Device::open(
                        {.ordinal = ordinal, .cache_folder = cache_folder(), .ring_bytes = ring}));
  }
  return device.get();
}

DeviceTensors::DeviceTensors(std::shared_ptr<smd::Hook> hook, nb::handle exchange,
                             const nb::dict& parts)
    : hook_(std::move(hook)),
      stream_of_(parts["stream_of"]),
      usable_(nb::cast<nb::dict>(parts["usable"])),
      gave_up_(parts["gave_up"]),
      queue_(parts["queue"]),
      full_(parts["full"]),
      most_held_(nb::cast<size_t>(parts["held_bytes"])) {
  if (exchange.is_none()) return;
  if (auto api = ExchangeApi::from(exchange); api.ok()) api_ = *api;
}

int DeviceTensors::traverse(visitproc visit, void* arg) const {
  Py_VISIT(gave_up_.ptr());
  Py_VISIT(queue_.ptr());
  Py_VISIT(full_.ptr());
  return 0;
}

void DeviceTensors::clear() {
  may_hold_ = false;
  usable_.clear();
  gave_up_.reset();
  queue_.reset();
  full_.reset();
}

// ---- tensors of Python

bool DeviceTensors::look(nb::handle tensor, DeviceView& out) const {
  if (api_) {
    const auto view = api_->view_anywhere(tensor, out.exchanged);
    if (!view.ok() || !out.exchanged.on_device()) return false;
    out.view = *view;
    out.device = out.exchanged.tensor.device_id;
    return true;
  }
  const auto name = nb::cast<std::string>(nb::str(tensor.attr("dtype")));
  const auto dtype = smd::dtype_from_name(std::string_view(name).substr(name.rfind('.') + 1));
  if (!dtype) return false;
  const auto item = static_cast<int64_t>(smd::size_of(*dtype));
  for (const nb::handle extent : nb::iter(tensor.attr("shape"))) {
    out.shape.push_back(nb::cast<int64_t>(extent));
  }
  for (const nb::handle stride : nb::iter(tensor.attr("stride")())) {
    out.strides_bytes.push_back(nb::cast<int64_t>(stride) * item);
  }
  out.view = {.data = reinterpret_cast<const void*>(nb::cast<uintptr_t>(tensor.attr("data_ptr")())),
              .dtype = *dtype,
              .shape = out.shape,
              .strides_bytes = out.strides_bytes};
  out.device = nb::cast<int>(tensor.attr("device").attr("index"));
  return true;
}

uintptr_t DeviceTensors::stream_of(int device) const {
  return nb::cast<uintptr_t>(stream_of_(device));
}

bool DeviceTensors::is_usable(int device) const {
  const nb::int_ key(device);
  return PyDict_GetItem(usable_.ptr(), key.ptr()) == Py_True;
}

void DeviceTensors::give_up(int device, const smd::Error& error) {
  usable_[nb::int_(device)] = nb::bool_(false);
  if (gave_up_.is_valid()) gave_up_(device, to_text(error.message));
}

// ---- what is wanted

DeviceTensors::Wish DeviceTensors::wish(std::string_view name, const smd::TensorView& view,
                                        int device) {
  if (!hook_->wants(name)) return Wish::nothing;
  if (!is_usable(device) || view.size() == 0) return Wish::other;
  const smd::Action action = hook_->wanted(name);
  if (!action.histogram_of.empty()) return Wish::other;
  const auto known = cuda_device(device);
  if (!known.ok() || (*known)->is_capturing(reinterpret_cast<gpu::Stream>(stream_of(device)))) {
    return Wish::other;
  }
  const bool surveyed = gpu::can_survey(action.reductions) && gpu::check_surveyable(view).ok();
  if (!action.raw && surveyed) return Wish::statistics;
  if (!view.is_contiguous()) return Wish::other;
  const auto late = hook_->late_wish(name, smd::Kind::automatic);
  return late.ok() && is_late(*late) ? Wish::copy : Wish::other;
}

// ---- statistics

void DeviceTensors::save(const Offered& tensor, const smd::Action& action,
                         std::shared_ptr<gpu::LateSurvey> survey, size_t index) {
  if (action.shape) check(hook_->save_shape(tensor.name, tensor.view->shape));
  check(hook_->save_late(
      tensor.name, std::make_shared<SurveyedTensor>(std::move(survey), index, tensor.view->dtype,
                                                    action.reductions)));
}

bool DeviceTensors::survey_on(int device, uintptr_t stream, std::span<const Offered> tensors,
                              bool remember) {
  struct Wanted {
    const Offered* tensor;
    smd::Action action;
  };
  std::vector<Wanted> wanted;
  std::vector<smd::TensorView> views;
  bool absolute = false;
  for (const Offered& tensor : tensors) {
    if (tensor.device != device || !hook_->wants(tensor.name)) continue;
    smd::Action action = hook_->wanted(tensor.name);
    const bool deviations = gpu::needs_absolute_deviations(action.reductions);
    const auto fits = [&](const Surveyed& seen) { return seen.absolute_deviations || !deviations; };
    if (const Surveyed* seen = remember ? seen_.find(tensor.tensor, *tensor.view, fits) : nullptr) {
      save(tensor, action, seen->survey, seen->index);
      continue;
    }
    absolute = absolute || deviations;
    views.push_back(*tensor.view);
    wanted.push_back({&tensor, std::move(action)});
  }
  if (wanted.empty()) return true;
  auto opened = cuda_device(device);
  if (!opened.ok()) {
    give_up(device, opened.error());
    return false;
  }
  gpu::Device& cuda = **opened;
  for (const smd::TensorView& view : views) {
    if (cuda.is_prepared(view.dtype)) continue;
    const nb::gil_scoped_release released;  // compiling takes a moment
    if (!cuda.prepare(view.dtype).ok()) break;
  }
  auto survey = cuda.survey(
      views, {.stream = reinterpret_cast<gpu::Stream>(stream), .absolute_deviations = absolute});
  if (!survey.ok()) {
    give_up(device, survey.error());
    return false;
  }
  ++launches_;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Offered& tensor = *wanted[i].tensor;
    save(tensor, wanted[i].action, *survey, i);
    if (remember) seen_.note(tensor.tensor, *tensor.view, {*survey, i, absolute});
  }
  return true;
}

bool DeviceTensors::survey(std::span<const Offered> tensors) {
  std::vector<int> done;
  for (const Offered& tensor : tensors) {
    if (std::find(done.begin(), done.end(), tensor.device) != done.end()) continue;
    done.push_back(tensor.device);
    const uintptr_t stream = stream_of(tensor.device);
    if (!survey_on(tensor.device, stream, tensors, tensors.size() <= kFew)) return false;
  }
  return true;
}

// ---- elements

std::shared_ptr<gpu::LateCopy> DeviceTensors::start_copy(const Offered& tensor) {
  auto opened = cuda_device(tensor.device);
  if (!opened.ok()) {
    give_up(tensor.device, opened.error());
    return nullptr;
  }
  auto copy = (*opened)->copier().copy(reinterpret_cast<gpu::Address>(tensor.view->data),
                                       static_cast<size_t>(tensor.view->size_bytes()),
                                       reinterpret_cast<gpu::Stream>(stream_of(tensor.device)));
  if (copy.ok()) return std::move(*copy);
  give_up(tensor.device, copy.error());
  return nullptr;
}

bool DeviceTensors::copy(const Offered& tensor) {
  if (!tensor.view->is_contiguous()) return false;
  const smd::Action action = hook_->wanted(tensor.name);
  const bool surveyed =
      gpu::can_survey(action.reductions) && gpu::check_surveyable(*tensor.view).ok();
  const auto survey = [&] {
    return survey_on(tensor.device, stream_of(tensor.device), {&tensor, 1}, false);
  };
  if (surveyed && !action.raw) return survey();
  const auto late = start_copy(tensor);
  if (!late) return false;
  const smd::Shape shape(tensor.view->shape.begin(), tensor.view->shape.end());
  if (action.raw) {
    const smd::OwnedTensor owned{
        .owner = late, .data = late->bytes().data(), .dtype = tensor.view->dtype, .shape = shape};
    smd::Status status;
    {
      const nb::gil_scoped_release released;  // a full queue is waited for
      status = hook_->save_late_values(tensor.name, owned, std::make_shared<CopiedTensor>(late));
    }
    check(std::move(status));
  }
  if (surveyed) {
    (void)survey();  // the elements are saved, whatever becomes of it
    return true;
  }
  if (action.shape) check(hook_->save_shape(tensor.name, tensor.view->shape));
  check(hook_->save_late(tensor.name, std::make_shared<CopiedStatistics>(
                                          late, tensor.view->dtype, shape, action.reductions)));
  return true;
}

// ---- gradients that share a launch

bool DeviceTensors::hold(const Offered& gradient) {
  if (!may_hold_) return false;
  const auto version = version_of(gradient.tensor);
  if (!version) return false;
  if (held_.empty()) {
    try {
      queue_();
    } catch (nb::python_error&) {  // not inside of backward
      return false;
    }
  }
  static PyObject* const detach = PyUnicode_InternFromString("detach");
  // Not the same tensor: backward takes over one that nobody else has.
  PyObject* const tensor = gradient.tensor.ptr();
  nb::object alias = nb::steal(PyObject_VectorcallMethod(detach, &tensor, 1, nullptr));
  if (!alias.is_valid()) throw nb::python_error();
  const smd::TensorView& view = *gradient.view;
  held_.push_back({.name = std::string(gradient.name),
                   .alias = std::move(alias),
                   .version = *version,
                   .stream = stream_of(gradient.device),
                   .device = gradient.device,
                   .dtype = view.dtype,
                   .data = view.data,
                   .shape = {view.shape.begin(), view.shape.end()},
                   .strides_bytes = {view.strides_bytes.begin(), view.strides_bytes.end()}});
  held_bytes_ += static_cast<size_t>(view.size_bytes());
  if (held_bytes_ >= most_held_) full_();
  return true;
}

std::pair<nb::list, nb::list> DeviceTensors::release() {
  const std::deque<Held> held = std::exchange(held_, {});
  held_bytes_ = 0;
  nb::list left, changed;
  std::map<std::pair<int, uintptr_t>, std::vector<const Held*>> launches;
  for (const Held& item : held) {
    if (version_of(item.alias) == item.version) {
      launches[{item.device, item.stream}].push_back(&item);
      continue;
    }
    // Somebody writes to gradients while backward runs: from now on they do not wait.
    may_hold_ = false;
    changed.append(to_text(item.name));
  }
  for (const auto& [where, items] : launches) {
    std::vector<smd::TensorView> views;
    views.reserve(items.size());
    std::vector<Offered> offered;
    for (const Held* item : items) {
      views.push_back(item->view());
      offered.push_back({item->name, item->alias, &views.back(), item->device});
    }
    if (survey_on(where.first, where.second, offered, false)) continue;
    for (const Held* item : items) left.append(nb::make_tuple(to_text(item->name), item->alias));
  }
  return {std::move(left), std::move(changed)};
}

// ---- for Python

std::vector<size_t> DeviceTensors::survey_list(const nb::list& names, const nb::list& tensors) {
  const size_t count = nb::len(names);
  std::vector<size_t> left, taken;
  std::deque<DeviceView> views;
  std::vector<Offered> offered;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = to_name(names[i]);
    DeviceView& view = views.emplace_back();
    if (!look(tensors[i], view) || wish(name, view.view, view.device) != Wish::statistics) {
      left.push_back(i);
      continue;
    }
    taken.push_back(i);
    offered.push_back({name, tensors[i], &view.view, view.device});
  }
  if (!offered.empty() && !survey(offered)) left.insert(left.end(), taken.begin(), taken.end());
  return left;
}

std::vector<size_t> DeviceTensors::copy_list(const nb::list& names, const nb::list& tensors,
                                             smd::Kind kind) {
  std::vector<size_t> left;
  for (size_t i = 0; i < nb::len(names); ++i) {
    const std::string_view name = to_name(names[i]);
    const smd::Hook::LateWish late = check(hook_->late_wish(name, kind));
    DeviceView view;
    const bool seen = is_late(late) && look(tensors[i], view) && view.view.size() > 0;
    if (!seen || !copy({name, tensors[i], &view.view, view.device})) left.push_back(i);
  }
  return left;
}

bool DeviceTensors::hold_one(const std::string& name, nb::handle gradient) {
  DeviceView view;
  if (!look(gradient, view)) return false;
  if (wish(name, view.view, view.device) != Wish::statistics) return false;
  return hold({name, gradient, &view.view, view.device});
}

}  // namespace smdebug
