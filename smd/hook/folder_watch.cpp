#include "smd/hook/folder_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace smd {
namespace {

// A file counts when it is complete, not when it begins.
constexpr uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_CREATE | IN_ONLYDIR;

}  // namespace

FolderWatch::FolderWatch(std::string folder)
    : folder_(std::move(folder)), file_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
  enter();
}

FolderWatch::~FolderWatch() {
  if (file_ >= 0) ::close(file_);
}

void FolderWatch::enter() {
  namespace fs = std::filesystem;
  if (file_ < 0) return;
  if (::inotify_add_watch(file_, folder_.c_str(), kEvents) < 0) return;
  std::error_code error;
  auto it = fs::recursive_directory_iterator(folder_, fs::directory_options::skip_permission_denied,
                                             error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) {
      (void)::inotify_add_watch(file_, it->path().c_str(), kEvents);
    }
  }
}

bool FolderWatch::changed(bool (*ignored)(std::string_view name)) {
  if (file_ < 0) return false;
  bool found = false;
  bool new_folder = false;
  alignas(inotify_event) std::array<char, 4096> buffer;
  for (;;) {
    const ssize_t bytes = ::read(file_, buffer.data(), buffer.size());
    if (bytes <= 0) break;
    for (size_t at = 0; at + sizeof(inotify_event) <= static_cast<size_t>(bytes);) {
      inotify_event event;
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* name = event.len > 0 ? buffer.data() + at + sizeof event : "";
      at += sizeof event + event.len;
      const bool is_folder = (event.mask & IN_ISDIR) != 0;
      new_folder = new_folder || (is_folder && (event.mask & (IN_CREATE | IN_MOVED_TO)) != 0);
      const bool begins = (event.mask & IN_CREATE) != 0 && !is_folder;
      const bool lost_some = (event.mask & IN_Q_OVERFLOW) != 0;
      found = found || lost_some || (event.len > 0 && !begins && !ignored(name));
    }
  }
  if (new_folder) enter();
  return found;
}

}  // namespace smd
