#include "smd/storage/sync.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "smd/storage/copy.h"
#include "smd/storage/spool_directory.h"

namespace smd::storage {

Result<SyncReport> sync_to(const std::string& root, Storage& remote, const SyncOptions& options) {
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    return Error{ErrorCode::not_found, fmt::format("There is no directory: {}", root)};
  }
  // Nobody else sends what was left behind while we do.
  SMD_TRY(const auto spool, SpoolDirectory::lock_files(root));
  const auto local = local_storage(root);

  // What must arrive last is looked for first: whatever it speaks of is seen by a later look.
  std::vector<FileInfo> files;
  for (int rank = kLastArrivalRank; rank >= 0; --rank) {
    SMD_TRY(auto seen, local->list("", ""));
    std::erase_if(seen, [&](const FileInfo& file) {
      return arrival_rank(file.path) != rank ||
             std::find(options.skip.begin(), options.skip.end(), file.path) != options.skip.end();
    });
    files.insert(files.begin(), seen.begin(), seen.end());
  }

  SMD_TRY(const auto there, remote.list("", ""));
  std::map<std::string_view, int64_t> sizes;
  for (const FileInfo& file : there) sizes[file.path] = file.size_bytes;
  const auto is_delivered = [&](const FileInfo& file) {
    return options.delivery && options.delivery->takes(file.path);
  };
  const auto is_owned = [&](const FileInfo& file) {
    return options.delivery && !options.delivery->owner_of(file.path).empty();
  };
  std::erase_if(files, is_owned);  // they go with their owners
  const auto is_there = [&](const FileInfo& file) {
    if (is_delivered(file)) return false;  // the delivery knows
    const auto found = sizes.find(file.path);
    return found != sizes.end() && found->second == file.size_bytes;
  };

  SyncReport report;
  SyncProgress progress;
  for (const FileInfo& file : files) {
    if (is_there(file)) continue;
    ++progress.files_left;
    progress.bytes_left += static_cast<uint64_t>(file.size_bytes);
  }
  for (const FileInfo& file : files) {
    if (is_there(file)) {
      ++report.files_skipped;
    } else {
      progress.path = file.path;
      if (options.progress && !options.progress(progress)) return report;
      SMD_TRY(const uint64_t bytes,
              is_delivered(file)
                  ? options.delivery->deliver(*local, file.path,
                                              {.again = true, .keep = !options.remove_source})
                  : copy_file(*local, remote, file.path));
      ++(bytes == 0 && is_delivered(file) ? report.files_skipped : report.files_sent);
      report.bytes_sent += bytes;
      --progress.files_left;
      progress.bytes_left -= static_cast<uint64_t>(file.size_bytes);
    }
    if (options.remove_source) SMD_RETURN_IF_ERROR(local->remove(file.path));
  }
  return report;
}

}  // namespace smd::storage
