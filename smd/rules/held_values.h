#pragma once

// The values of earlier steps that one rule keeps, and how much memory they may take together.
// Shares the memory of what was read. One thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "smd/base/log.h"
#include "smd/rules/parameters.h"
#include "smd/trial/tensor_value.h"

namespace smd::rules {

using HeldValue = std::shared_ptr<const TensorValue>;

class HeldValues final {
 public:
  // With max_memory_mib of the parameters. `rule` is for the message.
  HeldValues(std::string_view rule, const Parameters& parameters, std::shared_ptr<Log> log);

  // Counts until the last copy of what it returns is gone. nullptr: there is no room; the first
  // time, the log tells so with the tensor's name.
  HeldValue hold(const TensorValue& value, std::string_view tensor);

  int64_t size_bytes() const { return *used_bytes_; }

 private:
  const std::string rule_;
  const int64_t most_bytes_;
  const std::shared_ptr<Log> log_;
  bool has_told_ = false;
  std::shared_ptr<int64_t> used_bytes_ = std::make_shared<int64_t>(0);
};

// For parameter tables.
inline constexpr ParameterSpec kMaxMemoryMib = {
    .name = "max_memory_mib",
    .type = ParameterType::integer,
    .default_text = "4096",
    .help =
        "Memory for the values of earlier steps, in MiB; tensors that do not fit are not "
        "judged.",
    .range = "[1,1048576]",
    .is_extension = true};

}  // namespace smd::rules
