#include "smd/rules/held_values.h"

#include <fmt/format.h>

namespace smd::rules {
namespace {

constexpr int64_t kMib = int64_t{1} << 20;

}  // namespace

HeldValues::HeldValues(std::string_view rule, const Parameters& parameters,
                       std::shared_ptr<Log> log)
    : rule_(rule),
      most_bytes_(parameters.integer(kMaxMemoryMib.name) * kMib),
      log_(std::move(log)) {}

HeldValue HeldValues::hold(const TensorValue& value, std::string_view tensor) {
  const auto bytes = static_cast<int64_t>(value.elements.size());
  if (bytes > most_bytes_ - *used_bytes_) {
    if (!has_told_) {
      log_->warning(
          fmt::format("{} does not judge '{}' and perhaps others, as the values of "
                      "earlier steps would take more than {} MiB; give it a larger {} "
                      "or fewer tensors.",
                      rule_, tensor, most_bytes_ / kMib, kMaxMemoryMib.name));
    }
    has_told_ = true;
    return nullptr;
  }
  *used_bytes_ += bytes;
  return {new TensorValue(value), [used = used_bytes_, bytes](const TensorValue* held) {
            *used -= bytes;
            delete held;
          }};
}

}  // namespace smd::rules
