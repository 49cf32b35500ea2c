#include "smd/writer/run_files.h"

#include <chrono>
#include <thread>
#include <utility>

#include "smd/format/file_name.h"

namespace smd {
namespace {

// One file per worker that has ended; readers do not look here.
constexpr std::string_view kEndedFolder = ".smdebug/ended";
// How the chief waits for the other workers when its process exits.
constexpr std::chrono::milliseconds kPoll{50};
constexpr std::chrono::milliseconds kLongestWait{5000};

}  // namespace

Status RunFiles::admit() {
  if (admitted_) return {};
  if (options_.exclusive) SMD_RETURN_IF_ERROR(claim_.acquire());
  SMD_RETURN_IF_ERROR(options_.storage->remove(ended_file_name()));  // of an earlier run
  admitted_ = true;
  return {};
}

Status RunFiles::put(std::string_view path, std::string_view content) {
  const auto beside = beside_.insert_or_assign(std::string(path), std::string(content)).first;
  missing_.insert(beside->first);
  SMD_RETURN_IF_ERROR(admit());
  missing_.erase(beside->first);
  return publish_beside(beside->first);
}

void RunFiles::publish_missing() {
  for (const auto& path : std::exchange(missing_, {})) (void)publish_beside(path);
}

Result<bool> RunFiles::end_job(const JobEnd& end) {
  SMD_RETURN_IF_ERROR(admit());
  for (const auto& [path, content] : beside_) {
    if (!options_.storage->stat(path).ok()) SMD_RETURN_IF_ERROR(publish_beside(path));
  }
  if (end.num_workers > 1) {
    SMD_RETURN_IF_ERROR(publish(ended_file_name(), ""));
    SMD_TRY(const bool all, all_ended(end));
    if (!all) return false;
  }
  const Status published = publish(format::kEndMarker, "");
  if (published.ok()) return true;
  // Two workers may find at the same moment that they are the last; one of them succeeds.
  if (end.num_workers > 1 && options_.storage->stat(format::kEndMarker).ok()) return true;
  return published.error();
}

Status RunFiles::close() {
  claim_.release();
  return options_.durable == Durability::close ? options_.storage->sync() : Status();
}

Status RunFiles::publish(std::string_view path, std::string_view content) {
  SMD_RETURN_IF_ERROR(
      options_.storage->put(path, as_bytes(content), storage::Put::always, create_options()));
  return {};
}

std::string RunFiles::ended_file_name() const {
  return std::string(kEndedFolder) + "/" + options_.worker;
}

Result<bool> RunFiles::all_ended(const JobEnd& end) {
  for (auto waited = std::chrono::milliseconds(0);; waited += kPoll) {
    SMD_TRY(const auto ended, options_.storage->list(kEndedFolder, ""));
    if (ended.size() >= static_cast<size_t>(end.num_workers)) return true;
    if (!end.wait_for_others) return false;
    if (waited >= kLongestWait) return true;
    std::this_thread::sleep_for(kPoll);
  }
}

Status RunFiles::publish_beside(const std::string& path) {
  Status status = publish(path, beside_.at(path));
  if (!status.ok()) missing_.insert(path);
  return status;
}

}  // namespace smd
