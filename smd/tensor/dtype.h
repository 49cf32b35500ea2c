#pragma once

// Element types: names, sizes and their numbers in the files' DataType enum. Immutable table.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace smd {

enum class DType : uint8_t {
  float16,
  float32,
  float64,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  boolean,
  complex64,
  complex128,
  string,
};

inline constexpr size_t kDTypeCount = static_cast<size_t>(DType::string) + 1;

enum class DTypeKind : uint8_t {
  floating,
  signed_integer,
  unsigned_integer,
  boolean,
  complex,
  string
};

struct DTypeInfo {
  std::string_view name;  // NumPy's, or ml_dtypes' where NumPy has none
  size_t size_bytes;      // of one element; 0 for strings
  DTypeKind kind;
  int code;  // DataType number in the files
};

const DTypeInfo& info_of(DType dtype);
inline std::string_view name_of(DType dtype) { return info_of(dtype).name; }
inline size_t size_of(DType dtype) { return info_of(dtype).size_bytes; }

std::optional<DType> dtype_from_name(std::string_view name);

// Also accepts the quantised codes (11, 12, 13, 15, 16) as the integers that hold them, and the
// reference variants (+100). nullopt: no element type of ours.
std::optional<DType> dtype_from_code(int code);

// Types that the original's reader knows no code for are stored widened to float32.
constexpr bool is_stored_widened(DType dtype) {
  return dtype == DType::bfloat16 || dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

}  // namespace smd
