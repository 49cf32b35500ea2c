#include "smd/storage/spool_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include "smd/storage/temporary.h"

namespace smd::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDestination = "destination";
constexpr size_t kLongestName = 60;

// {bucket, the rest in letters that every file system takes}
std::pair<std::string, std::string> names_of(std::string_view destination) {
  const size_t scheme = destination.find("://");
  if (scheme != std::string_view::npos) destination.remove_prefix(scheme + 3);
  const size_t slash = std::min(destination.find('/'), destination.size());
  std::string readable;
  for (const char c : destination.substr(std::min(slash + 1, destination.size()))) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_';
    readable += plain ? c : '-';
  }
  if (readable.size() > kLongestName) readable.erase(0, readable.size() - kLongestName);
  if (readable.empty() || readable.front() == '.') readable.insert(0, "run");
  return {std::string(destination.substr(0, slash)), readable};
}

std::string text_of(int file) {
  std::string text(4096, '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace

SpoolDirectory::SpoolDirectory(SpoolDirectory&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

SpoolDirectory::~SpoolDirectory() { release(false); }

std::string SpoolDirectory::files() const { return path_ + "/files"; }

std::string SpoolDirectory::removed() const { return path_ + "/removed"; }

void SpoolDirectory::release(bool remove) {
  if (lock_ < 0) return;
  if (remove) {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ::close(std::exchange(lock_, -1));
}

SpoolDirectory SpoolDirectory::try_lock(const std::string& path, std::string_view destination) {
  SpoolDirectory found(
      path, ::open(fmt::format("{}/{}", path, kDestination).c_str(), O_RDWR | O_CLOEXEC));
  struct stat info {};
  const bool ours = found.lock_ >= 0 && ::flock(found.lock_, LOCK_EX | LOCK_NB) == 0 &&
                    text_of(found.lock_) == destination && ::fstat(found.lock_, &info) == 0 &&
                    info.st_nlink > 0;
  if (!ours) found.path_.clear();
  return found;
}

Result<std::optional<SpoolDirectory>> SpoolDirectory::lock_files(const std::string& folder) {
  std::error_code error;
  const fs::path files = fs::weakly_canonical(folder, error);
  std::optional<SpoolDirectory> none;
  if (error || files.filename() != "files") return none;
  const std::string path = files.parent_path().string();
  SpoolDirectory found(
      path, ::open(fmt::format("{}/{}", path, kDestination).c_str(), O_RDWR | O_CLOEXEC));
  if (found.lock_ < 0) return none;
  if (::flock(found.lock_, LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::closed,
                 fmt::format("A process that is still running sends these files itself; wait until "
                             "it has ended: {}",
                             folder)};
  }
  return std::optional(std::move(found));
}

void SpoolDirectory::take_files_of(SpoolDirectory& other) const {
  std::error_code error;
  std::vector<fs::path> moved;
  for (fs::recursive_directory_iterator it(other.path_, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_regular_file(error) && it->path().filename() != kDestination)
      moved.push_back(it->path());
  }
  bool all = !error;
  for (const fs::path& from : moved) {
    const fs::path to = fs::path(path_) / from.lexically_relative(other.path_);
    fs::create_directories(to.parent_path(), error);
    fs::rename(from, to, error);
    all = all && !error;
  }
  other.release(all);
}

Result<SpoolDirectory> SpoolDirectory::claim(const std::string& root,
                                             const std::string& destination) {
  const auto [bucket, readable] = names_of(destination);
  const std::string parent = fmt::format("{}/{}", root, bucket);
  const auto failed = [&](const std::string& why) {
    return Error{ErrorCode::io,
                 fmt::format("The directory for files that wait to be sent cannot be made ({}); "
                             "set SMDEBUG_SPOOL_DIR to one that can: {}",
                             why, parent)};
  };
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return failed(error.message());

  std::vector<SpoolDirectory> left;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    SpoolDirectory one = try_lock(it->path().string(), destination);
    if (!one.path_.empty()) left.push_back(std::move(one));
  }
  for (SpoolDirectory& one : left) {
    // What was being written when its process was killed is of no use.
    std::vector<fs::path> halves;
    for (fs::recursive_directory_iterator it(one.files(), error), end; !error && it != end;
         it.increment(error)) {
      if (is_temporary(it->path().native())) halves.push_back(it->path());
    }
    for (const fs::path& half : halves) fs::remove(half, error);
  }
  if (!left.empty()) {
    for (size_t i = 1; i < left.size(); ++i) left[0].take_files_of(left[i]);
    return std::move(left[0]);
  }

  const std::string path =
      fmt::format("{}/{}-{}-{:08x}", parent, readable, ::getpid(), std::random_device{}());
  fs::create_directories(path + "/files", error);
  if (error) return failed(error.message());
  SpoolDirectory made(path, ::open(fmt::format("{}/{}", path, kDestination).c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  const std::string text = destination + "\n";
  // Locked before it says anything: nobody takes a directory over that names no destination.
  if (made.lock_ < 0 || ::flock(made.lock_, LOCK_EX | LOCK_NB) != 0 ||
      ::write(made.lock_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return failed(std::strerror(errno));
  }
  return made;
}

}  // namespace smd::storage
