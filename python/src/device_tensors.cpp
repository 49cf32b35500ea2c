#include "python/src/device_tensors.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "python/src/errors.h"
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

DeviceTensors::Name& DeviceTensors::name_of(std::string_view name, smd::Kind kind) {
  Names& names = names_[kind];
  if (const auto known = names.find(name); known != names.end()) return known->second;
  std::string text(name);
  return names.try_emplace(text, Name{.ticket = smd::Ticket(text, kind)}).first->second;
}

DeviceTensors::Wish DeviceTensors::wish(Offered& tensor) {
  smd::Ticket& ticket = tensor.name->ticket;
  const smd::Action action = hook_->wanted(ticket);
  if (action.empty() && !hook_->wants(ticket)) return Wish::nothing;
  if (!is_usable(tensor.device) || tensor.view->size() == 0) return Wish::other;
  const auto known = cuda_device(tensor.device);
  if (!known.ok()) return Wish::other;
  tensor.stream = stream_of(tensor.device);
  if ((*known)->is_capturing(reinterpret_cast<gpu::Stream>(tensor.stream))) return Wish::other;
  if (!action.raw && is_surveyed(action, *tensor.view)) return Wish::statistics;
  return tensor.view->is_contiguous() ? Wish::copy : Wish::other;
}

bool DeviceTensors::set_veto(nb::handle number) {
  permission_ = {};
  if (number.is_none()) return true;
  DeviceView view;
  if (!look(number, view) || !is_usable(view.device) || view.view.size() != 1) return false;
  const auto device = cuda_device(view.device);
  if (!device.ok()) return false;
  const gpu::CopySource source{reinterpret_cast<gpu::Address>(view.view.data),
                               static_cast<size_t>(view.view.size_bytes())};
  const auto stream = reinterpret_cast<gpu::Stream>(stream_of(view.device));
  auto copy = (*device)->copier().copy({&source, 1}, stream);
  if (!copy.ok()) return false;
  permission_ = Permission(std::move(*copy), view.view.dtype);
  return true;
}

// ---- statistics

std::vector<smd::DType> DeviceTensors::Launch::dtypes() const {
  std::vector<smd::DType> out;
  out.reserve(views.size());
  for (const smd::TensorView& view : views) out.push_back(view.dtype);
  return out;
}

DeviceTensors::Launch DeviceTensors::plan(int device, std::span<const Offered> tensors,
                                          bool remember) {
  Launch out;
  out.wanted.reserve(tensors.size());
  out.views.reserve(tensors.size());
  for (const Offered& tensor : tensors) {
    if (tensor.device != device) continue;
    smd::Ticket& ticket = tensor.name->ticket;
    const smd::Action action = hook_->wanted(ticket);
    const bool deviations = gpu::needs_absolute_deviations(action.reductions);
    const auto fits = [&](const Surveyed& seen) { return seen.absolute_deviations || !deviations; };
    if (const Surveyed* seen = remember ? seen_.find(tensor.tensor, *tensor.view, fits) : nullptr) {
      if (action.shape) check(hook_->save_shape(ticket.name(), tensor.view->shape));
      const smd::Hook::LateListed again{&ticket, seen->index};
      check(hook_->save_late({&again, 1}, seen->list));
      continue;
    }
    out.absolute = out.absolute || deviations;
    const size_t view = find_recent(out.views, *tensor.view);
    if (view == out.views.size()) out.views.push_back(*tensor.view);
    out.wanted.push_back({&tensor, action.shape, view});
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
  const auto list = std::make_shared<SurveyedList>(survey, launch.dtypes(), permission_);
  std::vector<smd::Hook::LateListed> listed;
  listed.reserve(launch.wanted.size());
  for (const auto& [tensor, shape, view] : launch.wanted) {
    if (shape) check(hook_->save_shape(tensor->name->ticket.name(), tensor->view->shape));
    listed.push_back({&tensor->name->ticket, view});
    note_lent(*tensor, survey, nullptr);
    if (remember) seen_.note(tensor->tensor, *tensor->view, {list, view, launch.absolute});
  }
  check(hook_->save_late(listed, list));
  return true;
}

std::vector<size_t> DeviceTensors::survey(std::span<const Offered> tensors) {
  // What may be left out stands for no other tensor, and no other for it.
  const bool remember = tensors.size() <= kFew && permission_.is_certain();
  std::map<int, bool> done;
  std::vector<size_t> left;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [name, tensor, view, device, stream] = tensors[i];
    const auto [known, is_new] = done.try_emplace(device, true);
    if (is_new) known->second = survey_on(device, stream, tensors, remember);
    if (!known->second) left.push_back(i);
  }
  return left;
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
  std::vector<CopiedList::Tensor> copied;
  std::vector<smd::Hook::LateListed> searched;  // whose statistics the kernels cannot find
  for (size_t i = 0; i < tensors.size(); ++i) {
    const smd::TensorView& view = *tensors[i].view;
    smd::Ticket& ticket = tensors[i].name->ticket;
    copied.push_back({view.dtype, {view.shape.begin(), view.shape.end()}});
    note_lent(tensors[i], nullptr, late);
    const smd::Action action = hook_->wanted(ticket);
    if (is_surveyed(action, view)) continue;
    if (action.shape) check(hook_->save_shape(ticket.name(), view.shape));
    searched.push_back({&ticket, i});
  }
  const auto memory = std::make_shared<CopiedMemory>(late, permission_);
  smd::Status status;
  {
    const nb::gil_scoped_release released;  // a full queue is waited for
    for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
      const smd::OwnedTensor owned{.owner = late,
                                   .data = late->bytes(i).data(),
                                   .dtype = copied[i].dtype,
                                   .shape = copied[i].shape};
      status = hook_->save_late_values(tensors[i].name->ticket, owned, memory);
    }
  }
  check(std::move(status));
  if (searched.empty()) return;
  check(hook_->save_late(searched,
                         std::make_shared<CopiedList>(late, std::move(copied), permission_)));
}

size_t DeviceTensors::copy_on(int device, uintptr_t stream, std::span<const Offered> tensors) {
  size_t whole = 0, bytes = 0;  // of the values that find room
  std::vector<bool> is_copied;
  std::vector<Offered> surveyed;
  for (; whole < tensors.size() && tensors[whole].view->is_contiguous(); ++whole) {
    const smd::Action action = hook_->wanted(tensors[whole].name->ticket);
    const bool is_read = is_surveyed(action, *tensors[whole].view);
    if (is_read) surveyed.push_back(tensors[whole]);
    const auto size = static_cast<size_t>(tensors[whole].view->size_bytes());
    const bool is_left_out = is_read && action.raw && !hook_->has_room(bytes + size);
    if (is_left_out) hook_->leave_out(tensors[whole].name->ticket.name(), size);
    is_copied.push_back((action.raw || !is_read) && !is_left_out);
    if (is_copied.back()) bytes += size;
  }
  if (!survey_on(device, stream, surveyed, false)) return 0;
  for (size_t next = 0; next < whole;) {
    std::vector<Offered> together;
    size_t joined = 0, end = next;
    for (; end < whole; ++end) {
      if (!is_copied[end]) continue;
      joined += static_cast<size_t>(tensors[end].view->size_bytes());
      if (!together.empty() && joined > gpu::kCopiedTogether) break;
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
    const auto& [name, tensor, view, device, stream] = tensors[done];
    size_t count = 1;
    while (done + count < tensors.size() && tensors[done + count].device == device) ++count;
    const size_t copied = copy_on(device, stream, tensors.subspan(done, count));
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

std::vector<size_t> DeviceTensors::save_list(const Tickets& names, const nb::list& tensors,
                                             const nb::tuple& types) {
  std::vector<size_t> left, surveyed, copied;
  std::deque<DeviceView> views;
  std::vector<Offered> read, whole;
  const auto is_plain = [&](nb::handle tensor) {
    return std::any_of(types.begin(), types.end(),
                       [&](nb::handle type) { return tensor.type().is(type); });
  };
  for (size_t i = 0; i < std::min(names.size(), nb::len(tensors)); ++i) {
    const nb::handle tensor = tensors[i];
    DeviceView& view = views.emplace_back();
    if (!is_plain(tensor) || !look(tensor, view)) {
      left.push_back(i);
      continue;
    }
    Offered next{&name_of(names[i].name()), tensor, &view.view, view.device};
    switch (wish(next)) {
      case Wish::nothing: break;
      case Wish::other: left.push_back(i); break;
      case Wish::statistics:
        surveyed.push_back(i);
        read.push_back(next);
        break;
      case Wish::copy:
        copied.push_back(i);
        whole.push_back(next);
        break;
    }
  }
  if (read.empty() && whole.empty()) return left;
  release_before();
  for (const size_t i : survey(read)) left.push_back(surveyed[i]);
  left.insert(left.end(), copied.begin() + static_cast<ptrdiff_t>(copy(whole)), copied.end());
  return left;
}

std::vector<size_t> DeviceTensors::survey_list(const nb::list& names, const nb::list& tensors) {
  release_before();
  const size_t count = nb::len(names);
  std::vector<size_t> left, taken;
  std::deque<DeviceView> views;
  std::vector<Offered> offered;
  for (size_t i = 0; i < count; ++i) {
    DeviceView& view = views.emplace_back();
    Offered next{&name_of(to_name(names[i])), tensors[i]};
    if (look(tensors[i], view)) {
      next.view = &view.view;
      next.device = view.device;
      if (wish(next) == Wish::statistics) {
        taken.push_back(i);
        offered.push_back(next);
        continue;
      }
    }
    left.push_back(i);
  }
  for (const size_t i : survey(offered)) left.push_back(taken[i]);
  return left;
}

std::vector<size_t> DeviceTensors::copy_list(const nb::list& names, const nb::list& tensors,
                                             smd::Kind kind) {
  release_before();
  std::vector<size_t> left, taken;
  std::deque<DeviceView> views;
  std::vector<Offered> offered;
  for (size_t i = 0; i < nb::len(names); ++i) {
    Name& name = name_of(to_name(names[i]), kind);
    (void)hook_->wanted(name.ticket);  // it joins the collection of its kind
    DeviceView& view = views.emplace_back();
    if (!look(tensors[i], view) || view.view.size() == 0) {
      left.push_back(i);
      continue;
    }
    taken.push_back(i);
    offered.push_back({&name, tensors[i], &view.view, view.device, stream_of(view.device)});
  }
  left.insert(left.end(), taken.begin() + static_cast<ptrdiff_t>(copy(offered)), taken.end());
  return left;
}

bool DeviceTensors::hold_one(const std::string& name, nb::handle gradient) {
  DeviceView view;
  if (!look(gradient, view)) return false;
  Offered offered{&name_of(name), gradient, &view.view, view.device};
  const Wish wanted = wish(offered);
  return hold_gradient(offered, wanted);
}

}  // namespace smdebug
