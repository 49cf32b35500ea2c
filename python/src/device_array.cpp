#include "python/src/device_array.h"

#include <string>

#include "python/src/errors.h"
#include "smd/gpu/driver.h"

namespace smdebug {
namespace {

// Both kinds of managed tensors, the older of which begins with the tensor.
struct VersionedTensor {
  uint32_t major, minor;
  void* context;
  void (*deleter)(void*);
  uint64_t flags;
  smdebug_dl_tensor tensor;
};

const smdebug_dl_tensor* tensor_in(nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor") != 0) {
    return static_cast<smdebug_dl_tensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
  }
  constexpr const char* kVersioned = "dltensor_versioned";
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned) == 0) return nullptr;
  const auto* out = static_cast<VersionedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kVersioned));
  return out->major == 1 ? &out->tensor : nullptr;
}

}  // namespace

DeviceArray::DeviceArray(nb::object capsule) : capsule_(std::move(capsule)) {
  const smdebug_dl_tensor* const tensor = tensor_in(capsule_);
  if (tensor == nullptr) raise("SMDebugTypeError", "A capsule of DLPack was expected.");
  exchanged_.tensor = *tensor;
  if (!exchanged_.on_device()) {
    raise("SMDebugTypeError", "The array is not in the memory of a CUDA device.");
  }
  const auto view = smd::view_anywhere(exchanged_.tensor, exchanged_.strides_bytes);
  if (!view.ok()) raise("SMDebugTypeError", view.error().message);
  view_ = *view;
  const auto driver = smd::gpu::Driver::get();
  if (!driver.ok()) raise("SMDebugTypeError", driver.error().message);
  device_ = exchanged_.tensor.device_id;
  if (view_.size() == 0) return;  // there is no memory to ask for
  const auto device = (*driver)->device_of(view_.data);
  if (!device.ok()) raise("SMDebugTypeError", device.error().message);
  device_ = *device;
}

}  // namespace smdebug
