#include "smd/types/worker.h"

#include <fmt/format.h>

namespace smd {
namespace {

std::string translate(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  for (char& c : out) {
    if (const size_t i = from.find(c); i != std::string_view::npos) c = to[i];
  }
  return out;
}

}  // namespace

std::string worker_name(int rank) { return fmt::format("worker_{}", rank); }

std::string worker_to_file_name(std::string_view worker) {
  return worker.starts_with('/') ? translate(worker, "/:", "_-") : std::string(worker);
}

std::string worker_from_file_name(std::string_view text) {
  return text.starts_with('_') ? translate(text, "_-", "/:") : std::string(text);
}

Status check_worker(std::string_view worker) {
  const bool slash = !worker.starts_with('/') && worker.find('/') != std::string_view::npos;
  if (worker.empty() || slash || worker.find('\0') != std::string_view::npos) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("The worker name '{}' cannot be part of a file name; expected something "
                    "like 'worker_0', without '/'.",
                    worker)};
  }
  return {};
}

}  // namespace smd
