#include "smd/hook/guard.h"

#include <fmt/format.h>

namespace smd {
namespace {
constexpr size_t kMostDistinctFailures = 10;
}  // namespace

Status Guard::handle(std::string_view site, Error error) {
  ++failures_;
  if (strict_) return error;
  if (!seen_.emplace(site, error.code).second) return {};
  log_->error(fmt::format("{}: {}{} Training goes on; further errors of this kind are not shown.", site,
                          error.message, error.message.ends_with('.') ? "" : "."));
  if (seen_.size() >= kMostDistinctFailures && !disabled_) {
    disabled_ = true;
    log_->error("Too many different errors: recording stops, training goes on.");
  }
  return {};
}

}  // namespace smd
