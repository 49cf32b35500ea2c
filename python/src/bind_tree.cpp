// Whether a model and what is saved of it are as they were at the last step.

#include <nanobind/nanobind.h>

#include <vector>

#include "python/src/bindings.h"
#include "python/src/selection_key.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

namespace nb = nanobind;
using smd::Hook;

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

void bind_tree(nb::module_& m) {
  nb::class_<ModuleTree>(m, "ModuleTree", "Tells whether a model has other parts than before.")
      .def(nb::init<>())
      .def("is_same", &ModuleTree::is_same, nb::arg("module"));
  m.def("selection_key", &selection_key, nb::arg("hook"),
        "Differs when other collections are active, or when any of them has changed.");
}

}  // namespace smdebug
