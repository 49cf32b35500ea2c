// What the hook for PyTorch needs beside the common one: tensors in lists, and callbacks that
// models can be copied and compiled with.

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "python/src/bindings.h"
#include "python/src/callback_type.h"
#include "python/src/errors.h"
#include "python/src/exchange_api.h"
#include "python/src/hook_cost.h"
#include "python/src/hook_lock.h"
#include "python/src/released_gil.h"
#include "python/src/replay_check.h"
#include "python/src/selection_key.h"
#include "python/src/tensor_arg.h"
#include "python/src/tickets.h"
#include "python/src/values.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

using smd::Hook;
using Refused = std::vector<std::tuple<size_t, std::string>>;

std::vector<std::string> names_of(const Tickets& tickets) {
  std::vector<std::string> names;
  for (size_t i = 0; i < tickets.size(); ++i) names.push_back(tickets[i].name());
  return names;
}

const std::string& name_at(const Tickets& tickets, int64_t i) {
  if (i < 0 || i >= static_cast<int64_t>(tickets.size())) {
    throw nb::index_error(fmt::format("There is no name {} among {}.", i, tickets.size()).c_str());
  }
  return tickets[static_cast<size_t>(i)].name();
}

struct Offered {
  std::string_view name;
  smd::Ticket* ticket;
  smd::TensorView view;
  ExchangedTensor exchanged;          // what the view refers to
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

// Saves the tensors of a list that are wanted. Gives back which could not be read, and why.
// begin(i, offered) gives the name of one, false: it is not wanted; save(all offered) saves them.
template <typename Begin, typename Save>
Refused save_each(size_t count, const nb::list& tensors, nb::handle exchange, Begin&& begin,
                  Save&& save) {
  Refused refused;
  std::optional<ExchangeApi> api;
  if (!exchange.is_none()) api = check(ExchangeApi::from(exchange));
  std::deque<Offered> offered;  // views refer to its elements
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    Offered& next = offered.emplace_back();
    if (!begin(i, next)) {
      offered.pop_back();
      continue;
    }
    if (auto reason = look(tensors[i], api, next)) {
      refused.emplace_back(i, std::move(*reason));
      offered.pop_back();
      continue;
    }
    bytes += next.view.size_bytes();
  }
  smd::Status status;
  {
    const ReleasedGil released(bytes);
    status = save(offered);
  }
  check(std::move(status));
  return refused;
}

void check_lengths(size_t names, size_t tensors) {
  if (names == tensors) return;
  raise("SMDebugValueError", fmt::format("{} names do not fit {} tensors.", names, tensors));
}

Refused save_all(Hook& hook, const nb::list& names, const nb::list& tensors, smd::Kind kind,
                 nb::handle exchange) {
  check_lengths(nb::len(names), nb::len(tensors));
  if (!hook.is_step_wanted()) return {};
  const auto begin = [&](size_t i, Offered& next) {
    next.name = to_name(names[i]);
    return kind != smd::Kind::automatic || hook.wants(next.name);
  };
  const auto save = [&](const std::deque<Offered>& offered) {
    smd::Status status;
    for (size_t i = 0; i < offered.size() && status.ok(); ++i) {
      status = hook.save(offered[i].name, offered[i].view, kind);
    }
    return status;
  };
  return save_each(nb::len(names), tensors, exchange, begin, save);
}

Refused save_again(Hook& hook, Tickets& tickets, const nb::list& tensors, nb::handle exchange) {
  check_lengths(tickets.size(), nb::len(tensors));
  if (!hook.is_step_wanted()) return {};
  const auto begin = [&](size_t i, Offered& next) {
    next.ticket = &tickets[i];
    next.name = next.ticket->name();
    return hook.wants(*next.ticket);
  };
  const auto save = [&](const std::deque<Offered>& offered) {
    std::vector<Hook::Listed> list;
    list.reserve(offered.size());
    for (const Offered& tensor : offered) list.push_back({tensor.ticket, tensor.view});
    return hook.save_list(list);
  };
  return save_each(tickets.size(), tensors, exchange, begin, save);
}

// "": nothing. "values": it is saved as it is, or shown as a histogram. "statistics": what can be
// told of its elements is enough.
const char* wish_for(Hook& hook, std::string_view name) {
  if (!hook.wants(name)) return "";
  const smd::Action action = hook.wanted(name);
  return action.raw || !action.histogram_of.empty() ? "values" : "statistics";
}

// (values, shape, names of reductions)
std::tuple<bool, bool, std::vector<std::string>> wanted(Hook& hook, std::string_view name) {
  const smd::Action action = hook.wanted(name);
  std::vector<std::string> reductions;
  action.reductions.for_each([&](smd::Reduction r) { reductions.push_back(r.name()); });
  return {action.raw || !action.histogram_of.empty(), action.shape, std::move(reductions)};
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
  const smd::DType type = *dtype == smd::DType::float64 ? smd::DType::float64 : smd::DType::float32;
  std::vector<std::pair<std::string, smd::Number>> numbers;
  for (const auto& [label, value] : values) {
    numbers.emplace_back(nb::cast<std::string>(label),
                         smd::Number::real(type, nb::cast<double>(value)));
  }
  check(hook.save_reductions(name, numbers));
}

// A function that modules hold as callback. Copies of a model, and models read from a file, hold
// one that does nothing. Compilers of Python code do not look into it, and `isolate` keeps them
// from looking into the function that it calls. With `only_wanted`, steps that the hook wants
// nothing of do not get there.
class Callback final {
 public:
  Callback() = default;
  Callback(nb::object function, nb::object isolate, std::shared_ptr<Hook> hook, bool only_wanted)
      : function_(std::move(function)),
        isolate_(std::move(isolate)),
        hook_(std::move(hook)),
        only_wanted_(only_wanted && hook_) {}

  // Steps that want nothing end here, so this is kept short.
  nb::object called(const CallArguments& arguments) const {
    if (is_idle()) return nb::none();
    const HookCost cost(hook_.get());
    const Isolation isolation(isolate_);
    PyObject* result = PyObject_Call(function_.ptr(), arguments.positional, arguments.keywords);
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
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
  bool is_idle() const { return inert() || (only_wanted_ && !hook_->is_step_wanted()); }

  nb::object function_;
  nb::object isolate_;
  std::shared_ptr<Hook> hook_;
  bool only_wanted_ = false;
};

// The callback before each forward of a model: begins a step. Steps that save nothing stay in here,
// and so do those that save nothing of a model, see rest(); for the others, and while `fast` is
// off, it calls Python. Copies of it do nothing.
class StepCallback final {
 public:
  struct Parts {
    nb::object slow;     // slow(module, args): everything, with the lock held by itself
    nb::object begun;    // begun(): the step that has begun saves something
    nb::object failed;   // failed(message)
    nb::object isolate;  // see Callback
    nb::dict indices;    // of names, and
    nb::dict sites;      // of calls within a step: emptied when one begins
    ReplayCheck check;
  };

  StepCallback() = default;
  StepCallback(std::shared_ptr<Hook> hook, nb::handle module, nb::dict parts)
      : hook_(std::move(hook)),
        lock_(nb::cast<std::shared_ptr<HookLock>>(parts["lock"])),
        module_(module.ptr()) {
    parts_.emplace(Parts{parts["slow"], parts["begun"], parts["failed"], parts["isolate"],
                         parts["indices"], parts["sites"], ReplayCheck(parts)});
  }

  nb::object called(const CallArguments& arguments) {
    arguments.expect(2);
    if (parts_) begin(arguments[0], arguments[1]);
    return nb::none();
  }

  // Whether the forward that was begun last is one that a compiler of Python code watches.
  bool compiled() const { return compiled_; }
  bool fast() const { return fast_; }
  void set_fast(bool fast) { fast_ = fast; }

  // The next steps of which the same collections save something need not call begun().
  void rest(int steps) {
    resting_ = steps;
    if (steps > 0) read_selection_key(*hook_, resting_key_);
  }

  int traverse(visitproc visit, void* arg) const {
    if (!parts_) return 0;
    Py_VISIT(parts_->slow.ptr());
    Py_VISIT(parts_->begun.ptr());
    Py_VISIT(parts_->failed.ptr());
    Py_VISIT(parts_->indices.ptr());
    Py_VISIT(parts_->sites.ptr());
    return 0;
  }
  void clear() { parts_.reset(); }

 private:
  void begin(nb::handle module, nb::handle args) {
    std::unique_lock<HookLock> lock;
    if (fast_ && module.ptr() == module_) lock = std::unique_lock(*lock_, std::try_to_lock);
    if (!lock.owns_lock()) {
      isolated([&] { parts_->slow(module, args); });
      return;
    }
    if (parts_->check.is_replay()) return;
    if (const smd::Status begun = hook_->begin_step(); !begun.ok()) {
      isolated([&] { parts_->failed(to_text(begun.error().message)); });
      return;
    }
    if (!hook_->is_step_wanted()) return;
    if (is_resting()) {
      parts_->indices.clear();
      parts_->sites.clear();
    } else {
      isolated([&] { parts_->begun(); });
    }
  }

  bool is_resting() {
    if (resting_ == 0) return false;
    --resting_;
    read_selection_key(*hook_, key_);
    return key_ == resting_key_;
  }

  template <typename F>
  void isolated(F&& call) {
    const HookCost cost(hook_.get());
    const Isolation isolation(parts_->isolate);
    compiled_ = isolation.was_looking();
    call();
  }

  std::shared_ptr<Hook> hook_;
  std::shared_ptr<HookLock> lock_;  // of the Python hook; held while the core is used
  PyObject* module_ = nullptr;      // who owns this callback; only compared
  std::optional<Parts> parts_;
  bool fast_ = false;
  bool compiled_ = false;
  int resting_ = 0;  // steps
  SelectionKey resting_key_, key_;
};

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
  nb::class_<Tickets>(m, "Tickets", "Names of tensors that come in the same list again and again.")
      .def(nb::init<std::vector<std::string>>(), nb::arg("names"))
      .def("__len__", &Tickets::size)
      .def("__getitem__", &name_at)
      .def("__iter__",
           [](const Tickets& tickets) { return nb::iter(nb::cast(names_of(tickets))); });
  m.def("save_all", &save_again, nb::arg("hook"), nb::arg("names"), nb::arg("tensors"),
        nb::arg("exchange") = nb::none(),
        "The same for tensors that come again, whose names are not looked up each time.");
  m.def("wanted", &wanted, nb::arg("hook"), nb::arg("name"),
        "(values, shape, names of reductions): what is saved of a tensor at this step.");
  m.def("wish_for", &wish_for, nb::arg("hook"), nb::arg("name"),
        "What a tensor is needed for at this step: 'values', 'statistics', or '' for nothing.");
  m.def(
      "is_watched", [](const Hook& hook, std::string_view name) { return hook.is_watched(name); },
      nb::arg("hook"), nb::arg("name"), "Whether a NaN in it starts saving.");
  m.def("save_reductions", &save_reductions, nb::arg("hook"), nb::arg("name"), nb::arg("values"),
        nb::arg("dtype"), "Saves reductions that were computed elsewhere.");
  m.def(
      "look_at_late", [](Hook& hook) { hook.look_at_late(); }, nb::arg("hook"),
      "Looks for bad values in the statistics that have come from devices.");
  m.def(
      "save_shape",
      [](Hook& hook, std::string_view name, const std::vector<int64_t>& shape) {
        check(hook.save_shape(name, shape));
      },
      nb::arg("hook"), nb::arg("name"), nb::arg("shape"), "Saves the shape, if it is wanted.");
  nb::class_<HookLock>(m, "HookLock", "A lock that its owner may take again.")
      .def(nb::init<>())
      .def(
          "acquire",
          [](HookLock& lock, double timeout) {
            if (timeout < 0) return lock.lock();
            return lock.lock(std::chrono::duration<double>(timeout));
          },
          nb::arg("timeout") = -1.0, "Whether the lock is taken; a negative timeout is none.")
      .def("release", &HookLock::unlock)
      .def("__enter__", [](HookLock& lock) { lock.lock(); })
      .def("__exit__", [](HookLock& lock, const nb::args&) { lock.unlock(); });
  auto callback = nb::class_<Callback>(m, "Callback", nb::type_slots(kCallbackSlots<Callback>),
                                       nb::is_weak_referenceable())
                      .def(nb::init<>())
                      .def(nb::init<nb::object, nb::object, std::shared_ptr<Hook>, bool>(),
                           nb::arg("function"), nb::arg("isolate").none() = nb::none(),
                           nb::arg("hook").none() = nb::none(), nb::arg("only_wanted") = false)
                      .def_prop_ro("is_inert", &Callback::inert);
  bind_copying(callback);
  auto step =
      nb::class_<StepCallback>(m, "StepCallback", nb::type_slots(kCallbackSlots<StepCallback>),
                               nb::is_weak_referenceable())
          .def(nb::init<>())
          .def(nb::init<std::shared_ptr<Hook>, nb::handle, nb::dict>(), nb::arg("hook"),
               nb::arg("module"), nb::arg("parts"))
          .def_prop_ro("is_compiled", &StepCallback::compiled)
          .def_prop_rw("fast", &StepCallback::fast, &StepCallback::set_fast)
          .def("rest", &StepCallback::rest, nb::arg("steps"),
               "The next steps that save the same collections need not call Python.");
  bind_copying(step);
  m.def(
      "process_rank",
      []() -> std::optional<std::tuple<int, int>> {
        const auto rank = check(smd::Environment::of_process().process_rank());
        if (!rank) return std::nullopt;
        return std::tuple(rank->rank, rank->size);
      },
      "(rank, size) as a launcher wrote them into the environment.");
}

}  // namespace smdebug
