#include "python/src/exchange_api.h"

#include <nanobind/stl/string.h>

#include <cstdint>

namespace smdebug {
namespace {

// As dlpack.h 1.3 lays it out.
struct Table {
  uint32_t major;
  uint32_t minor;
  const Table* older;
  void* allocate;
  void* to_managed;
  void* from_managed;
  int (*look)(void* tensor, smdebug_dl_tensor* out);
  void* current_stream;
};

constexpr uint32_t kMajor = 1;

smd::Error taken_error() {
  nb::python_error error;
  return {smd::ErrorCode::unsupported, nb::cast<std::string>(nb::str(error.value()))};
}

// What a method without arguments answers, found without a bound method.
smd::Result<bool> ask(nb::handle tensor, PyObject* method) {
  PyObject* const self = tensor.ptr();
  const nb::object answer = nb::steal(PyObject_VectorcallMethod(method, &self, 1, nullptr));
  if (!answer.is_valid()) return taken_error();
  return answer.is(Py_True);
}

// Bits that say "read this negated" or "conjugated". Types of tensors may refuse to tell.
smd::Result<bool> is_lazy(nb::handle tensor, bool complex) {
  static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
  static PyObject* const is_conj = PyUnicode_InternFromString("is_conj");
  SMD_TRY(const bool negated, ask(tensor, is_neg));
  if (negated || !complex) return negated;
  return ask(tensor, is_conj);
}

// A tensor whose storage was released, or that only stands for another one, points to its offset in
// a storage at address zero. Addresses of real memory are much larger than offsets.
smd::Result<bool> is_released(nb::handle tensor, const smd::TensorView& view) {
  constexpr uintptr_t kSmall = uintptr_t{1} << 40;
  const auto address = reinterpret_cast<uintptr_t>(view.data);
  if (address >= kSmall || view.size() == 0) return false;
  try {
    const auto offset = nb::cast<uint64_t>(tensor.attr("storage_offset")());
    return address == offset * smd::size_of(view.dtype);
  } catch (nb::python_error& error) {
    return smd::Error{smd::ErrorCode::unsupported, nb::cast<std::string>(nb::str(error.value()))};
  }
}

}  // namespace

smd::Result<ExchangeApi> ExchangeApi::from(nb::handle capsule) {
  const auto* table =
      static_cast<const Table*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (table == nullptr) return taken_error();
  while (table->major > kMajor && table->older != nullptr) table = table->older;
  if (table->major != kMajor || table->look == nullptr) {
    return smd::Error{smd::ErrorCode::unsupported,
                      "The exchange API has no function of version 1 that looks at a tensor."};
  }
  return ExchangeApi(table->look);
}

smd::Result<smd::TensorView> ExchangeApi::view(nb::handle tensor, ExchangedTensor& out) const {
  if (look_(tensor.ptr(), &out.tensor) != 0) return taken_error();
  SMD_TRY(const smd::TensorView view, smd::view_of_dlpack(out.tensor, out.strides_bytes));
  return checked(tensor, view);
}

smd::Result<smd::TensorView> ExchangeApi::view_anywhere(nb::handle tensor,
                                                        ExchangedTensor& out) const {
  if (look_(tensor.ptr(), &out.tensor) != 0) return taken_error();
  if (!out.on_device()) {
    SMD_TRY(const smd::TensorView view, smd::view_of_dlpack(out.tensor, out.strides_bytes));
    return checked(tensor, view);
  }
  SMD_TRY(const smd::TensorView view, smd::view_anywhere(out.tensor, out.strides_bytes));
  return checked(tensor, view);
}

smd::Result<smd::TensorView> ExchangeApi::checked(nb::handle tensor, smd::TensorView view) const {
  SMD_TRY(const bool released, is_released(tensor, view));
  if (released) {
    return smd::Error{smd::ErrorCode::unsupported, "There is no memory behind the tensor."};
  }
  SMD_TRY(const bool lazy,
          is_lazy(tensor, smd::info_of(view.dtype).kind == smd::DTypeKind::complex));
  if (lazy) {
    return smd::Error{smd::ErrorCode::unsupported, "The tensor is a negated or conjugated view."};
  }
  return view;
}

}  // namespace smdebug
