// Callbacks that hand tensors to the core without running Python code: that code would cost more
// than reducing most tensors. Whatever is unusual goes to a function in Python instead.

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/src/bindings.h"
#include "python/src/callback_type.h"
#include "python/src/device_tensors.h"
#include "python/src/errors.h"
#include "python/src/exchange_api.h"
#include "python/src/hook_cost.h"
#include "python/src/hook_lock.h"
#include "python/src/released_gil.h"
#include "python/src/replay_check.h"
#include "python/src/seen_tensors.h"
#include "python/src/values.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

using smd::Hook;

// What the callbacks of one hook share. `enabled` is off while something must see every tensor.
class DirectPath final {
 public:
  DirectPath(std::shared_ptr<Hook> hook, nb::handle exchange, const nb::dict& parts)
      : hook_(std::move(hook)),
        indices_(nb::cast<nb::dict>(parts["indices"])),
        failed_(parts["failed"]),
        located_(parts["located"]),
        isolate_(parts["isolate"]),
        devices_(parts["devices"]),
        lock_(nb::cast<std::shared_ptr<HookLock>>(parts["lock"])),
        check_(parts) {
    if (!devices_.is_none() && !nb::isinstance<DeviceTensors>(devices_)) {
      raise("SMDebugTypeError", "DeviceTensors or None was expected.");
    }
    if (exchange.is_none()) return;
    if (auto api = ExchangeApi::from(exchange); api.ok()) api_ = *api;
  }

  bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }

  // Whether gradients of devices may wait until backward ends.
  bool holds() const { return holds_; }
  void set_holds(bool holds) { holds_ = holds; }

  bool is_step_wanted() const { return hook_->is_step_wanted(); }
  bool wants(smd::Ticket& ticket) const { return hook_->wants(ticket); }
  bool has_bad_tensor() const { return hook_->first_bad_tensor().has_value(); }
  // Notes from where the module was called: a tensor of it was the first bad one.
  void locate(nb::handle module_name) {
    isolated([&] { located_(module_name); });
  }

  bool is_replay() const { return check_.is_replay(); }

  // A tensor that is about to be saved.
  struct Offered {
    smd::Ticket* ticket = nullptr;
    nb::handle tensor;
    smd::TensorView view;
    ExchangedTensor exchanged;  // what the view refers to
    // Of a tensor on a device.
    DeviceTensors::Wish wish = DeviceTensors::Wish::nothing;
    DeviceTensors::Offered for_device;
    uint64_t content = 0;  // of one of the host, see Hook::save

    bool on_device() const { return exchanged.on_device(); }
  };
  // Those of one call. Views refer to them, so they stay where they are; their memory is used
  // again.
  class Offers final {
   public:
    Offered& add() {
      if (count_ == memory_.size()) memory_.push_back(std::make_unique<Offered>());
      return *memory_[count_++];
    }
    void clear() { count_ = 0; }
    size_t size() const { return count_; }
    const Offered& operator[](size_t i) const { return *memory_[i]; }
    Offered& last() { return *memory_[count_ - 1]; }
    template <typename F>
    bool any_of(F&& test) const {
      for (size_t i = 0; i < count_; ++i) {
        if (test(*memory_[i])) return true;
      }
      return false;
    }

   private:
    std::vector<std::unique_ptr<Offered>> memory_;
    size_t count_ = 0;
  };

  // Runs `work` on no offers yet, with the lock of the hook; false: somebody else has it, or the
  // path is off.
  template <typename F>
  bool locked(F&& work) {
    if (!enabled_ || !api_) return false;
    const std::unique_lock lock(*lock_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const HookCost cost(hook_.get());
    // Python code that `work` runs may come here again.
    std::unique_ptr<Offers> offers = std::move(spare_);
    if (!offers) offers = std::make_unique<Offers>();
    const bool done = work(*offers);
    offers->clear();
    spare_ = std::move(offers);
    return done;
  }
  // False: it cannot be read as it is.
  bool look(nb::handle tensor, smd::Ticket& ticket, Offers& offers) {
    Offered& next = offers.add();
    next.ticket = &ticket;
    next.tensor = tensor;
    next.wish = DeviceTensors::Wish::nothing;
    next.content = 0;
    const auto view = api_->view_anywhere(tensor, next.exchanged);
    if (!view.ok()) return false;
    next.view = *view;
    if (!next.on_device()) return true;
    DeviceTensors* devices = this->devices();
    // What has a kind is looked at in further ways.
    if (devices == nullptr || ticket.kind() != smd::Kind::automatic) return false;
    next.for_device = {&devices->name_of(ticket.name()), tensor, &next.view,
                       next.exchanged.tensor.device_id};
    next.wish = devices->wish(next.for_device);
    return next.wish != DeviceTensors::Wish::other;
  }
  // The last one may come again in this step, or has come already: what is found of it is kept.
  void note(Offers& offers) {
    Offered& tensor = offers.last();
    if (tensor.on_device() || tensor.view.size_bytes() < kLeastNotedBytes) return;
    if (const smd::Step step = hook_->step().step; step != seen_step_) {
      seen_.clear();
      seen_step_ = step;
    }
    const auto any = [](uint64_t) { return true; };
    if (const uint64_t* content = seen_.find(tensor.tensor, tensor.view, any)) {
      tensor.content = *content;
    } else if (const uint64_t next = hook_->next_content();
               seen_.note(tensor.tensor, tensor.view, next)) {
      tensor.content = next;
    }
  }
  // Those on devices, `activations`: what a module took and gave. False: a device has failed.
  bool save_on_devices(const Offers& offers, bool activations) {
    return guarded([&] {
      DeviceTensors& devices = *this->devices();
      std::vector<DeviceTensors::Offered> surveyed, copied;
      for (size_t i = 0; i < offers.size(); ++i) {
        const DeviceTensors::Offered& tensor = offers[i].for_device;
        if (offers[i].wish == DeviceTensors::Wish::copy) {
          copied.push_back(tensor);
        } else if (offers[i].wish == DeviceTensors::Wish::statistics &&
                   !(activations && devices.hold_activation(tensor))) {
          surveyed.push_back(tensor);
        }
      }
      if (surveyed.empty() && copied.empty()) return true;
      devices.release_before();
      // Of a list that one device has read nothing is offered again.
      if (!surveyed.empty() && devices.survey(surveyed).size() == surveyed.size()) return false;
      (void)devices.copy(copied);
      return true;
    });
  }
  // Keeps a gradient for a moment; false: it cannot.
  bool hold(const Offered& gradient) {
    if (!holds_) return false;
    return guarded([&] { return devices()->hold_gradient(gradient.for_device, gradient.wish); });
  }
  // Those of the host.
  void save(const Offers& offers) {
    int64_t bytes = 0;
    for (size_t i = 0; i < offers.size(); ++i) {
      if (!offers[i].on_device()) bytes += offers[i].view.size_bytes();
    }
    smd::Status status;
    {
      const ReleasedGil released(bytes);
      for (size_t i = 0; i < offers.size() && status.ok(); ++i) {
        if (!offers[i].on_device()) {
          status = hook_->save(*offers[i].ticket, offers[i].view, offers[i].content);
        }
      }
    }
    if (!status.ok()) isolated([&] { failed_(to_text(status.error().message)); });
  }

  // True also after a failure, which is reported.
  template <typename F>
  bool guarded(F&& work) {
    try {
      return work();
    } catch (nb::python_error& error) {
      const nb::str message(error.value());
      isolated([&] { failed_(message); });
      return true;
    }
  }

  // How many inputs or outputs of a module this step has seen. Shared with Python.
  int64_t index_of(nb::handle stem) const {
    PyObject* known = PyDict_GetItemWithError(indices_.ptr(), stem.ptr());
    return known == nullptr ? 0 : PyLong_AsLongLong(known);
  }
  void set_index(nb::handle stem, int64_t index) { indices_[stem] = nb::int_(index); }

  // Python code, whose time is a cost of recording.
  template <typename F>
  void isolated(F&& call) {
    const HookCost cost(hook_.get());
    const Isolation isolation(isolate_);
    call();
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(failed_.ptr());
    Py_VISIT(located_.ptr());
    Py_VISIT(devices_.ptr());
    return 0;
  }
  void clear() {
    enabled_ = false;
    failed_.reset();
    located_.reset();
    devices_.reset();
  }

 private:
  // Smaller ones are read sooner than found.
  static constexpr int64_t kLeastNotedBytes = 64 << 10;

  DeviceTensors* devices() const {
    if (!devices_.is_valid() || devices_.is_none()) return nullptr;
    return nb::inst_ptr<DeviceTensors>(devices_);
  }

  std::shared_ptr<Hook> hook_;
  std::optional<ExchangeApi> api_;
  nb::dict indices_;
  nb::object failed_;   // failed(message)
  nb::object located_;  // located(name of the module)
  nb::object isolate_;
  nb::object devices_;  // DeviceTensors
  std::shared_ptr<HookLock> lock_;
  ReplayCheck check_;
  std::unique_ptr<Offers> spare_;
  SeenTensors<uint64_t> seen_;  // in seen_step_
  smd::Step seen_step_ = -1;
  bool enabled_ = true;
  bool holds_ = true;
};

// The path, which must be one: callbacks use it without a further look.
nb::object checked(nb::object path) {
  if (!nb::isinstance<DirectPath>(path)) raise("SMDebugTypeError", "A DirectPath was expected.");
  return path;
}

// On a parameter: saves its gradient. slow(gradient) does so when it cannot.
class GradientCallback final {
 public:
  GradientCallback(nb::object path, std::string name, nb::object slow)
      : path_(checked(std::move(path))), ticket_(std::move(name)), slow_(std::move(slow)) {}

  nb::object called(const CallArguments& arguments) {
    arguments.expect(1);
    save(arguments[0]);
    return nb::none();
  }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(path_.ptr());
    Py_VISIT(slow_.ptr());
    return 0;
  }
  void clear() {
    path_.reset();
    slow_.reset();
  }

 private:
  void save(nb::handle gradient) {
    DirectPath& path = *nb::inst_ptr<DirectPath>(path_);
    if (!path.is_step_wanted()) return;
    const bool saved = path.locked([&](DirectPath::Offers& offers) {
      if (!path.wants(ticket_)) return true;
      if (!path.look(gradient, ticket_, offers)) return false;
      if (offers[0].on_device()) {
        return path.hold(offers[0]) || path.save_on_devices(offers, false);
      }
      path.save(offers);
      return true;
    });
    if (!saved) path.isolated([&] { slow_(gradient); });
  }

  nb::object path_;
  smd::Ticket ticket_;
  nb::object slow_;
};

// The tensors <stem>_0, <stem>_1, … that calls of one module have as inputs or outputs.
class TicketRow final {
 public:
  TicketRow() = default;
  TicketRow(std::string stem, smd::Kind kind)
      : stem_(to_text(stem)), text_(std::move(stem)), kind_(kind) {}

  // As Python's names have it.
  const nb::str& stem() const { return stem_; }
  // Stays where it is.
  smd::Ticket& at(int64_t index) {
    while (static_cast<int64_t>(tickets_.size()) <= index) {
      tickets_.emplace_back(text_ + "_" + std::to_string(tickets_.size()), kind_);
    }
    return tickets_[static_cast<size_t>(index)];
  }

 private:
  nb::str stem_{""};
  std::string text_;
  smd::Kind kind_ = smd::Kind::automatic;
  std::deque<smd::Ticket> tickets_;
};

// After the forward of a module: saves its inputs and outputs, the latter as what `kind` says.
// slow(module, args, kwargs, output) does so when one of them is no plain tensor. Copies of it do
// nothing.
class ModuleCallback final {
 public:
  ModuleCallback() = default;
  ModuleCallback(nb::object path, const std::string& name, nb::object tensor_types, nb::object slow,
                 smd::Kind kind)
      : path_(checked(std::move(path))),
        name_(to_text(name)),
        inputs_(name + "_input", smd::Kind::automatic),
        outputs_(name + "_output", kind),
        tensor_types_(std::move(tensor_types)),
        slow_(std::move(slow)) {}

  // With (module, args, kwargs, output).
  nb::object called(const CallArguments& arguments) {
    arguments.expect(4);
    if (!slow_.is_valid()) return nb::none();
    DirectPath& path = *nb::inst_ptr<DirectPath>(path_);
    if (!path.is_step_wanted()) return nb::none();
    const nb::handle args = arguments[1], kwargs = arguments[2], output = arguments[3];
    if (PyDict_Size(kwargs.ptr()) != 0 || !path.locked([&](DirectPath::Offers& offers) {
          return save(path, args, output, offers);
        })) {
      path.isolated([&] { slow_(arguments[0], args, kwargs, output); });
    }
    return nb::none();
  }

  bool inert() const { return !slow_.is_valid(); }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(path_.ptr());
    Py_VISIT(slow_.ptr());
    return 0;
  }
  void clear() {
    path_.reset();
    slow_.reset();
  }

 private:
  // False, and nothing has happened: not all of it is plain.
  bool save(DirectPath& path, nb::handle args, nb::handle output, DirectPath::Offers& offers) {
    if (path.is_replay()) return true;
    const auto inputs = look(path, args, inputs_, offers);
    if (!inputs) return false;
    const auto outputs = look(path, output, outputs_, offers);
    if (!outputs) return false;
    if (offers.any_of([](const DirectPath::Offered& tensor) { return tensor.on_device(); })) {
      if (!path.save_on_devices(offers, true)) return false;
      // Whether they are bad is known when the call is over.
      if (!std::exchange(is_located_, true)) path.locate(name_);
    }
    path.set_index(inputs_.stem(), *inputs);
    path.set_index(outputs_.stem(), *outputs);
    const bool was_bad = path.has_bad_tensor();
    path.save(offers);
    if (!was_bad && path.has_bad_tensor()) path.locate(name_);
    return true;
  }

  // The index behind the last tensor of a tensor or a tuple of tensors.
  std::optional<int64_t> look(DirectPath& path, nb::handle value, TicketRow& row,
                              DirectPath::Offers& offers) const {
    int64_t index = path.index_of(row.stem());
    const auto add = [&](nb::handle tensor) {
      if (!is_tensor(tensor)) return false;
      smd::Ticket& ticket = row.at(index++);
      // What has a kind joins its collection when it is saved.
      if (ticket.kind() == smd::Kind::automatic && !path.wants(ticket)) return true;
      if (!path.look(tensor, ticket, offers)) return false;
      path.note(offers);
      return true;
    };
    if (!PyTuple_CheckExact(value.ptr())) {
      if (!add(value)) return std::nullopt;
      return index;
    }
    for (const nb::handle item : nb::borrow<nb::tuple>(value)) {
      if (!add(item)) return std::nullopt;
    }
    return index;
  }

  bool is_tensor(nb::handle value) const {
    for (const nb::handle type : nb::borrow<nb::tuple>(tensor_types_)) {
      if (value.type().is(type)) return true;
    }
    return false;
  }

  nb::object path_;
  nb::object name_;
  TicketRow inputs_;
  TicketRow outputs_;
  nb::object tensor_types_;
  nb::object slow_;
  bool is_located_ = false;  // it is known from where the module is called
};

}  // namespace

void bind_direct(nb::module_& m) {
  nb::class_<DirectPath>(m, "DirectPath", nb::type_slots(kSharedSlots<DirectPath>),
                         "What callbacks share that hand tensors over without running Python.")
      .def(nb::init<std::shared_ptr<Hook>, nb::handle, const nb::dict&>(), nb::arg("hook"),
           nb::arg("exchange").none(), nb::arg("parts"))
      .def_prop_rw("enabled", &DirectPath::enabled, &DirectPath::set_enabled)
      .def_prop_rw("holds", &DirectPath::holds, &DirectPath::set_holds);
  nb::class_<GradientCallback>(m, "GradientCallback",
                               nb::type_slots(kCallbackSlots<GradientCallback>))
      .def(nb::init<nb::object, std::string, nb::object>(), nb::arg("path"), nb::arg("name"),
           nb::arg("slow"));
  auto module =
      nb::class_<ModuleCallback>(m, "ModuleCallback",
                                 nb::type_slots(kCallbackSlots<ModuleCallback>),
                                 nb::is_weak_referenceable())
          .def(nb::init<>())
          .def(nb::init<nb::object, const std::string&, nb::object, nb::object, smd::Kind>(),
               nb::arg("path"), nb::arg("name"), nb::arg("tensor_types"), nb::arg("slow"),
               nb::arg("kind") = smd::Kind::automatic)
          .def_prop_ro("is_inert", &ModuleCallback::inert);
  bind_copying(module);
}

}  // namespace smdebug
