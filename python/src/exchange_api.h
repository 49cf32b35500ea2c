#pragma once

// Looks at tensors through DLPack's C exchange API: a table of functions that a tensor's type
// carries as `__dlpack_c_exchange_api__`. A look costs no reference count and no Python object.
// The GIL is held.

#include <nanobind/nanobind.h>

#include <string>

#include "smd/base/result.h"
#include "smd/native/dlpack.h"

namespace smdebug {

namespace nb = nanobind;

// What one look gives. Borrows shape and memory of the tensor, which must stay alive and unchanged.
struct ExchangedTensor {
  smdebug_dl_tensor tensor{};
  smd::AxisStrides strides_bytes{};

  bool on_device() const { return tensor.device_type == smd::kDlpackCuda; }
};

class ExchangeApi final {
 public:
  // From the capsule `dlpack_exchange_api`. unsupported: no version 1, or one without this
  // function.
  static smd::Result<ExchangeApi> from(nb::handle capsule);

  // The view of a tensor; `out` must live as long. Errors are those of the tensor's own library or
  // of view_of_dlpack(). A conjugated or negated view is refused: DLPack cannot tell it.
  smd::Result<smd::TensorView> view(nb::handle tensor, ExchangedTensor& out) const;
  // The same, also of a tensor on a CUDA device, which on_device() tells.
  smd::Result<smd::TensorView> view_anywhere(nb::handle tensor, ExchangedTensor& out) const;

 private:
  smd::Result<smd::TensorView> checked(nb::handle tensor, smd::TensorView view) const;

  using Look = int (*)(void* tensor, smdebug_dl_tensor* out);
  explicit ExchangeApi(Look look) : look_(look) {}

  Look look_;
};

}  // namespace smdebug
