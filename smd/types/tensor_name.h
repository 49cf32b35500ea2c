#pragma once

// Tensor names as stored: a reduction of tensor T is the tensor "smdebug/reductions/[abs_]<op>/T".
// Pure functions.

#include <optional>
#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd {

inline constexpr std::string_view kReductionPrefix = "smdebug/reductions/";
inline constexpr std::string_view kScalarPrefix = "scalar/";

struct ReductionName {
  std::string_view op;  // "min", "l2", …
  bool abs = false;
  std::string_view tensor;

  bool operator==(const ReductionName&) const = default;
};

std::string reduction_tensor_name(std::string_view op, bool abs, std::string_view tensor);

// The parts of a mangled name, found wherever the prefix stands in it; views into `name`.
// nullopt: an ordinary tensor.
std::optional<ReductionName> parse_reduction_name(std::string_view name);

bool is_utf8(std::string_view text);

// Error if a name cannot be stored: empty or not UTF-8.
Status check_tensor_name(std::string_view name);

}  // namespace smd
