#pragma once

// Result<T>: a value or an Error. Status: success or an Error.
// Core functions never throw; callers propagate with SMD_TRY and SMD_RETURN_IF_ERROR.

#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "smd/base/error.h"

namespace smd {

template <typename T>
class [[nodiscard]] Result final {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // Calling value() on an error, or error() on a value, is a bug and ends the process.
  T& value() & { return *require<0>(); }
  const T& value() const& { return *const_cast<Result*>(this)->template require<0>(); }
  // By value, so that a loop over the content of a temporary is safe.
  T value() && { return std::move(*require<0>()); }
  Error& error() & { return *require<1>(); }
  const Error& error() const& { return *const_cast<Result*>(this)->template require<1>(); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  template <size_t I>
  auto* require() {
    auto* held = std::get_if<I>(&state_);
    if (held == nullptr) std::abort();
    return held;
  }
  std::variant<T, Error> state_;
};

class [[nodiscard]] Status final {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  Error& error() & {
    if (!error_) std::abort();
    return *error_;
  }
  const Error& error() const& { return const_cast<Status*>(this)->error(); }

 private:
  std::optional<Error> error_;
};

}  // namespace smd

#define SMD_CONCAT_(a, b) a##b
#define SMD_CONCAT(a, b) SMD_CONCAT_(a, b)

// SMD_TRY(auto x, expression): x is the value, or the enclosing function returns the error.
#define SMD_TRY(declaration, expression) \
  SMD_TRY_(declaration, expression, SMD_CONCAT(smd_try_, __LINE__))
#define SMD_TRY_(declaration, expression, temporary)        \
  auto temporary = (expression);                            \
  if (!temporary.ok()) return std::move(temporary.error()); \
  declaration = std::move(*temporary)

#define SMD_RETURN_IF_ERROR(expression)                           \
  do {                                                            \
    auto smd_status_ = (expression);                              \
    if (!smd_status_.ok()) return std::move(smd_status_.error()); \
  } while (false)

// For bugs, never for input.
#define SMD_CHECK(condition)        \
  do {                              \
    if (!(condition)) std::abort(); \
  } while (false)
