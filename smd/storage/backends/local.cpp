#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/mman.h>
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
#include "smd/storage/mappable_file.h"
#include "smd/storage/storage.h"
#include "smd/storage/temporary.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;

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

constexpr mode_t kFileMode = 0666;

// Opens for writing, but neither through a link nor into something that is not a file.
Result<Descriptor> open_new(const Descriptor& folder, const std::string& name,
                            const std::string& full, int existing = O_TRUNC) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  Descriptor file(::openat(folder.get(), name.c_str(), kFlags | existing, kFileMode));
  if (file.get() < 0 && errno == ELOOP) {
    return Error{ErrorCode::io,
                 fmt::format("A link stands where a file is to be written: {}", full)};
  }
  if (file.get() < 0) return io_error("Creating a file", full, errno);
  return file;
}

Error leads_out(std::string_view full) {
  return {ErrorCode::io,
          fmt::format("A link leads out of its directory and is not followed: {}", full)};
}

Error no_file(std::string_view full) {
  return {ErrorCode::io, fmt::format("This is not a file: {}", full)};
}

// "" for what lies directly in the root.
std::string_view folder_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string last_part(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
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
  LocalWriteFile(Descriptor folder, Descriptor file, std::string path, bool durable)
      : folder_(std::move(folder)),
        file_(std::move(file)),
        path_(std::move(path)),
        name_(last_part(path_)),
        durable_(durable) {}
  ~LocalWriteFile() override {
    if (!committed_) ::unlinkat(folder_.get(), temporary(name_).c_str(), 0);
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
    if (::renameat(folder_.get(), temporary(name_).c_str(), folder_.get(), name_.c_str()) != 0) {
      return io_error("Publishing a file", path_, errno);
    }
    committed_ = true;
    return durable_ ? sync_directory_of(path_) : Status();
  }

  static std::string temporary(const std::string& path) { return path + std::string(kTemporary); }

 private:
  Descriptor folder_;
  Descriptor file_;
  const std::string path_;
  const std::string name_;
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

class LocalReadFile final : public ReadFile, public MappableFile {
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

  std::shared_ptr<std::byte> map(uint64_t offset, uint64_t length) override {
    static const auto kPage = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    const uint64_t before = offset % kPage;
    const size_t size = before + length;
    void* const memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file_.get(),
                                static_cast<off_t>(offset - before));
    if (memory == MAP_FAILED) return nullptr;
    const std::shared_ptr<void> owner(memory, [size](void* p) { ::munmap(p, size); });
    return {owner, static_cast<std::byte*>(memory) + before};
  }

 private:
  Descriptor file_;
  const std::string path_;
};

class LocalStorage final : public Storage {
 public:
  LocalStorage(std::string root, const LocalOptions& options)
      : root_(std::move(root)), options_(options) {}

  std::string name() const override { return root_; }

  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    SMD_TRY(Descriptor folder, make_folder(folder_of(path)));
    SMD_TRY(Descriptor file, open_new(folder, LocalWriteFile::temporary(last_part(path)), full));
    return std::unique_ptr<WriteFile>(std::make_unique<LocalWriteFile>(
        std::move(folder), std::move(file), std::move(full), options.durable));
  }

  Result<std::unique_ptr<AppendFile>> append(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    SMD_TRY(const Descriptor folder, make_folder(folder_of(path)));
    SMD_TRY(Descriptor file, open_new(folder, last_part(path), full, O_EXCL));
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
    const std::string name = last_part(path);
    const std::string temporary = fmt::format("{}.{}{}", name, ::getpid(), kTemporary);
    SMD_TRY(const Descriptor folder, make_folder(folder_of(path)));
    SMD_TRY(const Descriptor file, open_new(folder, temporary, full));
    Status written = write_all(file.get(), {{content}}, full);
    if (written.ok() && options.durable && ::fsync(file.get()) != 0) {
      written = io_error("Syncing", full, errno);
    }
    const bool linked = written.ok() && ::linkat(folder.get(), temporary.c_str(), folder.get(),
                                                 name.c_str(), 0) == 0;
    const int reason = errno;
    ::unlinkat(folder.get(), temporary.c_str(), 0);
    SMD_RETURN_IF_ERROR(std::move(written));
    if (linked) return true;
    if (reason == EEXIST) return false;
    if (reason == EPERM || reason == ENOTSUP || reason == EMLINK)
      return put_exclusive(folder, name, content, full);
    return io_error("Publishing a file", full, reason);
  }

  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    std::string full = full_path(path);
    // Without waiting for somebody at the other end of a pipe.
    SMD_TRY(Descriptor file, open_beneath(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return io_error("Opening", full, errno);
    if (!S_ISREG(info.st_mode)) return no_file(full);
    return std::unique_ptr<ReadFile>(
        std::make_unique<LocalReadFile>(std::move(file), std::move(full)));
  }

  Result<FileInfo> stat(std::string_view path) override {
    SMD_RETURN_IF_ERROR(check_path(path));
    SMD_TRY(const Descriptor file, open_beneath(path, O_PATH));
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return io_error("Looking at", full_path(path), errno);
    if (!S_ISREG(info.st_mode)) return no_file(full_path(path));
    return info_of(std::string(path), info);
  }

  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override {
    if (!folder.empty()) SMD_RETURN_IF_ERROR(check_path(folder));
    const std::string start = folder.empty() ? root_ : full_path(folder);
    std::vector<FileInfo> files;
    const auto found = open_beneath(folder, O_PATH | O_DIRECTORY);
    if (!found.ok() && found.error().code == ErrorCode::not_found) return files;
    if (!found.ok()) return found.error();
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
      if (below <= start_after || (!options_.everything && is_temporary(full))) continue;
      if (auto info = listed(below, full)) files.push_back(std::move(*info));
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
    const auto folder = open_beneath(folder_of(path), O_PATH | O_DIRECTORY);
    if (!folder.ok() && folder.error().code == ErrorCode::not_found) return {};
    if (!folder.ok()) return folder.error();
    if (::unlinkat(folder->get(), last_part(path).c_str(), 0) != 0 && errno != ENOENT) {
      return io_error("Removing", full_path(path), errno);
    }
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

  // Regular files, and links that lead to one inside of the root; nullopt for everything else.
  std::optional<FileInfo> listed(std::string_view path, const std::string& full) {
    struct stat info {};
    if (::lstat(full.c_str(), &info) != 0) return std::nullopt;
    if (S_ISREG(info.st_mode)) return info_of(std::string(path), info);
    if (!S_ISLNK(info.st_mode)) return std::nullopt;
    if (auto target = stat(path); target.ok()) return std::move(*target);
    return options_.everything ? std::optional(FileInfo{.path = std::string(path)}) : std::nullopt;
  }

  // For file systems without hard links: exclusive, though not atomic in its content.
  static Result<bool> put_exclusive(const Descriptor& folder, const std::string& name,
                                    ByteSpan content, const std::string& full) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    const Descriptor file(::openat(folder.get(), name.c_str(), kFlags, kFileMode));
    if (file.get() < 0) {
      if (errno == EEXIST) return false;
      return io_error("Creating a file", full, errno);
    }
    SMD_RETURN_IF_ERROR(write_all(file.get(), {{content}}, full));
    return true;
  }

  // Opens the folder, "" for the root; makes it when it is missing, but not through a link.
  Result<Descriptor> make_folder(std::string_view path) const {
    auto folder = open_beneath(path, O_PATH | O_DIRECTORY);
    if (folder.ok() || folder.error().code != ErrorCode::not_found) return folder;
    std::string_view above = path;
    while (!above.empty()) {
      above = folder_of(above);
      const auto nearest = open_beneath(above, O_PATH | O_DIRECTORY);
      if (nearest.ok()) break;
      if (nearest.error().code != ErrorCode::not_found) return nearest.error();
    }
    const std::string full = path.empty() ? root_ : full_path(path);
    std::error_code error;
    fs::create_directories(full, error);
    if (error) return io_error("Creating a directory", full, error.value());
    return open_beneath(path, O_PATH | O_DIRECTORY);
  }

  // The one way to what lies below the root, "" for the root itself. Links that lead out of it are
  // refused: names and links come from files that somebody else wrote.
  Result<Descriptor> open_beneath(std::string_view path, int flags) const {
    const std::string full = path.empty() ? root_ : full_path(path);
    Descriptor root(::open(root_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (root.get() < 0) return io_error("Opening", full, errno);
    if (path.empty()) return root;
    open_how how{};
    how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
    how.resolve = RESOLVE_BENEATH;
    const std::string name(path);
    const long fd = ::syscall(SYS_openat2, root.get(), name.c_str(), &how, sizeof how);
    if (fd >= 0) return Descriptor(static_cast<int>(fd));
    if (errno == EXDEV) return leads_out(full);
    if (errno == ENXIO) return no_file(full);  // a socket
    if (errno != ENOSYS && errno != EPERM) return io_error("Opening", full, errno);
    // Kernels before 5.6, and containers that forbid the call.
    std::error_code error;
    const fs::path real = fs::canonical(full, error);
    if (error) return io_error("Opening", full, error.value());
    const fs::path top = fs::canonical(root_, error);
    if (error ||
        std::mismatch(top.begin(), top.end(), real.begin(), real.end()).first != top.end()) {
      return leads_out(full);
    }
    Descriptor file(::open(full.c_str(), flags | O_CLOEXEC));
    if (file.get() < 0) return errno == ENXIO ? no_file(full) : io_error("Opening", full, errno);
    return file;
  }

  std::string full_path(std::string_view path) const {
    return fmt::format("{}{}{}", root_, root_ == "/" ? "" : "/", path);
  }

  const std::string root_;
  const LocalOptions options_;
};

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::shared_ptr<Storage> local_storage(std::string root, const LocalOptions& options) {
  return std::make_shared<LocalStorage>(without_trailing_slashes(std::move(root)), options);
}

}  // namespace smd::storage
