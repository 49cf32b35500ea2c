#include "smd/writer/claim.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#include "smd/base/host_name.h"
#include "smd/format/file_name.h"

namespace smd {
namespace {

// Kernel ticks after boot at which a process started: tells it from a later one with the same
// number. 0: unknown.
uint64_t start_ticks(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  constexpr int kFieldsBefore = 19;  // between the name and starttime
  std::string skipped;
  for (int i = 0; i < kFieldsBefore; ++i) rest >> skipped;
  uint64_t ticks = 0;
  rest >> ticks;
  return ticks;
}

struct Holder {
  pid_t pid = 0;
  std::string host;
  uint64_t started = 0;
};

std::string describe_self() {
  return fmt::format("{} {} {}\n", ::getpid(), host_name(), start_ticks(::getpid()));
}

Holder parse(std::string_view text) {
  Holder holder;
  std::istringstream in{std::string(text)};
  in >> holder.pid >> holder.host >> holder.started;
  return holder;
}

// True only if the holder ran on this host and is certainly gone.
bool is_dead(const Holder& holder) {
  if (holder.pid <= 0 || holder.host != host_name()) return false;
  if (::kill(holder.pid, 0) != 0) return errno == ESRCH;
  const uint64_t ticks = start_ticks(holder.pid);
  return holder.started != 0 && ticks != 0 && ticks != holder.started;
}

}  // namespace

// After taking over a dead claim: somebody who saw the same dead claim a moment ago may have
// removed ours in its place.
bool Claim::still_ours(std::string_view self) {
  constexpr std::chrono::milliseconds kLongestMoment{100};
  std::this_thread::sleep_for(kLongestMoment);
  const auto content = storage::read_all(*storage_, format::kClaim);
  return content.ok() && as_text(*content) == self;
}

Status Claim::acquire() {
  if (state_ == State::ours) return {};
  if (state_ == State::refused) return refusal_;
  constexpr int kTries = 3;  // others may take a dead claim over at the same time
  const std::string self = describe_self();
  std::string found;
  for (int i = 0; i < kTries; ++i) {
    SMD_TRY(bool ours, storage_->put(format::kClaim, as_bytes(self), storage::Put::if_absent, {}));
    if (ours && !found.empty()) ours = still_ours(self);
    if (ours) {
      state_ = State::ours;
      return {};
    }
    auto content = storage::read_all(*storage_, format::kClaim);
    if (!content.ok()) continue;  // released in between
    found = as_text(*content);
    if (!is_dead(parse(found))) break;
    SMD_RETURN_IF_ERROR(storage_->remove(format::kClaim));
  }
  const Holder holder = parse(found);
  state_ = State::refused;
  refusal_ = {
      ErrorCode::closed,
      fmt::format("Another process{} writes into this directory; this one saves nothing. If none "
                  "does, remove the claim: {}/{}",
                  holder.pid > 0 ? fmt::format(" ({} on {})", holder.pid, holder.host) : "",
                  storage_->name(), format::kClaim)};
  return refusal_;
}

void Claim::release() {
  if (state_ != State::ours) return;
  (void)storage_->remove(format::kClaim);  // a claim left behind is recognised as dead
  state_ = State::unknown;
}

}  // namespace smd
