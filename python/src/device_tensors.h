#pragma once

// Tensors of CUDA devices on their way to a hook: statistics by the kernels of smd/gpu, elements by
// its copier, both queued on the stream that made them. Nothing here waits for a device. Of Python
// only builtins of tensors are called, and functions that were given, where something is unusual.
// The GIL is held.

#include <nanobind/nanobind.h>

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "python/src/exchange_api.h"
#include "python/src/seen_tensors.h"
#include "smd/gpu/device.h"
#include "smd/hook/hook.h"

namespace smdebug {

// The device with this ordinal, opened at the first call. They are never given up, as what runs on
// them may outlive us. Error: the reason why its kernels cannot be used.
smd::Result<smd::gpu::Device*> cuda_device(int ordinal);

// What kernels have to know of a tensor. Borrows shape and memory of the tensor.
struct DeviceView {
  ExchangedTensor exchanged;
  smd::Shape shape, strides_bytes;  // where there is no exchange API
  smd::TensorView view;
  int device = -1;
};

class DeviceTensors final {
 public:
  // `parts`: stream_of(ordinal) gives the current stream as an integer; usable is a dict of devices
  // whose kernels may be used; gave_up(ordinal, reason) is called when that ends; queue() has
  // release() called when backward ends, and fails outside of it; full() has it called at once;
  // held_bytes is how much may be held.
  DeviceTensors(std::shared_ptr<smd::Hook> hook, nb::handle exchange, const nb::dict& parts);

  enum class Wish { nothing, statistics, copy, other };
  // What is wanted of a tensor, as far as it can be done here and now; other: it cannot.
  Wish wish(std::string_view name, const smd::TensorView& view, int device);

  struct Offered {
    std::string_view name;
    nb::handle tensor;
    const smd::TensorView* view;
    int device;
  };
  // Queues the statistics of tensors, where wish() is that. False: the device has failed, nothing
  // was saved of them.
  bool survey(std::span<const Offered> tensors);
  // Queues what is wanted of a tensor, its elements too, where wish() is that; false: as above, or
  // it is not without gaps.
  bool copy(const Offered& tensor);
  // Keeps a gradient, of which statistics are wanted, until release(); false: it cannot.
  bool hold(const Offered& gradient);

  // For callers in Python: those that must be treated in another way.
  std::vector<size_t> survey_list(const nb::list& names, const nb::list& tensors);
  std::vector<size_t> copy_list(const nb::list& names, const nb::list& tensors, smd::Kind kind);
  bool hold_one(const std::string& name, nb::handle gradient);
  // (name, gradient) of those that must be treated in another way, and names of those that were
  // changed meanwhile.
  std::pair<nb::list, nb::list> release();
  bool has_held() const { return !held_.empty(); }
  // The step has ended: its tensors are not met again.
  void forget() { seen_.clear(); }
  // Launches so far.
  int64_t launches() const { return launches_; }

  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  struct Held {
    std::string name;
    nb::object alias;  // shares the memory of the gradient
    int64_t version = 0;
    uintptr_t stream = 0;
    int device = 0;
    smd::DType dtype = smd::DType::float32;
    const void* data = nullptr;
    smd::Shape shape, strides_bytes;

    smd::TensorView view() const {
      return {.data = data, .dtype = dtype, .shape = shape, .strides_bytes = strides_bytes};
    }
  };
  // Where the statistics of a tensor of this step will be.
  struct Surveyed {
    std::shared_ptr<smd::gpu::LateSurvey> survey;
    size_t index = 0;
    bool absolute_deviations = false;
  };

  bool look(nb::handle tensor, DeviceView& out) const;
  uintptr_t stream_of(int device) const;
  bool is_usable(int device) const;
  void give_up(int device, const smd::Error& error);
  // All of one device.
  bool survey_on(int device, uintptr_t stream, std::span<const Offered> tensors, bool remember);
  void save(const Offered& tensor, const smd::Action& action,
            std::shared_ptr<smd::gpu::LateSurvey> survey, size_t index);
  // Of a tensor without gaps; nullptr: the device has failed.
  std::shared_ptr<smd::gpu::LateCopy> start_copy(const Offered& tensor);

  // Longer lists are those of all parameters, which no module gives.
  static constexpr size_t kFew = 8;

  std::shared_ptr<smd::Hook> hook_;
  std::optional<ExchangeApi> api_;
  nb::object stream_of_;
  nb::dict usable_;
  nb::object gave_up_;
  nb::object queue_;
  nb::object full_;
  size_t most_held_ = 0;

  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  bool may_hold_ = true;
  SeenTensors<Surveyed> seen_;
  int64_t launches_ = 0;
};

}  // namespace smdebug
