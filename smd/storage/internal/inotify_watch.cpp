#include "smd/storage/internal/inotify_watch.h"

#include <dirent.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_map>

#include "smd/storage/temporary.h"

namespace smd::storage::internal {
namespace {

// What appears under its final name: renamed, linked, or closed after writing in place.
constexpr uint32_t kEvents = IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR;

// File systems that other hosts, or a program behind the kernel's back, can change.
bool is_shared(const std::string& path) {
  struct statfs info {};
  if (::statfs(path.c_str(), &info) != 0) return true;
  constexpr std::array<uint64_t, 12> kShared = {
      0x6969,      // nfs
      0xFF534D42,  // cifs
      0xFE534D42,  // smb2
      0x517B,      // smb
      0x65735546,  // fuse: sshfs, s3fs, gcsfuse …
      0x0BD00BD0,  // lustre
      0x00C36400,  // ceph
      0x47504653,  // gpfs
      0x5346414F,  // afs
      0x01021997,  // 9p
      0x19830326,  // beegfs
      0x01161970,  // gfs2
  };
  const auto type = static_cast<uint64_t>(info.f_type) & 0xFFFFFFFFu;
  return std::find(kShared.begin(), kShared.end(), type) != kShared.end();
}

class InotifyWatch final : public Watch {
 public:
  InotifyWatch(std::string root, std::span<const std::string> growing)
      : root_(std::move(root)), growing_(growing.begin(), growing.end()) {}
  ~InotifyWatch() override {
    if (fd_ >= 0) ::close(fd_);
  }

  bool start(std::span<const std::string> folders) {
    fd_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (fd_ < 0 || !add("")) return false;
    for (const std::string& folder : folders) {
      folders_.push_back(folder);
      if (!enter(folder)) return false;
    }
    found_.clear();  // the caller lists what is there already
    return true;
  }

  Result<std::optional<std::vector<std::string>>> changes() override {
    alignas(inotify_event) std::array<char, 64 << 10> buffer;
    for (;;) {
      const ssize_t size = ::read(fd_, buffer.data(), buffer.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) break;
      for (ssize_t at = 0; at < size;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        note(*event);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
    if (std::exchange(missed_, false)) {
      found_.clear();
      return std::optional<std::vector<std::string>>();
    }
    return std::optional(std::exchange(found_, {}));
  }

  bool wait(std::chrono::steady_clock::time_point deadline) override {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    constexpr int64_t kLongest = 1 << 30;
    return ::poll(&ready, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, kLongest))) > 0;
  }

 private:
  std::string full(const std::string& folder) const {
    return folder.empty() ? root_ : root_ + "/" + folder;
  }

  uint32_t events_of(const std::string& folder) const {
    const auto holds = [&](const std::string& growing) {
      return folder == growing || folder.starts_with(growing + "/");
    };
    const bool grows = std::any_of(growing_.begin(), growing_.end(), holds);
    return grows ? kEvents | IN_MODIFY : kEvents;
  }

  // False when the limit of watches is reached; a folder that is not there is no failure.
  bool add(const std::string& folder) {
    // The run itself may be a link; below it nobody follows linked directories.
    const uint32_t follow = folder.empty() ? 0 : IN_DONT_FOLLOW;
    const int id = ::inotify_add_watch(fd_, full(folder).c_str(), events_of(folder) | follow);
    if (id < 0) return errno != ENOSPC && errno != ENOMEM && !folder.empty();
    watched_[id] = folder;
    return true;
  }

  // Watches a folder and all below it, and notes the files in them: some may be older than the
  // watch.
  bool enter(const std::string& folder) {
    constexpr size_t kDeepest = 64;
    if (static_cast<size_t>(std::count(folder.begin(), folder.end(), '/')) > kDeepest) return true;
    if (!add(folder)) return false;
    DIR* directory = ::opendir(full(folder).c_str());
    if (directory == nullptr) return true;
    bool well = true;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::string path = folder + "/" + name;
      struct stat info {};
      if (::lstat(full(path).c_str(), &info) != 0) continue;
      if (S_ISDIR(info.st_mode)) {
        well = enter(path) && well;
      } else {
        note_file(path);
      }
    }
    ::closedir(directory);
    return well;
  }

  void note(const inotify_event& event) {
    if ((event.mask & IN_Q_OVERFLOW) != 0) missed_ = true;
    if ((event.mask & IN_IGNORED) != 0) watched_.erase(event.wd);
    const auto folder = watched_.find(event.wd);
    if (folder == watched_.end() || event.len == 0) return;
    const std::string path =
        folder->second.empty() ? event.name : folder->second + "/" + event.name;
    if ((event.mask & IN_ISDIR) == 0) return note_file(path);
    const bool wanted = !folder->second.empty() ||
                        std::find(folders_.begin(), folders_.end(), path) != folders_.end();
    if (wanted && !enter(path)) missed_ = true;
  }

  void note_file(const std::string& path) {
    if (!is_temporary(path)) found_.push_back(path);
  }

  const std::string root_;
  const std::vector<std::string> growing_;
  std::vector<std::string> folders_;
  std::unordered_map<int, std::string> watched_;  // watch → folder
  std::vector<std::string> found_;
  int fd_ = -1;
  bool missed_ = false;
};

}  // namespace

std::unique_ptr<Watch> inotify_watch(const std::string& root, std::span<const std::string> folders,
                                     std::span<const std::string> growing) {
  if (is_shared(root)) return nullptr;
  auto watch = std::make_unique<InotifyWatch>(root, growing);
  if (!watch->start(folders)) return nullptr;
  return watch;
}

}  // namespace smd::storage::internal
