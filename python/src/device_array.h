#pragma once

// An array of a CUDA device that another framework lends by DLPack, for as long as this lives. The
// GIL is held.

#include <nanobind/nanobind.h>

#include "python/src/exchange_api.h"
#include "smd/tensor/tensor_view.h"

namespace smdebug {

class DeviceArray final {
 public:
  // `capsule`: what __dlpack__() gave. SMDebugTypeError: it is not on a CUDA device, there is no
  // driver for it, or it has elements that we do not know.
  explicit DeviceArray(nb::object capsule);
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  const smd::TensorView& view() const { return view_; }
  // As CUDA counts; frameworks may count in another way.
  int device() const { return device_; }

 private:
  nb::object capsule_;
  ExchangedTensor exchanged_;  // what the view refers to
  smd::TensorView view_;
  int device_ = -1;
};

}  // namespace smdebug
