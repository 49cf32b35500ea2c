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

// The place of a view of the same elements among the last ones, or how many views there are: a
// module may give what an inner one gave.
size_t find_recent(std::span<const smd::TensorView> views, const smd::TensorView& view) {
  constexpr size_t kRecent = 8;
  for (size_t i = views.size(); i > 0 && views.size() - i < kRecent; --i) {
    const smd::TensorView& other = views[i - 1];
    if (other.data == view.data && other.dtype == view.dtype &&
        std::ranges::equal(other.shape, view.shape) &&
        std::ranges::equal(other.strides_bytes, view.strides_bytes)) {
      return i - 1;
    }
  }
  return views.size();
}

// Whether the kernels find all that is wanted besides the elements.
bool is_surveyed(const smd::Action& action, const smd::TensorView& view) {
  return action.histogram_of.empty() && gpu::can_survey(action.reductions) &&
         gpu::check_surveyable(view).ok();
}

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
  may_wait_.clear();
  usable_.clear();
  gave_up_.reset();
  queue_.reset();
  full_.reset();
}

// ---- tensors of Python

bool DeviceTensors::look(nb::handle tensor, DeviceView& out) const {
  if (const DeviceArray* array = nullptr; nb::try_cast(tensor, array)) {
    out.view = array->view();
    out.device = array->device();
    return true;
  }
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
  const auto known = cuda_device(device);
  if (!known.ok() || (*known)->is_capturing(reinterpret_cast<gpu::Stream>(stream_of(device)))) {
    return Wish::other;
  }
  if (!action.raw && is_surveyed(action, view)) return Wish::statistics;
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

DeviceTensors::Launch DeviceTensors::plan(int device, std::span<const Offered> tensors,
                                          bool remember) {
  Launch out;
  for (const Offered& tensor : tensors) {
    if (tensor.device != device || !hook_->wants(tensor.name)) continue;
    smd::Action action = hook_->wanted(tensor.name);
    const bool deviations = gpu::needs_absolute_deviations(action.reductions);
    const auto fits = [&](const Surveyed& seen) { return seen.absolute_deviations || !deviations; };
    if (const Surveyed* seen = remember ? seen_.find(tensor.tensor, *tensor.view, fits) : nullptr) {
      save(tensor, action, seen->survey, seen->index);
      continue;
    }
    out.absolute = out.absolute || deviations;
    const size_t view = find_recent(out.views, *tensor.view);
    if (view == out.views.size()) out.views.push_back(*tensor.view);
    out.wanted.push_back({&tensor, std::move(action), view});
  }
  return out;
}

std::shared_ptr<gpu::LateSurvey> DeviceTensors::start(const Launch& launch, int device,
                                                      uintptr_t stream, bool beside) {
  auto opened = cuda_device(device);
  if (!opened.ok()) {
    give_up(device, opened.error());
    return nullptr;
  }
  gpu::Device& cuda = **opened;
  for (const smd::TensorView& view : launch.views) {
    if (cuda.is_prepared(view.dtype)) continue;
    const nb::gil_scoped_release released;  // compiling takes a moment
    if (!cuda.prepare(view.dtype).ok()) break;
  }
  const gpu::Device::SurveyOptions options{.stream = reinterpret_cast<gpu::Stream>(stream),
                                           .absolute_deviations = launch.absolute};
  auto survey =
      beside ? cuda.survey_beside(launch.views, options) : cuda.survey(launch.views, options);
  if (!survey.ok()) {
    give_up(device, survey.error());
    return nullptr;
  }
  ++launches_;
  return std::move(*survey);
}

bool DeviceTensors::survey_on(int device, uintptr_t stream, std::span<const Offered> tensors,
                              bool remember) {
  const Launch launch = plan(device, tensors, remember);
  if (launch.wanted.empty()) return true;
  const auto survey = start(launch, device, stream, false);
  if (!survey) return false;
  for (const auto& [tensor, action, view] : launch.wanted) {
    save(*tensor, action, survey, view);
    note_lent(*tensor, survey, nullptr);
    if (remember) seen_.note(tensor->tensor, *tensor->view, {survey, view, launch.absolute});
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

std::shared_ptr<gpu::LateCopy> DeviceTensors::start_copy(int device, uintptr_t stream,
                                                         std::span<const Offered> tensors) {
  auto opened = cuda_device(device);
  if (!opened.ok()) {
    give_up(device, opened.error());
    return nullptr;
  }
  std::vector<gpu::CopySource> sources;
  for (const Offered& tensor : tensors) {
    sources.push_back({reinterpret_cast<gpu::Address>(tensor.view->data),
                       static_cast<size_t>(tensor.view->size_bytes())});
  }
  auto copy = (*opened)->copier().copy(sources, reinterpret_cast<gpu::Stream>(stream));
  if (copy.ok()) return std::move(*copy);
  give_up(device, copy.error());
  return nullptr;
}

void DeviceTensors::save_copied(std::span<const Offered> tensors,
                                const std::shared_ptr<gpu::LateCopy>& late) {
  std::vector<smd::Action> actions;
  for (const Offered& tensor : tensors) actions.push_back(hook_->wanted(tensor.name));
  const auto shape_of = [](const Offered& tensor) {
    return smd::Shape(tensor.view->shape.begin(), tensor.view->shape.end());
  };
  smd::Status status;
  {
    const nb::gil_scoped_release released;  // a full queue is waited for
    for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
      if (!actions[i].raw) continue;
      const smd::OwnedTensor owned{.owner = late,
                                   .data = late->bytes(i).data(),
                                   .dtype = tensors[i].view->dtype,
                                   .shape = shape_of(tensors[i])};
      status =
          hook_->save_late_values(tensors[i].name, owned, std::make_shared<CopiedTensor>(late));
    }
  }
  check(std::move(status));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Offered& tensor = tensors[i];
    const smd::Action& action = actions[i];
    note_lent(tensor, nullptr, late);
    if (is_surveyed(action, *tensor.view)) continue;
    const bool histogram =
        !action.histogram_of.empty() && tensor.view->dtype != smd::DType::boolean;
    if (action.shape) check(hook_->save_shape(tensor.name, tensor.view->shape));
    check(hook_->save_late(tensor.name, std::make_shared<CopiedStatistics>(
                                            late, i, tensor.view->dtype, shape_of(tensor),
                                            action.reductions, histogram)));
  }
}

size_t DeviceTensors::copy_on(int device, uintptr_t stream, std::span<const Offered> tensors) {
  size_t whole = 0;
  std::vector<bool> is_copied;
  std::vector<Offered> surveyed;
  for (; whole < tensors.size() && tensors[whole].view->is_contiguous(); ++whole) {
    const smd::Action action = hook_->wanted(tensors[whole].name);
    const bool is_read = is_surveyed(action, *tensors[whole].view);
    if (is_read) surveyed.push_back(tensors[whole]);
    is_copied.push_back(action.raw || !is_read);
  }
  if (!survey_on(device, stream, surveyed, false)) return 0;
  for (size_t next = 0; next < whole;) {
    std::vector<Offered> together;
    size_t bytes = 0, end = next;
    for (; end < whole; ++end) {
      if (!is_copied[end]) continue;
      bytes += static_cast<size_t>(tensors[end].view->size_bytes());
      if (!together.empty() && bytes > gpu::kCopiedTogether) break;
      together.push_back(tensors[end]);
    }
    if (!together.empty()) {
      const auto late = start_copy(device, stream, together);
      if (!late) return next;
      save_copied(together, late);
    }
    next = end;
  }
  return whole;
}

size_t DeviceTensors::copy(std::span<const Offered> tensors) {
  size_t done = 0;
  while (done < tensors.size()) {
    const int device = tensors[done].device;
    const auto next = std::find_if(tensors.begin() + static_cast<ptrdiff_t>(done), tensors.end(),
                                   [&](const Offered& other) { return other.device != device; });
    const auto count = static_cast<size_t>(next - tensors.begin()) - done;
    const size_t copied = copy_on(device, stream_of(device), tensors.subspan(done, count));
    done += copied;
    if (copied < count) break;
  }
  return done;
}

// ---- arrays of other frameworks

void DeviceTensors::note_lent(const Offered& tensor, std::shared_ptr<gpu::LateSurvey> survey,
                              std::shared_ptr<gpu::LateCopy> copy) {
  if (!nb::isinstance<DeviceArray>(tensor.tensor)) return;
  const auto bytes = static_cast<size_t>(tensor.view->size_bytes());
  lent_bytes_ += bytes;
  lent_.push_back({nb::borrow(tensor.tensor), bytes, std::move(survey), std::move(copy)});
}

void DeviceTensors::give_back_lent(size_t most) {
  while (!lent_.empty()) {
    const Lent& oldest = lent_.front();
    const bool ready = oldest.survey ? oldest.survey->is_ready() : oldest.copy->is_ready();
    if (!ready) {
      if (lent_bytes_ <= most) return;
      const nb::gil_scoped_release released;
      // Who writes its results reports a device that has failed.
      (void)(oldest.survey ? oldest.survey->wait() : oldest.copy->wait());
    }
    lent_bytes_ -= oldest.bytes;
    lent_.pop_front();
  }
}

// ---- for Python

std::vector<size_t> DeviceTensors::survey_list(const nb::list& names, const nb::list& tensors) {
  release_before();
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
  release_before();
  std::vector<size_t> left, taken;
  std::deque<DeviceView> views;
  std::vector<Offered> offered;
  for (size_t i = 0; i < nb::len(names); ++i) {
    const std::string_view name = to_name(names[i]);
    const smd::Hook::LateWish late = check(hook_->late_wish(name, kind));
    DeviceView& view = views.emplace_back();
    if (!is_late(late) || !look(tensors[i], view) || view.view.size() == 0) {
      left.push_back(i);
      continue;
    }
    taken.push_back(i);
    offered.push_back({name, tensors[i], &view.view, view.device});
  }
  left.insert(left.end(), taken.begin() + static_cast<ptrdiff_t>(copy(offered)), taken.end());
  return left;
}

bool DeviceTensors::hold_one(const std::string& name, nb::handle gradient) {
  DeviceView view;
  if (!look(gradient, view)) return false;
  return hold_gradient({name, gradient, &view.view, view.device},
                       wish(name, view.view, view.device));
}

}  // namespace smdebug
