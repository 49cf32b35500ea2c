// What a thread of Python brings from a device when its step may be over.

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
#include <string>
#include <tuple>
#include <vector>

#include "python/src/bindings.h"
#include "python/src/deliveries.h"
#include "python/src/errors.h"
#include "smd/hook/hook.h"

namespace smdebug {
namespace {

using smd::Hook;

smd::DType dtype_named(const std::string& name) {
  const auto dtype = smd::dtype_from_name(name);
  if (!dtype) raise("SMDebugValueError", fmt::format("There is no element type '{}'.", name));
  return *dtype;
}

std::shared_ptr<DeliveredTensor> expect_tensor(Hook& hook, std::string name, smd::Kind kind,
                                               const std::string& dtype, smd::Shape shape) {
  auto tensor = std::make_shared<DeliveredTensor>(dtype_named(dtype), std::move(shape));
  smd::Ticket ticket(std::move(name), kind);
  const smd::Action action = hook.wanted(ticket);
  if (action.shape) check(hook.save_shape(ticket.name(), tensor->shape()));
  const smd::OwnedTensor owned{.owner = tensor,
                               .data = tensor->bytes().data(),
                               .dtype = tensor->dtype(),
                               .shape = tensor->shape()};
  smd::Status status;
  {
    const nb::gil_scoped_release released;  // a full queue is waited for
    status = hook.save_late_values(ticket, owned, tensor);
  }
  check(std::move(status));
  const Hook::LateListed listed{.ticket = &ticket, .index = 0};
  check(hook.save_late({&listed, 1}, tensor));
  return tensor;
}

using Expected = std::vector<std::tuple<std::string, std::string, std::vector<std::string>>>;

std::shared_ptr<DeliveredNumbers> expect_numbers(Hook& hook, const Expected& expected) {
  std::vector<DeliveredNumbers::Tensor> tensors;
  std::deque<smd::Ticket> tickets;
  std::vector<Hook::LateListed> listed;
  for (const auto& [name, dtype, reductions] : expected) {
    const bool wide = dtype_named(dtype) == smd::DType::float64;
    auto& tensor = tensors.emplace_back(wide ? smd::DType::float64 : smd::DType::float32,
                                        std::vector<smd::Reduction>());
    for (const std::string& label : reductions) {
      tensor.reductions.push_back(check(smd::parse_reduction(label)));
    }
    listed.push_back({&tickets.emplace_back(name), listed.size()});
  }
  auto numbers = std::make_shared<DeliveredNumbers>(std::move(tensors));
  check(hook.save_late(listed, numbers));
  return numbers;
}

}  // namespace

void bind_delivery(nb::module_& m) {
  nb::class_<DeliveredTensor>(m, "DeliveredTensor", "Values that somebody brings later.")
      .def(
          "deliver",
          [](DeliveredTensor& tensor, uintptr_t address) {
            const nb::gil_scoped_release released;
            tensor.deliver({reinterpret_cast<const std::byte*>(address), tensor.bytes().size()});
          },
          nb::arg("address"), "Copies the values, which lie there without gaps.")
      .def("fail", &DeliveredTensor::fail, nb::arg("message"));
  nb::class_<DeliveredNumbers>(m, "DeliveredNumbers", "Numbers that somebody brings later.")
      .def("deliver", &DeliveredNumbers::deliver, nb::arg("numbers"),
           "Those of the first tensor, then those of the next.")
      .def("fail", &DeliveredNumbers::fail, nb::arg("message"));
  m.def("expect_tensor", &expect_tensor, nb::arg("hook"), nb::arg("name"), nb::arg("kind"),
        nb::arg("dtype"), nb::arg("shape"),
        "Saves a tensor whose values somebody brings later: the writer waits for them.");
  m.def("expect_numbers", &expect_numbers, nb::arg("hook"), nb::arg("tensors"),
        "Saves reductions of tensors, (name, element type, names), that somebody brings later.");
}

}  // namespace smdebug
