// What the hook for PyTorch needs beside the common one: tensors in lists, and callbacks that
// models can be copied and compiled with.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <optional>

#include "python/src/bindings.h"
#include "python/src/errors.h"
#include "python/src/exchange_api.h"
#include "python/src/tensor_arg.h"
#include "python/src/values.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

using smd::Hook;
using Refused = std::vector<std::tuple<size_t, std::string>>;

// Calls that move at least this many bytes let other Python threads run meanwhile.
constexpr int64_t kReleaseBytes = 64 << 10;

struct Offered {
  std::string_view name;
  smd::TensorView view;
  ExchangedTensor exchanged;         // what the view refers to
  std::optional<TensorArg> imported;  // the same without the exchange API
};

// A view of the tensor in `offered`; the reason why there is none.
std::optional<std::string> look(nb::handle tensor, const std::optional<ExchangeApi>& api,
                                Offered& offered) {
  if (api) {
    auto view = api->view(tensor, offered.exchanged);
    if (!view.ok()) return view.error().message;
    offered.view = *view;
    return std::nullopt;
  }
  try {
    offered.imported.emplace(tensor, offered.name);
  } catch (nb::python_error& error) {
    return nb::cast<std::string>(nb::str(error.value()));
  }
  if (offered.imported->holds_strings()) return "The tensor holds strings.";
  offered.view = offered.imported->view();
  if (smd::Status readable = smd::check(offered.view); !readable.ok())
    return readable.error().message;
  return std::nullopt;
}

// Saves the tensors of a list that the hook wants. Gives back which could not be read, and why.
Refused save_all(Hook& hook, const nb::list& names, const nb::list& tensors, smd::Kind kind,
                 nb::handle exchange) {
  Refused refused;
  if (nb::len(names) != nb::len(tensors)) {
    raise("SMDebugValueError", fmt::format("{} names do not fit {} tensors.", nb::len(names),
                                           nb::len(tensors)));
  }
  if (!hook.is_step_wanted()) return refused;
  std::optional<ExchangeApi> api;
  if (!exchange.is_none()) api = check(ExchangeApi::from(exchange));
  std::deque<Offered> offered;  // views refer to its elements
  int64_t bytes = 0;
  for (size_t i = 0; i < nb::len(names); ++i) {
    const std::string_view name = to_name(names[i]);
    if (kind == smd::Kind::automatic && !hook.wants(name)) continue;
    Offered& next = offered.emplace_back();
    next.name = name;
    if (auto reason = look(tensors[i], api, next)) {
      refused.emplace_back(i, std::move(*reason));
      offered.pop_back();
      continue;
    }
    bytes += next.view.size_bytes();
  }
  smd::Status status;
  const auto save = [&] {
    for (const Offered& tensor : offered) {
      if (status = hook.save(tensor.name, tensor.view, kind); !status.ok()) return;
    }
  };
  if (bytes >= kReleaseBytes) {
    const nb::gil_scoped_release released;
    save();
  } else {
    save();
  }
  check(std::move(status));
  return refused;
}

// (raw, shape, names of reductions)
std::tuple<bool, bool, std::vector<std::string>> wanted(Hook& hook, std::string_view name) {
  const smd::Action action = hook.wanted(name);
  std::vector<std::string> reductions;
  action.reductions.for_each([&](smd::Reduction r) { reductions.push_back(r.name()); });
  return {action.raw, action.shape, std::move(reductions)};
}

// Values of a tensor with floating elements, in the type that its reductions have.
void save_reductions(Hook& hook, std::string_view name, const nb::dict& values,
                     const std::string& dtype_name) {
  const auto dtype = smd::dtype_from_name(dtype_name);
  if (!dtype) {
    raise("SMDebugValueError", fmt::format("There is no element type '{}'.", dtype_name));
  }
  if (smd::info_of(*dtype).kind != smd::DTypeKind::floating) {
    raise("SMDebugValueError",
          fmt::format("Reductions of {} keep its type; save the tensor instead.", dtype_name));
  }
  const smd::DType type =
      *dtype == smd::DType::float64 ? smd::DType::float64 : smd::DType::float32;
  std::vector<std::pair<std::string, smd::Number>> numbers;
  for (const auto& [label, value] : values) {
    numbers.emplace_back(nb::cast<std::string>(label),
                         smd::Number::real(type, nb::cast<double>(value)));
  }
  check(hook.save_reductions(name, numbers));
}

// A function that modules hold as callback. Copies of a model, and models read from a file, hold
// one that does nothing. Compilers of Python code do not look into it, and `isolate` keeps them
// from looking into the function that it calls.
class Callback final {
 public:
  Callback() = default;
  Callback(nb::object function, nb::object isolate)
      : function_(std::move(function)), isolate_(std::move(isolate)) {}

  nb::object call(const nb::args& args, const nb::kwargs& kwargs) const {
    if (!function_.is_valid()) return nb::none();
    if (isolate_.is_none()) return function_(*args, **kwargs);
    const nb::object before = isolate_(nb::none());
    try {
      nb::object result = function_(*args, **kwargs);
      isolate_(before);
      return result;
    } catch (...) {
      isolate_(before);
      throw;
    }
  }
  bool inert() const { return !function_.is_valid(); }

  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(function_.ptr());
    Py_VISIT(isolate_.ptr());
    return 0;
  }
  void clear() {
    function_.reset();
    isolate_.reset();
  }

 private:
  nb::object function_;
  nb::object isolate_;
};

int traverse_callback(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Callback>(self)->traverse(visit, arg) : 0;
}

int clear_callback(PyObject* self) {
  nb::inst_ptr<Callback>(self)->clear();
  return 0;
}

PyType_Slot kCallbackSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_callback)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear_callback)},
                                {0, nullptr}};

}  // namespace

void bind_torch(nb::module_& m) {
  nb::enum_<smd::Kind>(m, "Kind", "What a tensor is to the model.")
      .value("automatic", smd::Kind::automatic)
      .value("weight", smd::Kind::weight)
      .value("bias", smd::Kind::bias)
      .value("gradient", smd::Kind::gradient)
      .value("loss", smd::Kind::loss)
      .value("metric", smd::Kind::metric)
      .value("input", smd::Kind::input)
      .value("output", smd::Kind::output)
      .value("layer", smd::Kind::layer)
      .value("optimizer_state", smd::Kind::optimizer_state);
  m.def("save_all", &save_all, nb::arg("hook"), nb::arg("names"), nb::arg("tensors"),
        nb::arg("kind") = smd::Kind::automatic, nb::arg("exchange") = nb::none(),
        "Saves the tensors that are wanted; (index, reason) of those that cannot be read.");
  m.def("wanted", &wanted, nb::arg("hook"), nb::arg("name"),
        "(raw, shape, names of reductions): what is saved of a tensor at this step.");
  m.def("save_reductions", &save_reductions, nb::arg("hook"), nb::arg("name"), nb::arg("values"),
        nb::arg("dtype"), "Saves reductions that were computed elsewhere.");
  m.def(
      "save_shape",
      [](Hook& hook, std::string_view name, const std::vector<int64_t>& shape) {
        check(hook.save_shape(name, shape));
      },
      nb::arg("hook"), nb::arg("name"), nb::arg("shape"), "Saves the shape, if it is wanted.");
  nb::class_<Callback>(m, "Callback", nb::type_slots(kCallbackSlots),
                       nb::is_weak_referenceable())
      .def(nb::init<>())
      .def(nb::init<nb::object, nb::object>(), nb::arg("function"),
           nb::arg("isolate") = nb::none())
      .def("__call__", &Callback::call)
      .def_prop_ro("is_inert", &Callback::inert)
      .def("__copy__", [](const Callback&) { return Callback(); })
      .def("__deepcopy__", [](const Callback&, nb::handle) { return Callback(); })
      .def("__reduce__", [](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple());
      });
  m.def("process_rank", []() -> std::optional<std::tuple<int, int>> {
    const auto rank = check(smd::Environment::of_process().process_rank());
    if (!rank) return std::nullopt;
    return std::tuple(rank->rank, rank->size);
  }, "(rank, size) as a launcher wrote them into the environment.");
}

}  // namespace smdebug
