#pragma once

// Files of one run, wherever they live. Paths are relative to the run's root, with '/' between
// parts. Every verb but append() can be served by a POSIX directory and by an object store: files
// appear whole under their final name, nothing is renamed or changed in place. Implementations are
// thread-safe; the files they hand out are used by one thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/bytes.h"
#include "smd/base/result.h"
#include "smd/storage/watch.h"

namespace smd::storage {

struct FileInfo {
  std::string path;
  int64_t size_bytes = 0;
  int64_t mtime_ns = 0;
};

// A file being written. Invisible until commit(); destroyed without commit, it leaves nothing
// behind.
class WriteFile {
 public:
  virtual ~WriteFile() = default;
  // Appends the pieces in order.
  virtual Status append(std::span<const ByteSpan> pieces) = 0;
  // A hint that so many bytes will follow: reserving their space at once makes writing them faster.
  virtual void expect(uint64_t bytes) { (void)bytes; }
  // Publishes the file under its final name, replacing an older one. Once only.
  virtual Status commit() = 0;
};

// A file that grows under the eyes of its readers. Its writer is the only one.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // Appends the pieces in order. After a failure the file has its old size, or a tail that the next
  // append replaces.
  virtual Status append(std::span<const ByteSpan> pieces) = 0;
  // Takes back everything from `size_bytes` on; the next piece goes there.
  virtual void truncate(uint64_t size_bytes) = 0;
  // What was appended is on stable storage when this returns, under its name.
  virtual Status sync() = 0;
  // Bytes appended and not taken back.
  virtual uint64_t size() const = 0;
  // The file is complete: nothing is appended any more. Places whose files have to appear whole
  // elsewhere send it now.
  virtual Status finish() { return {}; }
};

class ReadFile {
 public:
  virtual ~ReadFile() = default;
  virtual Result<uint64_t> size() = 0;
  // Fills `out` from `offset`; fewer bytes than asked for only at the end of the file.
  virtual Result<size_t> read_at(uint64_t offset, std::span<std::byte> out) = 0;
};

enum class Put { always, if_absent };

// A file and the text that names this state of it: every change gives it another one.
struct VersionedFile {
  Bytes content;
  std::string version;
};

struct CreateOptions {
  // The file is on stable storage before commit() returns.
  bool durable = false;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // What people call this place: a path or a URI.
  virtual std::string name() const = 0;

  virtual Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                                    const CreateOptions& options) = 0;
  // A new, empty file, visible at once; it must not exist. unsupported: files here appear whole.
  virtual Result<std::unique_ptr<AppendFile>> append(std::string_view path);
  // A small file in one go. With if_absent, false means that it exists already.
  virtual Result<bool> put(std::string_view path, ByteSpan content, Put when,
                           const CreateOptions& options) = 0;
  // not_found if there is no such file; an object store may say so only when the file is first
  // used.
  virtual Result<std::unique_ptr<ReadFile>> open(std::string_view path) = 0;
  // not_found if there is no such file.
  virtual Result<FileInfo> stat(std::string_view path) = 0;
  // All files below `folder` ("" = all), sorted by path, that come after `start_after`.
  // A folder that does not exist has no files.
  virtual Result<std::vector<FileInfo>> list(std::string_view folder,
                                             std::string_view start_after) = 0;
  // The whole file, of at most `most_bytes`, and its version. nullopt: it still has the version
  // `known`, if one is given. not_found if there is no such file. unsupported, here and below: this
  // place knows no versions.
  virtual Result<std::optional<VersionedFile>> read_version(std::string_view path,
                                                            std::string_view known,
                                                            uint64_t most_bytes);
  // Replaces the file if it still has this version; an empty one says that there must be no file.
  // The new version; nullopt: somebody else was faster, and nothing has changed.
  virtual Result<std::optional<std::string>> replace(std::string_view path, ByteSpan content,
                                                     std::string_view version);
  // Removing what is not there is a success.
  virtual Status remove(std::string_view path) = 0;
  // Everything committed so far is on stable storage when this returns.
  virtual Status sync() = 0;
  // Reports files that appear directly in the root or anywhere below these folders from now on, and
  // those that grow, if they lie below one of `growing`. nullptr: this place cannot tell.
  virtual std::unique_ptr<Watch> watch(std::span<const std::string> folders,
                                       std::span<const std::string> growing) {
    (void)folders;
    (void)growing;
    return nullptr;
  }
  std::unique_ptr<Watch> watch(std::span<const std::string> folders) { return watch(folders, {}); }
  // Whether each read is a request over a network: then few large reads are better than many.
  virtual bool is_remote() const { return false; }
};

// The whole file; an error if it is larger than `most_bytes` or than the memory.
Result<Bytes> read_all(Storage& storage, std::string_view path, uint64_t most_bytes = UINT64_MAX);
// JSON files of a run are smaller than this.
inline constexpr uint64_t kMostJsonBytes = uint64_t{256} << 20;

// Error if a path could leave the root: absolute, empty, or with "." or ".." parts.
Status check_path(std::string_view path);

// A local directory (created when the first file is) or s3://bucket/prefix.
Result<std::shared_ptr<Storage>> open_storage(std::string_view uri);
// The same, with what an object store needs; see smd/storage/s3/options.h.
struct S3Options;
Result<std::shared_ptr<Storage>> open_storage(std::string_view uri, const S3Options& options);
// Whether the text names a place in an object store, rightly or wrongly spelled.
bool is_object_store(std::string_view uri);

struct LocalOptions {
  // list() also gives what a reader of runs must not see: temporary files (*.tmp) and links that
  // cannot be followed. Those have size 0 here, and open() says what is wrong with them.
  bool everything = false;
};

// A directory that somebody else may have tampered with: reading and writing never leave it.
// Links are followed as long as they lead to a regular file inside of `root`. Linked directories
// are not entered by list(), so a cycle of links is harmless. What is not a regular file, such as a
// pipe, is not opened.
std::shared_ptr<Storage> local_storage(std::string root, const LocalOptions& options = {});
// In this process only, for tests.
std::shared_ptr<Storage> memory_storage();

}  // namespace smd::storage
