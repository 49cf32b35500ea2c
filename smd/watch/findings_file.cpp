#include "smd/watch/findings_file.h"

#include <fmt/format.h>

#include "smd/types/worker.h"

namespace smd::watch {
namespace {

constexpr size_t kMostPendingBytes = size_t{1} << 20;
constexpr size_t kMostReplacedBytes = size_t{4} << 20;
constexpr int kMostProcesses = 10'000;

}  // namespace

void FindingsFile::add(const Json& hit) {
  const std::string line = hit.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (pending_.size() + line.size() <= kMostPendingBytes) pending_ += line;
}

Status FindingsFile::open() {
  const std::string name = worker_to_file_name(worker_);
  for (int n = 1; n < kMostProcesses; ++n) {
    const std::string path =
        fmt::format("{}/{}{}.jsonl", kFindingsFolder, name, n == 1 ? "" : fmt::format(".{}", n));
    const auto there = storage_->stat(path);
    if (there.ok()) continue;
    if (there.error().code != ErrorCode::not_found) return there.error();
    auto made = storage_->append(path);
    if (made.ok()) {
      file_ = std::move(*made);
    } else if (made.error().code != ErrorCode::unsupported) {
      return made.error();
    }
    path_ = path;
    return {};
  }
  return Error{ErrorCode::io, fmt::format("There are too many findings of '{}'.", worker_)};
}

Status FindingsFile::flush() {
  if (pending_.empty()) return {};
  if (path_.empty()) SMD_RETURN_IF_ERROR(open());
  if (file_) {
    const ByteSpan bytes = as_bytes(pending_);
    SMD_RETURN_IF_ERROR(file_->append({&bytes, 1}));
  } else if (written_.size() + pending_.size() <= kMostReplacedBytes) {
    const std::string all = written_ + pending_;
    SMD_RETURN_IF_ERROR(storage_->put(path_, as_bytes(all), storage::Put::always, {}));
    written_ = all;
  }
  pending_.clear();
  return {};
}

Status FindingsFile::close() {
  SMD_RETURN_IF_ERROR(flush());
  return file_ ? file_->finish() : Status();
}

}  // namespace smd::watch
