#pragma once

// Tells for the price of one system call whether files below a folder were written, renamed or
// removed. One thread at a time.

#include <string>
#include <string_view>

namespace smd {

class FolderWatch final {
 public:
  // A folder that does not exist yet is watched from the first call of enter() on that finds it.
  explicit FolderWatch(std::string folder);
  ~FolderWatch();
  FolderWatch(const FolderWatch&) = delete;
  FolderWatch& operator=(const FolderWatch&) = delete;

  // True: something has changed since the last call. False says nothing where the kernel does not
  // see every change, as on file systems that several hosts share.
  // A name for which `ignored` is true does not count.
  bool changed(bool (*ignored)(std::string_view name));

  // Watches folders that have come into being.
  void enter();

 private:
  const std::string folder_;
  int file_ = -1;
};

}  // namespace smd
