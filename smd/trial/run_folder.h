#pragma once

// Local directories that hold runs: how one is recognised by the names in it, and where they lie
// below a directory. Functions that only look.

#include <filesystem>
#include <string>
#include <vector>

namespace smd {

// Whether the directory holds what a run consists of, or what an upload left behind of one.
bool is_run_folder(const std::filesystem::path& path);

struct RunSearch {
  size_t most_runs = 5;
  int most_depth = 3;
  int most_entries = 5000;  // to look at, in one directory and in all
};

// Runs below a directory, the nearest first, by name within one; links are not followed, and runs
// are not searched for others.
std::vector<std::string> find_runs_below(const std::filesystem::path& root,
                                         const RunSearch& search = {});

// What lies in the directory, sorted, at most so many; empty if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder, int most);

}  // namespace smd
