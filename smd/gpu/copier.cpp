#include "smd/gpu/copier.h"

#include <algorithm>
#include <utility>

namespace smd::gpu {
namespace {

constexpr unsigned kPortable = 1;
constexpr size_t kAlignment = 512;

size_t aligned(size_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

// One after the other, each at a round place.
std::vector<LateCopy::Place> places_of(std::span<const CopySource> sources) {
  std::vector<LateCopy::Place> out;
  size_t offset = 0;
  for (const CopySource& source : sources) {
    out.push_back({.offset = offset, .size = source.size});
    offset += aligned(source.size);
  }
  return out;
}

size_t end_of(std::span<const LateCopy::Place> places) {
  return places.empty() ? 0 : places.back().offset + places.back().size;
}

}  // namespace

size_t usual_ring_bytes(size_t memory_bytes) {
  // A gigabyte or less, and no more than a device can well do without.
  constexpr size_t kShare = 128;
  return std::clamp(memory_bytes / kShare, size_t{256} << 20, size_t{1} << 30);
}

LateCopy::~LateCopy() { copier_.give_back(block_, is_done_); }

bool LateCopy::is_ready() const {
  constexpr DriverResult kNotReady = 600;
  if (is_done_) return true;
  const ContextScope scope(copier_.driver_, copier_.context_);
  return copier_.driver_.query_event(block_.done) != kNotReady;
}

Status LateCopy::wait() const {
  if (is_done_) return {};
  const ContextScope scope(copier_.driver_, copier_.context_);
  SMD_RETURN_IF_ERROR(scope.status());
  SMD_RETURN_IF_ERROR(
      copier_.driver_.check(copier_.driver_.wait_for_event(block_.done), "wait for the device"));
  is_done_ = true;
  return {};
}

Copier::Copier(const Driver& driver, Context context, const CopierOptions& options)
    : driver_(driver),
      context_(context),
      options_(options),
      memory_([&driver](size_t size) -> Result<std::byte*> {
        void* out = nullptr;
        SMD_RETURN_IF_ERROR(
            driver.check(driver.allocate_host(&out, size, kPortable), "lock memory"));
        return static_cast<std::byte*>(out);
      }) {}

Result<Event> Copier::take_event() {
  if (!events_.empty()) {
    Event const event = events_.back();
    events_.pop_back();
    return event;
  }
  Event event = nullptr;
  SMD_RETURN_IF_ERROR(
      driver_.check(driver_.create_event(&event, kBlockingUntimed), "make an event"));
  return event;
}

Result<HostBlock> Copier::take_block(size_t size) {
  for (const HostBlock& block : std::exchange(leaving_, {})) {
    if (driver_.query_event(block.done) == 0) {
      reuse(block);
    } else {
      leaving_.push_back(block);
    }
  }
  SMD_TRY(Event const done, take_event());
  auto memory = memory_.take(size);
  if (memory.ok()) return HostBlock{*memory, done};
  events_.push_back(done);
  return memory.error();
}

void Copier::give_back(const HostBlock& block, bool is_done) {
  const std::lock_guard lock(mutex_);
  if (is_done) {
    reuse(block);
  } else {
    leaving_.push_back(block);
  }
}

void Copier::reuse(const HostBlock& block) {
  memory_.give_back(block.memory);
  events_.push_back(block.done);
}

Status Copier::start_ring() {
  if (std::exchange(ring_started_, true)) return {};
  SMD_RETURN_IF_ERROR(driver_.check(driver_.create_stream(&side_, kNonBlocking), "make a stream"));
  if (options_.ring_bytes == 0) return {};
  // A full device has no room for a ring.
  if (driver_.allocate(&ring_, options_.ring_bytes) != 0) ring_ = 0;
  return {};
}

size_t Copier::take_part(size_t size) {
  while (!parts_.empty() && driver_.query_event(parts_.front().done) == 0) {
    events_.push_back(parts_.front().done);
    parts_.pop_front();
  }
  const size_t none = options_.ring_bytes;
  if (ring_ == 0 || size > none) return none;
  if (parts_.empty()) return 0;
  const size_t begin = parts_.front().begin;
  const size_t end = parts_.back().end;
  if (begin < end) {
    if (end + size <= none) return end;
    return size <= begin ? 0 : none;
  }
  return end + size <= begin ? end : none;
}

Status Copier::copy_by_ring(size_t begin, std::span<const CopySource> sources,
                            std::span<const LateCopy::Place> places, Stream stream,
                            const HostBlock& to) {
  const size_t size = end_of(places);
  Part part{.begin = begin, .end = begin + aligned(size)};
  SMD_TRY(part.done, take_event());
  const Address ring = ring_ + begin;
  const auto check = [&](DriverResult result) { return driver_.check(result, "copy a tensor"); };
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& [from, bytes] = sources[i];
    SMD_RETURN_IF_ERROR(
        check(driver_.copy_on_device(ring + places[i].offset, from, bytes, stream)));
  }
  // Both are recorded anew below, when the side stream waits for this record already.
  SMD_RETURN_IF_ERROR(check(driver_.record_event(part.done, stream)));
  SMD_RETURN_IF_ERROR(check(driver_.make_stream_wait(side_, part.done, 0)));
  SMD_RETURN_IF_ERROR(check(driver_.copy_to_host(to.memory, ring, size, side_)));
  SMD_RETURN_IF_ERROR(check(driver_.record_event(part.done, side_)));
  parts_.push_back(part);
  return check(driver_.record_event(to.done, side_));
}

Status Copier::copy_straight(std::span<const CopySource> sources,
                             std::span<const LateCopy::Place> places, Stream stream,
                             const HostBlock& to) {
  const auto check = [&](DriverResult result) { return driver_.check(result, "copy a tensor"); };
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& [from, bytes] = sources[i];
    SMD_RETURN_IF_ERROR(
        check(driver_.copy_to_host(to.memory + places[i].offset, from, bytes, stream)));
  }
  return check(driver_.record_event(to.done, stream));
}

Result<std::shared_ptr<LateCopy>> Copier::copy(std::span<const CopySource> sources, Stream stream) {
  const ContextScope scope(driver_, context_);
  SMD_RETURN_IF_ERROR(scope.status());
  SMD_RETURN_IF_ERROR(driver_.check_uncaptured(stream));
  std::vector<LateCopy::Place> places = places_of(sources);
  const std::lock_guard lock(mutex_);
  SMD_RETURN_IF_ERROR(start_ring());
  SMD_TRY(const HostBlock block, take_block(end_of(places)));
  const size_t begin = take_part(aligned(end_of(places)));
  const Status copied = begin < options_.ring_bytes
                            ? copy_by_ring(begin, sources, places, stream, block)
                            : copy_straight(sources, places, stream, block);
  if (!copied.ok()) {
    // What was queued before it may still be done: block and ring are not used again.
    ring_ = 0;
    return copied.error();
  }
  return std::make_shared<LateCopy>(*this, block, std::move(places));
}

}  // namespace smd::gpu
