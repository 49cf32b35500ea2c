#include "smd/tensor/dtype.h"

#include <array>

namespace smd {
namespace {

using enum DTypeKind;

constexpr std::array<DTypeInfo, kDTypeCount> kTable = {{
    {"float16", 2, floating, 19},
    {"float32", 4, floating, 1},
    {"float64", 8, floating, 2},
    {"bfloat16", 2, floating, 14},
    {"float8_e4m3fn", 1, floating, 25},
    {"float8_e5m2", 1, floating, 24},
    {"int8", 1, signed_integer, 6},
    {"int16", 2, signed_integer, 5},
    {"int32", 4, signed_integer, 3},
    {"int64", 8, signed_integer, 9},
    {"uint8", 1, unsigned_integer, 4},
    {"uint16", 2, unsigned_integer, 17},
    {"uint32", 4, unsigned_integer, 22},
    {"uint64", 8, unsigned_integer, 23},
    {"bool", 1, boolean, 10},
    {"complex64", 8, complex, 8},
    {"complex128", 16, complex, 18},
    {"str", 0, string, 7},
}};

}  // namespace

const DTypeInfo& info_of(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_code(int code) {
  constexpr int kReference = 100;
  if (code > kReference) code -= kReference;
  switch (code) {
    case 11: return DType::int8;
    case 12: return DType::uint8;
    case 13: return DType::int32;
    case 15: return DType::int16;
    case 16: return DType::uint16;
    default: break;
  }
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].code == code) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace smd
