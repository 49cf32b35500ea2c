#include "smd/types/tensor_name.h"

#include <nlohmann/json.hpp>

namespace smd {
namespace {

constexpr std::string_view kAbs = "abs_";

bool is_ascii(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  }
  return true;
}

}  // namespace

bool is_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  try {
    (void)nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

std::string reduction_tensor_name(std::string_view op, bool abs, std::string_view tensor) {
  std::string name;
  name.reserve(kReductionPrefix.size() + kAbs.size() + op.size() + 1 + tensor.size());
  name += kReductionPrefix;
  if (abs) name += kAbs;
  name += op;
  name += '/';
  name += tensor;
  return name;
}

std::optional<ReductionName> parse_reduction_name(std::string_view name) {
  const size_t at = name.find(kReductionPrefix);
  if (at == std::string_view::npos) return std::nullopt;
  name.remove_prefix(at + kReductionPrefix.size());
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ReductionName parts{.op = name.substr(0, slash), .tensor = name.substr(slash + 1)};
  if (parts.op.starts_with(kAbs)) {
    parts.abs = true;
    parts.op.remove_prefix(kAbs.size());
  }
  return parts;
}

Status check_tensor_name(std::string_view name) {
  if (name.empty()) {
    return Error{ErrorCode::invalid_argument, "A tensor name must not be empty."};
  }
  if (!is_utf8(name)) {
    return Error{ErrorCode::invalid_argument, "A tensor name must be valid UTF-8."};
  }
  return {};
}

}  // namespace smd
