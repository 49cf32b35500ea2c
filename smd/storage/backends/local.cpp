#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <limits.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "smd/storage/internal/inotify_watch.h"
#include "smd/storage/internal/temporary.h"
#include "smd/storage/storage.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;

using internal::kTemporary;

Error io_error(std::string_view what, std::string_view path, int code) {
  const auto kind = code == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return {kind, fmt::format("{} failed: {}: {}", what, std::strerror(code), path)};
}

// Owns a file descriptor.
class Descriptor final {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

Status make_parents(const std::string& path) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (error)
    return io_error("Creating a directory", fs::path(path).parent_path().string(), error.value());
  return {};
}

// Opens for writing; makes the parent directories when they are missing.
Result<Descriptor> open_new(const std::string& path, int flags) {
  constexpr mode_t kMode = 0666;
  int fd = ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0 && errno == ENOENT) {
    SMD_RETURN_IF_ERROR(make_parents(path));
    fd = ::open(path.c_str(), flags | O_WRONLY | O_CREAT | O_CLOEXEC, kMode);
  }
  if (fd < 0) return io_error("Creating a file", path, errno);
  return Descriptor(fd);
}

// At `offset`, or where the file stands if there is none.
Status write_all(int fd, std::span<const ByteSpan> pieces, const std::string& path,
                 std::optional<uint64_t> offset = {}) {
  std::vector<iovec> vectors;
  vectors.reserve(pieces.size());
  for (ByteSpan piece : pieces) {
    if (!piece.empty()) vectors.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
  }
  for (size_t at = 0; at < vectors.size();) {
    const auto count = static_cast<int>(std::min<size_t>(vectors.size() - at, IOV_MAX));
    ssize_t written = offset
                          ? ::pwritev(fd, vectors.data() + at, count, static_cast<off_t>(*offset))
                          : ::writev(fd, vectors.data() + at, count);
    if (written < 0) {
      if (errno == EINTR) continue;
      return io_error("Writing", path, errno);
    }
    if (offset) *offset += static_cast<uint64_t>(written);
    while (at < vectors.size() && static_cast<size_t>(written) >= vectors[at].iov_len) {
      written -= static_cast<ssize_t>(vectors[at++].iov_len);
    }
    if (written > 0) {
      vectors[at].iov_base = static_cast<char*>(vectors[at].iov_base) + written;
      vectors[at].iov_len -= static_cast<size_t>(written);
    }
  }
  return {};
}

Status sync_directory_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() < 0 || ::fsync(directory.get()) != 0) {
    return io_error("Syncing a directory", folder, errno);
  }
  return {};
}

class LocalWriteFile final : public WriteFile {
 public:
  LocalWriteFile(Descriptor file, std::string path, bool durable)
      : file_(std::move(file)), path_(std::move(path)), durable_(durable) {}
  ~LocalWriteFile() override {
    if (!committed_) ::unlink(temporary().c_str());
  }

  Status append(std::span<const ByteSpan> pieces) override {
    return write_all(file_.get(), pieces, path_);
  }

  void expect(uint64_t bytes) override {
    const off_t end = ::lseek(file_.get(), 0, SEEK_CUR);
    // Only a hint: file systems without it, or without the space, show when the bytes come.
    (void)::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, end, static_cast<off_t>(bytes));
  }

  Status commit() override {
    SMD_CHECK(!committed_);
    if (durable_ && ::fsync(file_.get()) != 0) return io_error("Syncing", path_, errno);
    if (file_.close() != 0) return io_error("Closing", path_, errno);
    if (std::rename(temporary().c_str(), path_.c_str()) != 0) {
      return io_error("Publishing a file", path_, errno);
    }
    committed_ = true;
    return durable_ ? sync_directory_of(path_) : Status();
  }

  static std::string temporary(const std::string& path) { return path + std::string(kTemporary); }

 private:
  std::string temporary() const { return temporary(path_); }

  Descriptor file_;
  const std::string path_;
  const bool durable_;
  bool committed_ = false;
};

class LocalAppendFile final : public AppendFile {
 public:
  LocalAppendFile(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Status append(std::span<const ByteSpan> pieces) override {
    Status written = write_all(file_.get(), pieces, path_, size_);
    if (!written.ok()) {
      truncate(size_);
      return written;
    }
    for (ByteSpan piece : pieces) size_ += piece.size();
    return {};
  }

  // Should the system refuse, the next append writes over the rest.
  void truncate(uint64_t size_bytes) override {
    size_ = std::min(size_, size_bytes);
    (void)!::ftruncate(file_.get(), static_cast<off_t>(size_));
  }

  Status sync() override {
    if (::fdatasync(file_.get()) != 0) return io_error("Syncing", path_, errno);
    if (named_) return {};
    SMD_RETURN_IF_ERROR(sync_directory_of(path_));
    named_ = true;
    return {};
  }

  uint64_t size() const override { return size_; }

 private:
  Descriptor file_;
  const std::string path_;
  uint64_t size_ = 0;
  bool named_ = false;  // the directory knows the file on stable storage
};

class LocalReadFile final : public ReadFile {
 public:
  LocalReadFile(Descriptor file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}

  Result<uint64_t> size() override {
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0) return io_error("Reading the size", path_, errno);
    return static_cast<uint64_t>(info.st_size);
  }

  Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) override {
    size_t got = 0;
    while (got < out.size()) {
      const ssize_t n = ::pread(file_.get(), out.data() + got, out.size() - got,
                                static_cast<off_t>(offset + got));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return io_error("Reading", path_, errno);
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

 private:
  Descriptor file_;
  const std::string path_;
};

class LocalStorage final : public Storage {
 public:
  explicit LocalStorage(std::string root) : root_(std::move(root)) {}

  std::string name() const override { return root_; }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    SMD_TRY(Descriptor file, open_new(LocalWriteFile::temporary(full), O_TRUNC));
    return std::unique_ptr<WriteFile>(
        std::make_unique<LocalWriteFile>(std::move(file), std::move(full), options.durable));
  }

  Result<std::unique_ptr<AppendFile>> append(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    SMD_TRY(Descriptor file, open_new(full, O_EXCL));
    return std::unique_ptr<AppendFile>(
        std::make_unique<LocalAppendFile>(std::move(file), std::move(full)));
  }

  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    if (when == Put::always) {
      SMD_TRY(auto file, create(path, options));
      SMD_RETURN_IF_ERROR(file->append({{content}}));
      SMD_RETURN_IF_ERROR(file->commit());
      return true;
    }
    // A link appears whole and only if the name is free; a rename would replace what is there.
    const std::string full = full_path(path);
    const std::string temporary = fmt::format("{}.{}{}", full, ::getpid(), kTemporary);
    SMD_TRY(Descriptor file, open_new(temporary, O_TRUNC));
    Status written = write_all(file.get(), {{content}}, full);
    if (written.ok() && options.durable && ::fsync(file.get()) != 0) {
      written = io_error("Syncing", full, errno);
    }
    const bool linked = written.ok() && ::link(temporary.c_str(), full.c_str()) == 0;
    const int reason = errno;
    ::unlink(temporary.c_str());
    SMD_RETURN_IF_ERROR(std::move(written));
    if (linked) return true;
    if (reason == EEXIST) return false;
    if (reason == EPERM || reason == ENOTSUP || reason == EMLINK)
      return put_exclusive(full, content);
    return io_error("Publishing a file", full, reason);
  }

  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    SMD_TRY(Descriptor file, open_beneath(path, full));
    return std::unique_ptr<ReadFile>(
        std::make_unique<LocalReadFile>(std::move(file), std::move(full)));
  }

  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    const std::string full = full_path(path);
    struct stat info {};
    if (::stat(full.c_str(), &info) != 0) return io_error("Looking at", full, errno);
    return info_of(std::string(path), info);
  }

  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    if (!folder.empty()) SMD_RETURN_IF_ERROR(check_path(folder));
    const std::string start = folder.empty() ? root_ : full_path(folder);
    std::vector<FileInfo> files;
    std::error_code error;
    fs::recursive_directory_iterator it(start, fs::directory_options::skip_permission_denied,
                                        error);
    if (error == std::errc::no_such_file_or_directory) return files;
    const fs::recursive_directory_iterator end;
    for (; !error && it != end; it.increment(error)) {
      const std::string& full = it->path().native();
      // Whole directories that come before what is asked for are not entered.
      const std::string_view below =
          std::string_view(full).substr(root_ == "/" ? 1 : root_.size() + 1);
      if (below < start_after && !start_after.starts_with(below) && it->is_directory(error)) {
        it.disable_recursion_pending();
        continue;
      }
      struct stat info {};
      if (full.ends_with(kTemporary) || ::stat(full.c_str(), &info) != 0 ||
          !S_ISREG(info.st_mode)) {
        continue;
      }
      std::string path = full.substr(root_ == "/" ? 1 : root_.size() + 1);
      if (path > start_after) files.push_back(info_of(std::move(path), info));
    }
    // A directory that vanishes under the iteration has no files any more.
    if (error && error != std::errc::no_such_file_or_directory) {
      return io_error("Listing", start, error.value());
    }
    std::sort(files.begin(), files.end(),
              [](const FileInfo& a, const FileInfo& b) { return a.path < b.path; });
    return files;
  }

  Status remove(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    const std::string full = full_path(path);
    if (::unlink(full.c_str()) != 0 && errno != ENOENT) return io_error("Removing", full, errno);
    return {};
  }

  Status sync() override {
    const Descriptor root(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (root.get() < 0) return errno == ENOENT ? Status() : io_error("Syncing", root_, errno);
    if (::syncfs(root.get()) != 0) return io_error("Syncing", root_, errno);
    return {};
  }

  using Storage::watch;
  std::unique_ptr<Watch> watch(std::span<const std::string> folders,
                               std::span<const std::string> growing) override {
    return internal::inotify_watch(root_, folders, growing);
  }

 private:
  static FileInfo info_of(std::string path, const struct stat& info) {
    constexpr int64_t kNanos = 1'000'000'000;
    return {.path = std::move(path),
            .size_bytes = info.st_size,
            .mtime_ns = info.st_mtim.tv_sec * kNanos + info.st_mtim.tv_nsec};
  }

  // For file systems without hard links: exclusive, though not atomic in its content.
  Result<bool> put_exclusive(const std::string& full, ByteSpan content) {
    const Descriptor file(::open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.get() < 0) {
      if (errno == EEXIST) return false;
      return io_error("Creating a file", full, errno);
    }
    SMD_RETURN_IF_ERROR(write_all(file.get(), {{content}}, full));
    return true;
  }

  // Links that lead out of the root are refused: names come from files that somebody else wrote.
  Result<Descriptor> open_beneath(std::string_view path, const std::string& full) const {
    const Descriptor root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (root.get() < 0) return io_error("Opening", full, errno);
    open_how how{};
    how.flags = O_RDONLY | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH;
    const std::string name(path);
    const long fd = ::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof how);
    if (fd >= 0) return Descriptor(static_cast<int>(fd));
    if (errno == EXDEV) {
      return Error{ErrorCode::io,
                   fmt::format("The file is a link that leads out of its directory: {}", full)};
    }
    if (errno != ENOSYS && errno != EPERM) return io_error("Opening", full, errno);
    // Kernels before 5.6, and containers that forbid the call.
    std::error_code error;
    const fs::path real = fs::canonical(full, error);
    if (error) return io_error("Opening", full, error.value());
    const fs::path top = fs::canonical(root_, error);
    if (error ||
        std::mismatch(top.begin(), top.end(), real.begin(), real.end()).first != top.end()) {
      return Error{ErrorCode::io,
                   fmt::format("The file is a link that leads out of its directory: {}", full)};
    }
    Descriptor file(::open(full.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return io_error("Opening", full, errno);
    return file;
  }

  std::string full_path(std::string_view path) const {
    return fmt::format("{}{}{}", root_, root_ == "/" ? "" : "/", path);
  }

  const std::string root_;
};

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::shared_ptr<Storage> local_storage(std::string root) {
  return std::make_shared<LocalStorage>(without_trailing_slashes(std::move(root)));
}

}  // namespace smd::storage
