#include "smd/hook/bill.h"

#include <fmt/format.h>

#include <array>

#include "smd/base/json.h"

namespace smd {
namespace {

std::string size_text(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string time_text(double secs) {
  return secs < 1 ? fmt::format("{:.1f} ms", secs * 1e3) : fmt::format("{:.1f} s", secs);
}

}  // namespace

std::string Bill::to_text() const {
  std::string out = fmt::format(
      "Recording took {} of {} on the training thread ({:.2f} %): {} tensors, {} in {} of {} "
      "steps.",
      time_text(cost_secs), time_text(training_secs), share() * 100, tensors, size_text(bytes),
      saved_steps, steps);
  if (left_out == 0) return out;
  return out + fmt::format(" The values of {} tensors, {}, found no room in the queue.", left_out,
                           size_text(left_out_bytes));
}

std::string Bill::to_json(std::string_view worker) const {
  const Json json = {{"worker", worker},
                     {"cost_secs", cost_secs},
                     {"training_secs", training_secs},
                     {"share", share()},
                     {"steps", steps},
                     {"saved_steps", saved_steps},
                     {"tensors", tensors},
                     {"bytes", bytes},
                     {"left_out", left_out},
                     {"left_out_bytes", left_out_bytes},
                     {"stride", stride}};
  return dump_json(json) + "\n";
}

std::string bill_file_name(std::string_view worker) {
  return fmt::format("overhead/{}.json", worker);
}

}  // namespace smd
