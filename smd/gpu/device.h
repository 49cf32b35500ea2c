#pragma once

// A device on which the kernels of survey_kernel.h run: its compiled kernels, and the memory into
// which they write. Never destroyed: what it started may still run when the program ends.
// Thread-safe.
//
// Results go straight to page-locked memory of the host. Nothing here waits for the device, except
// LateSurvey::wait().

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/gpu/compiler.h"
#include "smd/gpu/copier.h"
#include "smd/gpu/driver.h"
#include "smd/gpu/kernel_cache.h"
#include "smd/gpu/survey_kernel.h"
#include "smd/gpu/timeline.h"
#include "smd/gpu/work_list.h"
#include "smd/tensor/tensor_view.h"

namespace smd::gpu {

class Device;

// Page-locked memory for partials, and the event after which it holds them.
struct Slot {
  Partial* partials = nullptr;
  Address address = 0;  // of the partials, for the device
  uint32_t capacity = 0;
  Event done = nullptr;
};

// The partials of a list of tensors that a device is working on. Thread-safe.
class LateSurvey final {
 public:
  LateSurvey(Device& device, Slot slot, WorkList work, Timeline* timeline, uint64_t number);
  ~LateSurvey();
  LateSurvey(const LateSurvey&) = delete;
  LateSurvey& operator=(const LateSurvey&) = delete;

  // Whether wait() returns at once.
  bool is_ready() const;
  // Error: the device has failed.
  Status wait() const;
  // Of one tensor of the list, after wait().
  std::span<const Partial> partials(size_t tensor) const;
  size_t size_bytes() const { return ranges_.size() * sizeof(PartialRange) + bytes_; }

 private:
  friend class Device;

  Device& device_;
  const Slot slot_;
  const std::vector<PartialRange> ranges_;
  const size_t bytes_;
  Timeline* const timeline_;  // or nullptr
  const uint64_t number_;
};

struct DeviceOptions {
  int ordinal = 0;
  std::string cache_folder = {};          // see KernelCache
  std::optional<size_t> ring_bytes = {};  // see Copier; a share of the memory of the device
};

class Device final {
 public:
  // unsupported, not_found: one sentence that says why its kernels cannot be used.
  static Result<std::unique_ptr<Device>> open(const DeviceOptions& options);

  // Compiles what these element types need, unless it is there. survey() would do it otherwise.
  Status prepare(DType dtype);

  bool is_prepared(DType dtype);
  // Whether a graph of what this stream does is being captured: nothing may be queued.
  bool is_capturing(Stream stream) const;

  struct SurveyOptions {
    Stream stream = nullptr;  // what made the tensors, or waits for that
    bool absolute_deviations = false;
  };
  // Queues the reading of tensors in the device's memory. They must stay as they are until the
  // stream has come to it. unsupported: a tensor that no kernel reads, a stream of which a graph is
  // being captured, or a failure of the device.
  Result<std::shared_ptr<LateSurvey>> survey(std::span<const TensorView> tensors,
                                             const SurveyOptions& options);
  // The same beside what the stream does next: the tensors must stay as they are until the stream
  // has passed wait_for().
  Result<std::shared_ptr<LateSurvey>> survey_beside(std::span<const TensorView> tensors,
                                                    const SurveyOptions& options);
  // Has a stream wait until the tensors are read.
  Status wait_for(const LateSurvey& survey, Stream stream);
  size_t memory_bytes() const { return memory_bytes_; }
  // What copies whole tensors.
  Copier& copier() { return *copier_; }
  // A stream that waits for no other, made at the first call: for those who make it wait for
  // theirs.
  Result<Stream> own_stream();

 private:
  friend class LateSurvey;

  struct Kernels {
    Function dense = nullptr, dense_absolute = nullptr, strided = nullptr;
    Function few = nullptr, few_absolute = nullptr;
  };

  Device(const Driver& driver, const DeviceOptions& options)
      : driver_(driver), cache_(options.cache_folder) {}
  Status start(const DeviceOptions& options);
  // Both with the mutex held and the context current.
  Result<Kernels> kernels_for(DType dtype);
  Result<Bytes> code_for(DType dtype);
  Result<Slot> take_slot(uint32_t partials);
  Status launch(Launch& launch, const Slot& slot, Stream stream);
  void give_back(const Slot& slot, bool idle);
  // nullptr: streams cannot be told apart for certain, so each event is asked for itself.
  Timeline* timeline_of(Stream stream);

  const Driver& driver_;
  const KernelCache cache_;
  Context context_ = nullptr;
  int capability_ = 0;
  size_t memory_bytes_ = 0;
  std::unique_ptr<Copier> copier_;

  std::mutex mutex_;  // guards everything below
  std::optional<Compiler> compiler_;
  std::map<DType, Kernels> kernels_;
  // By capacity: those that the device is done with, and those that it may still write to.
  std::map<uint32_t, std::deque<Slot>> free_, leaving_;
  std::map<unsigned long long, Timeline> timelines_;  // by the id of the stream
  Stream own_stream_ = nullptr;
  Event fork_ = nullptr;  // where the own stream leaves another
  std::byte* slab_ = nullptr;
  size_t slab_left_ = 0;
};

}  // namespace smd::gpu
