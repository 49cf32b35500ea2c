#pragma once

// The counters of a job that may be interrupted, kept beside its checkpoints in metadata.json, so
// that the next process goes on where the last checkpoint left off. A new entry is written whenever
// the set of checkpoint files has changed. One thread at a time.

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "smd/base/result.h"
#include "smd/hook/folder_watch.h"
#include "smd/types/step.h"

namespace smd {

struct ResumeState {
  int64_t training_run = 0;
  std::optional<Step> latest_step_saved;
  Step latest_step_seen = -1;
  std::map<Mode, Step> mode_steps;

  bool operator==(const ResumeState&) const = default;
};

class ResumeFile final {
 public:
  // `folder` holds the checkpoints. Remembers which files are there now.
  explicit ResumeFile(std::string folder);

  // The entry that went furthest among those that make sense; nullopt: there is none. `problems`
  // gets full sentences about what does not.
  std::optional<ResumeState> load(std::vector<std::string>& problems) const;
  // The same; corrupt: the file makes no sense.
  Result<std::optional<ResumeState>> load() const;

  // True at the first call after a checkpoint file was written, renamed or removed, wherever the
  // kernel tells of that. Costs one system call.
  bool stirred();

  // True if the checkpoint files have changed since the last look; this is the last look now.
  bool has_new_checkpoint();
  // Appends `state`.
  Status append(const ResumeState& state) const;
  // Appends `state` if there is a new checkpoint, and says whether there was one. After an error
  // the checkpoint still counts as new.
  Result<bool> update(const ResumeState& state);

 private:
  using Entry = std::tuple<std::string, int64_t, int64_t>;  // path, size, mtime_ns
  std::vector<Entry> look() const;

  const std::string folder_;
  std::vector<Entry> seen_;
  FolderWatch watch_;
};

// The folder named by a checkpoint configuration file; nullopt: no such file or key, which means
// that the job is not resumable.
Result<std::optional<std::string>> checkpoint_folder(const std::string& config_path);

}  // namespace smd
