#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "smd/storage/internal/too_large.h"
#include "smd/storage/storage.h"

namespace smd::storage {
namespace {

// The files; shared with those being written and read. Thread-safe.
struct Files {
  std::mutex mutex;
  // Guarded by mutex, like everything below. Whoever has a file open sees it grow, but not the one
  // that replaces it.
  std::map<std::string, std::shared_ptr<Bytes>, std::less<>> content;
  // How often the files of each name were replaced, made or removed.
  std::map<std::string, uint64_t, std::less<>> changes;

  void set(std::string_view path, std::shared_ptr<Bytes> bytes) {
    content.insert_or_assign(std::string(path), std::move(bytes));
    ++changes[std::string(path)];
  }
};

Error missing(std::string_view path) {
  return {ErrorCode::not_found, fmt::format("There is no file: {}", path)};
}

class MemoryWriteFile final : public WriteFile {
 public:
  MemoryWriteFile(std::shared_ptr<Files> files, std::string path)
      : files_(std::move(files)), path_(std::move(path)) {}
  Status append(std::span<const ByteSpan> pieces) override {
    for (ByteSpan piece : pieces) bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    return {};
  }
  Status commit() override {
    std::lock_guard lock(files_->mutex);
    files_->set(path_, std::make_shared<Bytes>(std::move(bytes_)));
    return {};
  }

 private:
  std::shared_ptr<Files> files_;
  std::string path_;
  Bytes bytes_;
};

class MemoryAppendFile final : public AppendFile {
 public:
  MemoryAppendFile(std::shared_ptr<Files> files, std::shared_ptr<Bytes> bytes)
      : files_(std::move(files)), bytes_(std::move(bytes)) {}
  Status append(std::span<const ByteSpan> pieces) override {
    std::lock_guard lock(files_->mutex);
    for (ByteSpan piece : pieces) bytes_->insert(bytes_->end(), piece.begin(), piece.end());
    return {};
  }
  void truncate(uint64_t size_bytes) override {
    std::lock_guard lock(files_->mutex);
    bytes_->resize(std::min<size_t>(bytes_->size(), size_bytes));
  }
  Status sync() override { return {}; }
  uint64_t size() const override {
    std::lock_guard lock(files_->mutex);
    return bytes_->size();
  }

 private:
  std::shared_ptr<Files> files_;
  std::shared_ptr<Bytes> bytes_;
};

class MemoryReadFile final : public ReadFile {
 public:
  MemoryReadFile(std::shared_ptr<Files> files, std::shared_ptr<const Bytes> bytes)
      : files_(std::move(files)), bytes_(std::move(bytes)) {}
  Result<uint64_t> size() override {
    std::lock_guard lock(files_->mutex);
    return uint64_t{bytes_->size()};
  }
  Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) override {
    std::lock_guard lock(files_->mutex);
    if (offset >= bytes_->size()) return size_t{0};
    const size_t n = std::min<size_t>(out.size(), bytes_->size() - offset);
    std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return n;
  }

 private:
  std::shared_ptr<Files> files_;
  std::shared_ptr<const Bytes> bytes_;
};

class MemoryStorage final : public Storage {
 public:
  std::string name() const override { return "memory"; }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path, const CreateOptions&) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    return std::unique_ptr<WriteFile>(std::make_unique<MemoryWriteFile>(files_, std::string(path)));
  }

  Result<std::unique_ptr<AppendFile>> append(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    auto bytes = std::make_shared<Bytes>();
    std::lock_guard lock(files_->mutex);
    if (files_->content.contains(path)) {
      return Error{ErrorCode::io, fmt::format("The file exists already: {}", path)};
    }
    files_->set(path, bytes);
    return std::unique_ptr<AppendFile>(
        std::make_unique<MemoryAppendFile>(files_, std::move(bytes)));
  }

  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions&) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    auto bytes = std::make_shared<Bytes>(content.begin(), content.end());
    std::lock_guard lock(files_->mutex);
    if (when == Put::if_absent && files_->content.contains(path)) return false;
    files_->set(path, std::move(bytes));
    return true;
  }

  Result<std::optional<VersionedFile>> read_version(std::string_view path, std::string_view known,
                                                    uint64_t most_bytes) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::lock_guard lock(files_->mutex);
    const auto it = files_->content.find(path);
    if (it == files_->content.end()) return missing(path);
    std::string version = version_of(path, *it->second);
    if (version == known) return std::optional<VersionedFile>();
    if (it->second->size() > most_bytes) return too_large(it->second->size(), path);
    return std::optional(VersionedFile{.content = *it->second, .version = std::move(version)});
  }

  Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                             std::string_view version) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    auto bytes = std::make_shared<Bytes>(content.begin(), content.end());
    std::lock_guard lock(files_->mutex);
    const auto it = files_->content.find(path);
    const std::string now =
        it == files_->content.end() ? std::string() : version_of(path, *it->second);
    if (now != version) return std::optional<std::string>();
    files_->set(path, bytes);
    return std::optional(version_of(path, *bytes));
  }

  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::lock_guard lock(files_->mutex);
    const auto it = files_->content.find(path);
    if (it == files_->content.end()) return missing(path);
    return std::unique_ptr<ReadFile>(std::make_unique<MemoryReadFile>(files_, it->second));
  }

  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::lock_guard lock(files_->mutex);
    const auto it = files_->content.find(path);
    if (it == files_->content.end()) return missing(path);
    return FileInfo{.path = std::string(path),
                    .size_bytes = static_cast<int64_t>(it->second->size())};
  }

  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    if (!folder.empty()) SMD_RETURN_IF_ERROR(check_path(folder));
    const std::string prefix = folder.empty() ? "" : std::string(folder) + "/";
    std::vector<FileInfo> files;
    std::lock_guard lock(files_->mutex);
    for (const auto& [path, bytes] : files_->content) {
      if (path.starts_with(prefix) && path > start_after) {
        files.push_back({.path = path, .size_bytes = static_cast<int64_t>(bytes->size())});
      }
    }
    return files;
  }

  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::lock_guard lock(files_->mutex);
    if (const auto it = files_->content.find(path); it != files_->content.end()) {
      files_->content.erase(it);
    }
    return {};
  }

  Status sync() override { return {}; }

 private:
  // Needs the mutex. A file that grows has another size.
  std::string version_of(std::string_view path, const Bytes& bytes) const {
    const auto changes = files_->changes.find(path);
    return fmt::format("{}.{}", changes == files_->changes.end() ? 0 : changes->second,
                       bytes.size());
  }

  std::shared_ptr<Files> files_ = std::make_shared<Files>();
};

}  // namespace

std::shared_ptr<Storage> memory_storage() { return std::make_shared<MemoryStorage>(); }

}  // namespace smd::storage
