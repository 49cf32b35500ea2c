#include "smd/storage/contained.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace smd::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".tmp";
constexpr int64_t kNanos = 1'000'000'000;

// The path without links; nullopt with errno: there is nothing, or the links run in a circle.
std::optional<std::string> real_path(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return std::nullopt;
  return resolved;
}

class ContainedStorage final : public Storage {
 public:
  ContainedStorage(std::string root, const ContainedOptions& options)
      : root_(std::move(root)), options_(options), inner_(local_storage(root_)) {}

  std::string name() const override { return inner_->name(); }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_target(path));
    return inner_->create(path, options);
  }

  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_target(path));
    return inner_->put(path, content, when, options);
  }

  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_source(path));
    return inner_->open(path);
  }

  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_source(path));
    return inner_->stat(path);
  }

  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    if (!folder.empty()) SMD_RETURN_IF_ERROR(check_path(folder));
    std::vector<FileInfo> files;
    const std::string start = folder.empty() ? root_ : full_path(folder);
    std::error_code error;
    if (!folder.empty() && !is_inside(start)) return files;
    fs::recursive_directory_iterator it(start, fs::directory_options::skip_permission_denied,
                                        error);
    if (error == std::errc::no_such_file_or_directory) return files;
    for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      std::string path = it->path().native().substr(prefix_bytes());
      if (path <= start_after) continue;
      if (!options_.everything && path.ends_with(kTemporary)) continue;
      if (auto info = info_of(std::move(path))) files.push_back(std::move(*info));
    }
    // A directory that vanishes under the iteration has no files any more.
    if (error && error != std::errc::no_such_file_or_directory) {
      return Error{ErrorCode::io, fmt::format("Listing failed: {}: {}", error.message(), start)};
    }
    std::sort(files.begin(), files.end(),
              [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
    return files;
  }

  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_target(path));
    return inner_->remove(path);
  }

  Status sync() override { return inner_->sync(); }

  // Tells names only; what they lead to is checked when it is opened.
  std::unique_ptr<Watch> watch(std::span<const std::string> folders) override {
    for (const std::string& folder : folders) {
      const std::string full = full_path(folder);
      if (real_path(full) && !is_inside(full)) return nullptr;
    }
    return inner_->watch(folders);
  }

 private:
  std::string full_path(std::string_view path) const {
    return fmt::format("{}{}{}", root_, root_.ends_with('/') ? "" : "/", path);
  }
  size_t prefix_bytes() const { return root_.size() + (root_.ends_with('/') ? 0 : 1); }

  bool is_inside(const std::string& full) const {
    const auto root = real_path(root_);
    const auto real = real_path(full);
    if (!root || !real) return false;
    return *real == *root || *root == "/" || real->starts_with(*root + "/");
  }

  // Success: the path leads to a regular file inside of the root.
  Status check_source(std::string_view path) const {
    SMD_RETURN_IF_ERROR(check_path(path));
    const std::string full = full_path(path);
    if (!real_path(full)) {
      const auto kind = errno == ENOENT || errno == ENOTDIR ? ErrorCode::not_found : ErrorCode::io;
      return Error{kind, fmt::format("Opening failed: {}: {}", std::strerror(errno), full)};
    }
    if (!is_inside(full)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("A link leaves the run's directory and is not followed: {}", full)};
    }
    struct stat info {};
    if (::stat(full.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return Error{ErrorCode::invalid_argument, fmt::format("This is not a file: {}", full)};
    }
    return {};
  }

  // Success: a file of this name would lie inside of the root. Files are published by renaming,
  // which replaces a link and does not follow it; so only the folders above count.
  Status check_target(std::string_view path) const {
    SMD_RETURN_IF_ERROR(check_path(path));
    fs::path folder = fs::path(full_path(path)).parent_path();
    std::error_code error;
    while (!fs::exists(fs::symlink_status(folder, error)) && folder.has_relative_path()) {
      folder = folder.parent_path();
    }
    const std::string nearest = folder.string();
    // The root itself may not exist yet.
    if (nearest.size() >= root_.size() && !is_inside(nearest)) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("A link leaves the run's directory and is not followed: {}", nearest)};
    }
    // The temporary names that a local directory writes to first are opened, not renamed.
    const std::string full = full_path(path);
    for (const std::string& temporary :
         {full + std::string(kTemporary), fmt::format("{}.{}{}", full, ::getpid(), kTemporary)}) {
      if (fs::is_symlink(fs::symlink_status(temporary, error))) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("A link stands where a file is to be written: {}", temporary)};
      }
    }
    return {};
  }

  std::optional<FileInfo> info_of(std::string path) const {
    const std::string full = full_path(path);
    struct stat info {};
    if (::lstat(full.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) return std::nullopt;
    if (S_ISLNK(info.st_mode)) {
      if (!check_source(path).ok() || ::stat(full.c_str(), &info) != 0) {
        if (!options_.everything) return std::nullopt;
        return FileInfo{.path = std::move(path)};
      }
    } else if (!S_ISREG(info.st_mode)) {
      return std::nullopt;
    }
    return FileInfo{.path = std::move(path),
                    .size_bytes = info.st_size,
                    .mtime_ns = info.st_mtim.tv_sec * kNanos + info.st_mtim.tv_nsec};
  }

  const std::string root_;
  const ContainedOptions options_;
  const std::shared_ptr<Storage> inner_;
};

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::shared_ptr<Storage> contained_storage(std::string root, const ContainedOptions& options) {
  return std::make_shared<ContainedStorage>(without_trailing_slashes(std::move(root)), options);
}

}  // namespace smd::storage
