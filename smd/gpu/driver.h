#pragma once

// The functions of the CUDA driver that we call, found in libcuda.so.1 when the program runs; the
// declarations are those of the driver's public interface. Immutable, thread-safe.

#include <cstddef>
#include <cstdint>

#include "smd/base/result.h"

namespace smd::gpu {

using DriverResult = int;
using Context = void*;
using Module = void*;
using Function = void*;
using Stream = void*;
using Event = void*;
using Address = unsigned long long;

inline constexpr unsigned kNonBlocking = 1;      // a stream that does not wait for the default one
inline constexpr unsigned kBlockingUntimed = 3;  // an event: who waits for it sleeps

struct Driver {
  DriverResult (*device_get)(int* device, int ordinal);
  DriverResult (*device_attribute)(int* value, int attribute, int device);
  DriverResult (*total_memory)(size_t* bytes, int device);
  DriverResult (*retain_context)(Context* context, int device);
  DriverResult (*push_context)(Context context);
  DriverResult (*pop_context)(Context* context);
  DriverResult (*current_context)(Context* context);
  DriverResult (*load_module)(Module* module, const void* image);
  DriverResult (*find_function)(Function* function, Module module, const char* name);
  DriverResult (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                         unsigned block_x, unsigned block_y, unsigned block_z,
                         unsigned shared_bytes, Stream stream, void** arguments, void** extra);
  DriverResult (*allocate_host)(void** memory, size_t bytes, unsigned flags);
  DriverResult (*device_address)(Address* address, void* memory, unsigned flags);
  DriverResult (*allocate)(Address* memory, size_t bytes);
  DriverResult (*copy_on_device)(Address to, Address from, size_t bytes, Stream stream);
  DriverResult (*copy_to_host)(void* to, Address from, size_t bytes, Stream stream);
  DriverResult (*pointer_attribute)(void* value, int attribute, Address pointer);
  DriverResult (*create_stream)(Stream* stream, unsigned flags);
  DriverResult (*make_stream_wait)(Stream stream, Event event, unsigned flags);
  DriverResult (*create_event)(Event* event, unsigned flags);
  DriverResult (*record_event)(Event event, Stream stream);
  DriverResult (*query_event)(Event event);
  DriverResult (*wait_for_event)(Event event);
  DriverResult (*is_capturing)(Stream stream, int* status);
  DriverResult (*stream_id)(Stream stream, unsigned long long* id);  // or nullptr: an old driver
  DriverResult (*exchange_capture_mode)(int* mode);
  DriverResult (*error_name)(DriverResult error, const char** name);

  // The driver of this machine, loaded at the first call. not_found: there is none, with the
  // reason.
  static Result<const Driver*> get();

  // The ordinal of the device whose memory this is. unsupported: of none.
  Result<int> device_of(const void* memory) const;

  // Error: a graph of what this stream of the current context does is being captured, so nothing
  // may be queued; or nobody can tell, as the device has failed.
  Status check_uncaptured(Stream stream) const;

  // `what` says in a few words what was tried.
  Status check(DriverResult result, const char* what) const;
};

// Makes a context the current one of this thread, and the one before when it goes. Meanwhile this
// thread does not disturb the graphs that others capture.
class ContextScope final {
 public:
  ContextScope(const Driver& driver, Context context);
  ~ContextScope();
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_;
  int capture_mode_;
};

}  // namespace smd::gpu
