#pragma once

// The directory of one spool: <root>/<bucket>/<readable and unique>/ with `destination`, a file
// that says where its files belong and that its owner locks, `files/`, and `removed/` with an empty
// file for each one that is to be removed from there. One thread at a time.
// The lock ends with the process, so what a killed process left behind can be told from what a
// living one uses.

#include <optional>
#include <string>
#include <string_view>

#include "smd/base/result.h"

namespace smd::storage {

class SpoolDirectory final {
 public:
  // A directory for this destination that nobody uses, with all files that others left behind for
  // it; else a new one.
  static Result<SpoolDirectory> claim(const std::string& root, const std::string& destination);
  // The one whose files lie in this folder; nullopt: the folder is something else. closed: a living
  // process uses it.
  static Result<std::optional<SpoolDirectory>> lock_files(const std::string& folder);
  // Gives the lock up; the files stay.
  ~SpoolDirectory();
  SpoolDirectory(SpoolDirectory&& other) noexcept;
  SpoolDirectory& operator=(SpoolDirectory&&) = delete;

  // Where the files are.
  std::string files() const;
  // Where the names of those to be removed are.
  std::string removed() const;
  // Gives the lock up; removes the directory if it is no longer needed.
  void release(bool remove);

 private:
  SpoolDirectory(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  // An unused one for the destination; an empty path: this one is not.
  static SpoolDirectory try_lock(const std::string& path, std::string_view destination);
  void take_files_of(SpoolDirectory& other) const;

  std::string path_;
  int lock_ = -1;  // a descriptor of the destination file
};

}  // namespace smd::storage
