#include "smd/c_api.h"

#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/hook/hook.h"
#include "smd/native/create_hook.h"
#include "smd/native/dlpack.h"

struct smdebug_hook {
  std::unique_ptr<smd::Hook> hook;
};

namespace smd {
namespace {

// The C interface has no other place for the text that goes with a status.
std::string& last_error() {
  thread_local std::string text;
  return text;
}

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return SMDEBUG_INVALID_ARGUMENT;
    case ErrorCode::not_found:
      return SMDEBUG_NOT_FOUND;
    case ErrorCode::not_yet:
      return SMDEBUG_NOT_YET;
    case ErrorCode::end_of_data:
      return SMDEBUG_END_OF_DATA;
    case ErrorCode::truncated:
      return SMDEBUG_TRUNCATED;
    case ErrorCode::corrupt:
      return SMDEBUG_CORRUPT;
    case ErrorCode::unsupported:
      return SMDEBUG_UNSUPPORTED;
    case ErrorCode::io:
      return SMDEBUG_IO;
    case ErrorCode::closed:
      return SMDEBUG_CLOSED;
    case ErrorCode::internal:
      return SMDEBUG_INTERNAL;
  }
  return SMDEBUG_INTERNAL;
}

int fail(ErrorCode code, std::string_view message) noexcept {
  try {
    last_error() = message;
  } catch (...) {
    last_error().clear();  // no memory for the text; the status still tells
  }
  return status_of(code);
}

// Runs what returns a Status; also turns what the standard library throws into one.
template <typename F>
int guarded(F&& call) noexcept {
  try {
    const Status status = std::forward<F>(call)();
    return status.ok() ? SMDEBUG_OK : fail(status.error().code, status.error().message);
  } catch (const std::exception& error) {
    return fail(ErrorCode::internal, error.what());
  } catch (...) {
    return fail(ErrorCode::internal, "An unknown exception was thrown.");
  }
}

Status require(const void* argument, std::string_view what) {
  if (argument != nullptr) return {};
  return Error{ErrorCode::invalid_argument, fmt::format("The {} is NULL.", what)};
}

Status require_both(const smdebug_hook* hook, const char* name) {
  SMD_RETURN_IF_ERROR(require(hook, "hook"));
  return require(name, "name");
}

// smdebug_dtype lists the element types in the order of DType, without strings.
static_assert(SMDEBUG_FLOAT16 == static_cast<int>(DType::float16));
static_assert(SMDEBUG_FLOAT32 == static_cast<int>(DType::float32));
static_assert(SMDEBUG_FLOAT64 == static_cast<int>(DType::float64));
static_assert(SMDEBUG_BFLOAT16 == static_cast<int>(DType::bfloat16));
static_assert(SMDEBUG_FLOAT8_E4M3FN == static_cast<int>(DType::float8_e4m3fn));
static_assert(SMDEBUG_FLOAT8_E5M2 == static_cast<int>(DType::float8_e5m2));
static_assert(SMDEBUG_INT8 == static_cast<int>(DType::int8));
static_assert(SMDEBUG_INT16 == static_cast<int>(DType::int16));
static_assert(SMDEBUG_INT32 == static_cast<int>(DType::int32));
static_assert(SMDEBUG_INT64 == static_cast<int>(DType::int64));
static_assert(SMDEBUG_UINT8 == static_cast<int>(DType::uint8));
static_assert(SMDEBUG_UINT16 == static_cast<int>(DType::uint16));
static_assert(SMDEBUG_UINT32 == static_cast<int>(DType::uint32));
static_assert(SMDEBUG_UINT64 == static_cast<int>(DType::uint64));
static_assert(SMDEBUG_BOOL == static_cast<int>(DType::boolean));
static_assert(SMDEBUG_COMPLEX64 == static_cast<int>(DType::complex64));
static_assert(SMDEBUG_COMPLEX128 == static_cast<int>(DType::complex128));

Result<DType> dtype_of(int dtype) {
  if (dtype >= SMDEBUG_FLOAT16 && dtype <= SMDEBUG_COMPLEX128) return static_cast<DType>(dtype);
  return Error{ErrorCode::invalid_argument, fmt::format("{} is no smdebug_dtype.", dtype)};
}

// nullptr and the error's text, or the hook.
template <typename F>
smdebug_hook* created(F&& create) noexcept {
  std::unique_ptr<smdebug_hook> made;
  guarded([&]() -> Status {
    SMD_TRY(std::unique_ptr<Hook> hook, std::forward<F>(create)());
    made = std::make_unique<smdebug_hook>();
    made->hook = std::move(hook);
    return {};
  });
  return made.release();
}

}  // namespace

// With C linkage, these are the functions that the header declares.
extern "C" {

const char* smdebug_last_error(void) { return last_error().c_str(); }

smdebug_hook* smdebug_hook_create(const char* out_dir, const char* json) {
  return created([&]() -> Result<std::unique_ptr<Hook>> {
    SMD_RETURN_IF_ERROR(require(out_dir, "output directory"));
    if (*out_dir == '\0') {
      return Error{ErrorCode::invalid_argument, "The output directory must not be empty."};
    }
    return create_hook(out_dir, json == nullptr ? "" : json);
  });
}

smdebug_hook* smdebug_hook_create_json(const char* path) {
  return created(
      [&] { return path == nullptr ? Hook::from_json() : Hook::from_json(std::string(path)); });
}

int smdebug_set_mode(smdebug_hook* hook, int mode) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require(hook, "hook"));
    if (mode < SMDEBUG_TRAIN || mode > SMDEBUG_GLOBAL) {
      return Error{ErrorCode::invalid_argument, fmt::format("{} is no smdebug_mode.", mode)};
    }
    hook->hook->set_mode(static_cast<Mode>(mode));
    return {};
  });
}

int smdebug_begin_step(smdebug_hook* hook) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require(hook, "hook"));
    return hook->hook->begin_step();
  });
}

int smdebug_begin_step_at(smdebug_hook* hook, int64_t step) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require(hook, "hook"));
    return hook->hook->begin_step(step);
  });
}

int smdebug_end_step(smdebug_hook* hook) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require(hook, "hook"));
    return hook->hook->end_step();
  });
}

int smdebug_wants(smdebug_hook* hook, const char* name) {
  bool wanted = false;
  guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require_both(hook, name));
    wanted = hook->hook->wants(name);
    return {};
  });
  return wanted ? 1 : 0;
}

int smdebug_save(smdebug_hook* hook, const char* name, const void* data, int dtype, int ndim,
                 const int64_t* shape, const int64_t* strides) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require_both(hook, name));
    SMD_TRY(const DType type, dtype_of(dtype));
    if (ndim < 0 || ndim > SMDEBUG_MOST_AXES) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("A tensor has 0 to {} axes, not {}.", SMDEBUG_MOST_AXES, ndim)};
    }
    if (ndim > 0) SMD_RETURN_IF_ERROR(require(shape, "shape"));
    const auto rank = static_cast<size_t>(ndim);
    TensorView view{.data = data, .dtype = type, .shape = {shape, rank}};
    AxisStrides strides_bytes;
    if (strides != nullptr) {
      SMD_TRY(view.strides_bytes, to_bytes({strides, rank}, type, strides_bytes));
    }
    SMD_RETURN_IF_ERROR(check(view));
    return hook->hook->save(name, view);
  });
}

int smdebug_save_dlpack(smdebug_hook* hook, const char* name, const void* dl_tensor) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require_both(hook, name));
    SMD_RETURN_IF_ERROR(require(dl_tensor, "tensor"));
    smdebug_dl_tensor tensor;
    std::memcpy(&tensor, dl_tensor, sizeof tensor);
    AxisStrides strides_bytes;
    SMD_TRY(const TensorView view, view_of_dlpack(tensor, strides_bytes));
    return hook->hook->save(name, view);
  });
}

int smdebug_save_scalar(smdebug_hook* hook, const char* name, double value) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require_both(hook, name));
    return hook->hook->save_scalar(name, value);
  });
}

int smdebug_save_strings(smdebug_hook* hook, const char* name, const char* const* strings,
                         size_t count) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require_both(hook, name));
    if (count > 0) SMD_RETURN_IF_ERROR(require(strings, "list of strings"));
    std::vector<std::string_view> views;
    for (size_t i = 0; i < count; ++i) {
      SMD_RETURN_IF_ERROR(require(strings[i], fmt::format("string {}", i)));
      views.emplace_back(strings[i]);
    }
    const int64_t shape[] = {static_cast<int64_t>(count)};
    const std::string collections[] = {std::string(collection_keys::kDefault)};
    return hook->hook->save_strings(name, views, shape, collections);
  });
}

int smdebug_close(smdebug_hook* hook) {
  return guarded([&]() -> Status {
    SMD_RETURN_IF_ERROR(require(hook, "hook"));
    return hook->hook->close();
  });
}

void smdebug_hook_free(smdebug_hook* hook) {
  guarded([&]() -> Status {
    delete hook;  // NOLINT: C's side of the ownership
    return {};
  });
}

}  // extern "C"
}  // namespace smd
