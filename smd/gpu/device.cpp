#include "smd/gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace smd::gpu {
namespace {

constexpr int kMajorAttribute = 75;
constexpr int kMinorAttribute = 76;
constexpr int kLeastCapability = 70;
constexpr unsigned kPortableMapped = 3;
constexpr uint32_t kLeastSlot = 64;
constexpr size_t kSlabBytes = size_t{4} << 20;
constexpr size_t kSlotAlignment = 128;

}  // namespace

// ---- what a launch leaves behind

LateSurvey::LateSurvey(Device& device, Slot slot, WorkList work, Timeline* timeline,
                       uint64_t number)
    : device_(device),
      slot_(slot),
      ranges_(std::move(work.ranges)),
      bytes_(work.partials * sizeof(Partial)),
      timeline_(timeline),
      number_(number) {}

LateSurvey::~LateSurvey() {
  if (slot_.done == nullptr) return;
  device_.give_back(slot_, timeline_ != nullptr && timeline_->is_done(number_));
}

bool LateSurvey::is_ready() const {
  if (slot_.done == nullptr || (timeline_ != nullptr && timeline_->is_done(number_))) return true;
  constexpr DriverResult kNotReady = 600;
  const ContextScope scope(device_.driver_, device_.context_);
  return device_.driver_.query_event(slot_.done) != kNotReady;
}

Status LateSurvey::wait() const {
  if (slot_.done == nullptr || (timeline_ != nullptr && timeline_->is_done(number_))) return {};
  const ContextScope scope(device_.driver_, device_.context_);
  SMD_RETURN_IF_ERROR(scope.status());
  const auto wait_for = [&](Event event) {
    return device_.driver_.check(device_.driver_.wait_for_event(event), "wait for the device");
  };
  if (timeline_ == nullptr) return wait_for(slot_.done);
  const auto [event, number] = timeline_->newest();
  // Its slot may serve another stream meanwhile; then the device was done with it before.
  SMD_RETURN_IF_ERROR(wait_for(event));
  timeline_->set_done(number);
  return {};
}

std::span<const Partial> LateSurvey::partials(size_t tensor) const {
  const PartialRange range = ranges_[tensor];
  return {slot_.partials + range.first, range.count};
}

// ---- the device

Result<std::unique_ptr<Device>> Device::open(const DeviceOptions& options) {
  SMD_TRY(const Driver* const driver, Driver::get());
  std::unique_ptr<Device> out(new Device(*driver, options));
  SMD_RETURN_IF_ERROR(out->start(options));
  return out;
}

Status Device::start(const DeviceOptions& options) {
  int device = 0;
  int major = 0;
  int minor = 0;
  SMD_RETURN_IF_ERROR(
      driver_.check(driver_.device_get(&device, options.ordinal), "find the device"));
  SMD_RETURN_IF_ERROR(driver_.check(driver_.device_attribute(&major, kMajorAttribute, device),
                                    "ask what the device can do"));
  SMD_RETURN_IF_ERROR(driver_.check(driver_.device_attribute(&minor, kMinorAttribute, device),
                                    "ask what the device can do"));
  capability_ = 10 * major + minor;
  if (capability_ < kLeastCapability) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("The device has compute capability {}.{}; 7.0 is the least.", major, minor)};
  }
  SMD_RETURN_IF_ERROR(driver_.check(driver_.retain_context(&context_, device), "use the device"));
  SMD_RETURN_IF_ERROR(driver_.check(driver_.total_memory(&memory_bytes_, device),
                                    "ask what memory the device has"));
  copier_ = std::make_unique<Copier>(
      driver_, context_,
      CopierOptions{.ring_bytes = options.ring_bytes.value_or(usual_ring_bytes(memory_bytes_))});
  return {};
}

Status Device::prepare(DType dtype) {
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  const std::lock_guard lock(mutex_);
  SMD_TRY([[maybe_unused]] const Kernels kernels, kernels_for(dtype));
  return {};
}

bool Device::is_prepared(DType dtype) {
  const std::lock_guard lock(mutex_);
  return kernels_.contains(dtype);
}

bool Device::is_capturing(Stream stream) const {
  // Nearly always the thread that asks has this context already; the null stream is that of the
  // current one.
  Context current = nullptr;
  if (driver_.current_context(&current) == 0 && current == context_) {
    return !driver_.check_uncaptured(stream).ok();
  }
  const ContextScope scope(driver_, context_);
  return !driver_.check_uncaptured(stream).ok();
}

Result<Stream> Device::own_stream() {
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  const std::lock_guard lock(mutex_);
  if (own_stream_ == nullptr) {
    SMD_RETURN_IF_ERROR(
        driver_.check(driver_.create_stream(&own_stream_, kNonBlocking), "make a stream"));
  }
  return own_stream_;
}

Result<Device::Kernels> Device::kernels_for(DType dtype) {
  if (const auto known = kernels_.find(dtype); known != kernels_.end()) return known->second;
  SMD_TRY(const Bytes code, code_for(dtype));
  Module module = nullptr;
  Kernels out;
  const auto find = [&](const char* name, Function& function) {
    return driver_.check(driver_.find_function(&function, module, name), "find the kernels");
  };
  SMD_RETURN_IF_ERROR(
      driver_.check(driver_.load_module(&module, code.data()), "load the compiled kernels"));
  SMD_RETURN_IF_ERROR(find("smd_survey", out.dense));
  SMD_RETURN_IF_ERROR(find("smd_survey_abs", out.dense_absolute));
  SMD_RETURN_IF_ERROR(find("smd_survey_strided", out.strided));
  SMD_RETURN_IF_ERROR(find("smd_survey_few", out.few));
  SMD_RETURN_IF_ERROR(find("smd_survey_few_abs", out.few_absolute));
  kernels_.emplace(dtype, out);
  return out;
}

Result<Bytes> Device::code_for(DType dtype) {
  if (!compiler_) {
    SMD_TRY(Compiler found, Compiler::find());
    compiler_.emplace(std::move(found));
  }
  const std::string name = fmt::format("survey-{}-sm_{}", element_name(dtype), capability_);
  const std::string key =
      fmt::format("{}\nNVRTC {}\n{}", name, compiler_->version(), kernel_source());
  if (auto code = cache_.find(name, key)) return std::move(*code);
  SMD_TRY(Bytes code, compiler_->compile(dtype, capability_));
  cache_.store(name, key, code);
  return code;
}

Result<Slot> Device::take_slot(uint32_t partials) {
  const uint32_t wanted = std::bit_ceil(std::max(partials, kLeastSlot));
  // The one that was given back first is the one that the device is most likely done with.
  auto& leaving = leaving_[wanted];
  auto& known = free_[wanted];
  if (known.empty() && !leaving.empty() && driver_.query_event(leaving.front().done) == 0) {
    known.push_back(leaving.front());
    leaving.pop_front();
  }
  if (!known.empty()) {
    const Slot slot = known.back();
    known.pop_back();
    return slot;
  }
  const size_t bytes =
      (wanted * sizeof(Partial) + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment;
  if (bytes > slab_left_) {
    void* memory = nullptr;
    const size_t size = std::max(bytes, kSlabBytes);
    SMD_RETURN_IF_ERROR(driver_.check(driver_.allocate_host(&memory, size, kPortableMapped),
                                      "lock memory for results"));
    slab_ = static_cast<std::byte*>(memory);
    slab_left_ = size;
  }
  Slot slot{.partials = reinterpret_cast<Partial*>(slab_), .capacity = wanted};
  SMD_RETURN_IF_ERROR(driver_.check(driver_.device_address(&slot.address, slab_, 0),
                                    "show the device memory of the host"));
  SMD_RETURN_IF_ERROR(
      driver_.check(driver_.create_event(&slot.done, kBlockingUntimed), "make an event"));
  slab_ += bytes;
  slab_left_ -= bytes;
  return slot;
}

void Device::give_back(const Slot& slot, bool idle) {
  const std::lock_guard lock(mutex_);
  (idle ? free_ : leaving_)[slot.capacity].push_back(slot);
}

Timeline* Device::timeline_of(Stream stream) {
  unsigned long long id = 0;
  if (driver_.stream_id == nullptr || driver_.stream_id(stream, &id) != 0) return nullptr;
  return &timelines_[id];
}

Status Device::launch(Launch& launch, const Slot& slot, Stream stream) {
  SMD_TRY(const Kernels kernels, kernels_for(launch.dtype));
  const Address out = slot.address + launch.first_partial * sizeof(Partial);
  Function function = kernels.strided;
  void* arguments[1];
  if (auto* list = std::get_if<ItemList>(&launch.arguments)) {
    const bool few = list->count <= kFewItems;
    const Function plain = few ? kernels.few : kernels.dense;
    const Function absolute = few ? kernels.few_absolute : kernels.dense_absolute;
    function = launch.absolute_deviations ? absolute : plain;
    list->out = out;
    arguments[0] = list;
  } else {
    auto& item = std::get<StridedItem>(launch.arguments);
    item.out = out;
    arguments[0] = &item;
  }
  return driver_.check(driver_.launch(function, launch.blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                      static_cast<void**>(arguments), nullptr),
                       "launch a kernel");
}

Result<std::shared_ptr<LateSurvey>> Device::survey(std::span<const TensorView> tensors,
                                                   const SurveyOptions& options) {
  SMD_TRY(WorkList work, WorkList::of(tensors, options.absolute_deviations));
  if (work.partials == 0) {
    return std::make_shared<LateSurvey>(*this, Slot{}, std::move(work), nullptr, 0);
  }
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  SMD_RETURN_IF_ERROR(driver_.check_uncaptured(options.stream));
  const std::lock_guard lock(mutex_);
  SMD_TRY(const Slot slot, take_slot(work.partials));
  Status launched;
  for (Launch& next : work.launches) {
    launched = launch(next, slot, options.stream);
    if (!launched.ok()) break;
  }
  // Also after a failure: what was launched before it may still write to the slot.
  if (Status recorded =
          driver_.check(driver_.record_event(slot.done, options.stream), "record an event");
      launched.ok()) {
    launched = std::move(recorded);
  }
  if (!launched.ok()) {
    leaving_[slot.capacity].push_back(slot);
    return launched.error();
  }
  Timeline* const timeline = timeline_of(options.stream);
  const uint64_t number = timeline != nullptr ? timeline->add(slot.done) : 0;
  return std::make_shared<LateSurvey>(*this, slot, std::move(work), timeline, number);
}

Result<std::shared_ptr<LateSurvey>> Device::survey_beside(std::span<const TensorView> tensors,
                                                          const SurveyOptions& options) {
  SMD_TRY(const Stream own, own_stream());
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  SMD_RETURN_IF_ERROR(driver_.check_uncaptured(options.stream));
  {
    const std::lock_guard lock(mutex_);
    const auto check = [&](DriverResult result) {
      return driver_.check(result, "wait for a stream");
    };
    if (fork_ == nullptr) {
      SMD_RETURN_IF_ERROR(check(driver_.create_event(&fork_, kBlockingUntimed)));
    }
    SMD_RETURN_IF_ERROR(check(driver_.record_event(fork_, options.stream)));
    SMD_RETURN_IF_ERROR(check(driver_.make_stream_wait(own, fork_, 0)));
  }
  return survey(tensors, {.stream = own, .absolute_deviations = options.absolute_deviations});
}

Status Device::wait_for(const LateSurvey& survey, Stream stream) {
  if (survey.slot_.done == nullptr) return {};
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  return driver_.check(driver_.make_stream_wait(stream, survey.slot_.done, 0), "wait for a stream");
}

}  // namespace smd::gpu
