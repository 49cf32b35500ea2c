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
#include "python/src/errors.h"
#include "python/src/exchange_api.h"
#include "python/src/hook_cost.h"
#include "python/src/hook_lock.h"
#include "python/src/replay_check.h"
#include "python/src/selection_key.h"
#include "python/src/values.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

using smd::Hook;

// Calls that move at least this many bytes let other Python threads run meanwhile.
constexpr int64_t kReleaseBytes = 64 << 10;

// What the callbacks of one hook share. `enabled` is off while something must see every tensor.
class DirectPath final {
 public:
  DirectPath(std::shared_ptr<Hook> hook, nb::handle exchange, const nb::dict& parts)
      : hook_(std::move(hook)),
        indices_(nb::cast<nb::dict>(parts["indices"])),
        failed_(parts["failed"]),
        located_(parts["located"]),
        isolate_(parts["isolate"]),
        lock_(nb::cast<std::shared_ptr<HookLock>>(parts["lock"])),
        check_(parts) {
    if (exchange.is_none()) return;
    if (auto api = ExchangeApi::from(exchange); api.ok()) api_ = *api;
  }

  bool enabled() const { return enabled_; }
  void set_enabled(bool enabled) { enabled_ = enabled; }

  bool is_step_wanted() const { return hook_->is_step_wanted(); }
  bool wants(std::string_view name) const { return hook_->wants(name); }
  bool has_bad_tensor() const { return hook_->first_bad_tensor().has_value(); }
  // Notes from where the module was called: a tensor of it was the first bad one.
  void locate(nb::handle module_name) {
    isolated([&] { located_(module_name); });
  }

  bool is_replay() const { return check_.is_replay(); }

  // Runs `work` with the lock of the hook; false: somebody else has it, or the path is off.
  template <typename F>
  bool locked(F&& work) {
    if (!enabled_ || !api_) return false;
    const std::unique_lock lock(*lock_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    const HookCost cost(hook_.get());
    return work();
  }

  // A tensor that is about to be saved.
  struct Offered {
    std::string name;
    smd::TensorView view;
    ExchangedTensor exchanged;  // what the view refers to
  };
  // False: it cannot be read as it is.
  bool look(nb::handle tensor, std::string name, std::deque<Offered>& offered) const {
    Offered& next = offered.emplace_back();
    next.name = std::move(name);
    const auto view = api_->view(tensor, next.exchanged);
    if (!view.ok()) return false;
    next.view = *view;
    return true;
  }
  // `kind` is that of the tensors from `outputs` on.
  void save(const std::deque<Offered>& offered, size_t outputs = 0,
            smd::Kind kind = smd::Kind::automatic) {
    int64_t bytes = 0;
    for (const Offered& tensor : offered) bytes += tensor.view.size_bytes();
    smd::Status status;
    {
      std::optional<nb::gil_scoped_release> released;
      if (bytes >= kReleaseBytes) released.emplace();
      for (size_t i = 0; i < offered.size() && status.ok(); ++i) {
        const smd::Kind known = i < outputs ? smd::Kind::automatic : kind;
        status = hook_->save(offered[i].name, offered[i].view, known);
      }
    }
    if (!status.ok()) isolated([&] { failed_(to_text(status.error().message)); });
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
    return 0;
  }
  void clear() {
    enabled_ = false;
    failed_.reset();
    located_.reset();
  }

 private:
  std::shared_ptr<Hook> hook_;
  std::optional<ExchangeApi> api_;
  nb::dict indices_;
  nb::object failed_;   // failed(message)
  nb::object located_;  // located(name of the module)
  nb::object isolate_;
  std::shared_ptr<HookLock> lock_;
  ReplayCheck check_;
  bool enabled_ = true;
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
      : path_(checked(std::move(path))), name_(std::move(name)), slow_(std::move(slow)) {}

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
    const bool saved = path.locked([&] {
      if (!path.wants(name_)) return true;
      std::deque<DirectPath::Offered> offered;
      if (!path.look(gradient, name_, offered)) return false;
      path.save(offered);
      return true;
    });
    if (!saved) path.isolated([&] { slow_(gradient); });
  }

  nb::object path_;
  std::string name_;
  nb::object slow_;
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
        input_stem_(to_text(name + "_input")),
        output_stem_(to_text(name + "_output")),
        tensor_types_(std::move(tensor_types)),
        slow_(std::move(slow)),
        kind_(kind) {}

  // With (module, args, kwargs, output).
  nb::object called(const CallArguments& arguments) {
    arguments.expect(4);
    if (!slow_.is_valid()) return nb::none();
    DirectPath& path = *nb::inst_ptr<DirectPath>(path_);
    if (!path.is_step_wanted()) return nb::none();
    const nb::handle args = arguments[1], kwargs = arguments[2], output = arguments[3];
    if (PyDict_Size(kwargs.ptr()) != 0 || !path.locked([&] { return save(path, args, output); })) {
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
  bool save(DirectPath& path, nb::handle args, nb::handle output) const {
    if (path.is_replay()) return true;
    std::deque<DirectPath::Offered> offered;
    const auto inputs = look(path, args, input_stem_, smd::Kind::automatic, offered);
    if (!inputs) return false;
    const size_t first_output = offered.size();
    const auto outputs = look(path, output, output_stem_, kind_, offered);
    if (!outputs) return false;
    path.set_index(input_stem_, *inputs);
    path.set_index(output_stem_, *outputs);
    const bool was_bad = path.has_bad_tensor();
    path.save(offered, first_output, kind_);
    if (!was_bad && path.has_bad_tensor()) path.locate(name_);
    return true;
  }

  // The index behind the last tensor of a tensor or a tuple of tensors.
  std::optional<int64_t> look(DirectPath& path, nb::handle value, const nb::str& stem,
                              smd::Kind kind, std::deque<DirectPath::Offered>& offered) const {
    int64_t index = path.index_of(stem);
    const auto add = [&](nb::handle tensor) {
      if (!is_tensor(tensor)) return false;
      std::string name = std::string(stem.c_str()) + "_" + std::to_string(index++);
      // What has a kind joins its collection when it is saved.
      if (kind == smd::Kind::automatic && !path.wants(name)) return true;
      return path.look(tensor, std::move(name), offered);
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
  nb::str input_stem_{""};
  nb::str output_stem_{""};
  nb::object tensor_types_;
  nb::object slow_;
  smd::Kind kind_ = smd::Kind::automatic;
};

// Remembers which modules and parameters a model consists of, by identity, to tell in a moment
// whether that has changed.
class ModuleTree final {
 public:
  // Whether the model is as it was at the last call. Models of another make are never.
  bool is_same(nb::handle root) {
    at_ = 0;
    same_ = true;
    if (!walk(root, 0)) {
      seen_.clear();
      return false;
    }
    same_ = same_ && at_ == seen_.size();
    seen_.resize(at_);
    return same_;
  }

 private:
  static constexpr size_t kMostEntries = 1 << 20;
  static constexpr int kMostLevels = 100;

  // False: it cannot be told.
  bool walk(nb::handle module, int level) {
    if (level > kMostLevels || at_ > kMostEntries) return false;
    note(module.ptr());
    return entries(module, parameters_,
                   [&](PyObject* value) {
                     note(value);
                     return true;
                   }) &&
           entries(module, modules_, [&](PyObject* value) {
             return value == Py_None || walk(nb::handle(value), level + 1);
           });
  }

  template <typename F>
  bool entries(nb::handle module, const nb::object& attribute, F&& visit) {
    const nb::object held = nb::steal(PyObject_GetAttr(module.ptr(), attribute.ptr()));
    if (!held.is_valid()) PyErr_Clear();
    if (!held.is_valid() || !PyDict_Check(held.ptr())) return false;
    PyObject *key, *value;
    Py_ssize_t place = 0;
    note(held.ptr());
    while (PyDict_Next(held.ptr(), &place, &key, &value) != 0) {
      note(key);
      if (!visit(value)) return false;
    }
    return true;
  }

  void note(const PyObject* object) {
    if (at_ < seen_.size()) {
      same_ = same_ && seen_[at_] == object;
      seen_[at_] = object;
    } else {
      same_ = false;
      seen_.push_back(object);
    }
    ++at_;
  }

  const nb::object parameters_ = nb::steal(PyUnicode_InternFromString("_parameters"));
  const nb::object modules_ = nb::steal(PyUnicode_InternFromString("_modules"));
  std::vector<const PyObject*> seen_;  // only compared
  size_t at_ = 0;
  bool same_ = false;
};

nb::bytes selection_key(const Hook& hook) {
  SelectionKey key;
  read_selection_key(hook, key);
  return nb::bytes(key.data(), key.size() * sizeof(key[0]));
}

}  // namespace

void bind_direct(nb::module_& m) {
  nb::class_<DirectPath>(m, "DirectPath", nb::type_slots(kSharedSlots<DirectPath>),
                         "What callbacks share that hand tensors over without running Python.")
      .def(nb::init<std::shared_ptr<Hook>, nb::handle, const nb::dict&>(), nb::arg("hook"),
           nb::arg("exchange").none(), nb::arg("parts"))
      .def_prop_rw("enabled", &DirectPath::enabled, &DirectPath::set_enabled);
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
  nb::class_<ModuleTree>(m, "ModuleTree", "Tells whether a model has other parts than before.")
      .def(nb::init<>())
      .def("is_same", &ModuleTree::is_same, nb::arg("module"));
  m.def("selection_key", &selection_key, nb::arg("hook"),
        "Differs when other collections are active, or when any of them has changed.");
}

}  // namespace smdebug
