#pragma once

// An array of a CUDA device that another framework lends by DLPack, for as long as this lives. The
// GIL is held.

#include <nanobind/nanobind.h>

#include "python/src/exchange_api.h"
#include "smd/tensor/tensor_view.h"

namespace smdebug {

class DeviceArray final {
 public:
  // `capsule`: what __dlpack__() gave. SMDebugTypeError: it is not on a CUDA device, or has
  // elements that we do not know.
  explicit DeviceArray(nb::object capsule);
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  const smd::TensorView& view() const { return view_; }
  int device() const { return exchanged_.tensor.device_id; }

 private:
  nb::object capsule_;
  ExchangedTensor exchanged_;  // what the view refers to
  smd::TensorView view_;
};

}  // namespace smdebug
