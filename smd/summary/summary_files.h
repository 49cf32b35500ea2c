#pragma once

// Files that TensorBoard shows: one directory per mode, one growing file in each, visible from its
// first record on. Where files cannot grow, as in object stores, each is written whole and followed
// by the next. Nothing is written for what TensorBoard cannot show. One thread at a time.

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/format/summary.h"
#include "smd/reduce/histogram.h"
#include "smd/storage/storage.h"
#include "smd/types/step.h"

namespace smd {

struct SummaryFilesOptions {
  std::shared_ptr<storage::Storage> storage;  // of the directory that TensorBoard is given
  std::string writer;                         // tells processes apart; part of file names
  bool grows = true;                          // false: files are written whole
  // In names of files instead of the step of their first record.
  std::optional<Step> step = {};
  // Where files cannot grow, one is written when so much time has passed or it has this size.
  std::chrono::milliseconds roll_interval{30'000};
  size_t roll_bytes = size_t{8} << 20;
  std::shared_ptr<const Clock> clock = system_clock();
};

class SummaryFiles final {
 public:
  explicit SummaryFiles(SummaryFilesOptions options)
      : options_(std::move(options)), grows_(options_.grows) {}

  // `name` becomes a tag. Nothing reaches a file before flush().
  void scalar(const StepInfo& step, std::string_view name, double value, double wall_secs);
  // A histogram without buckets is left out.
  void histogram(const StepInfo& step, std::string_view name,
                 const format::HistogramView& histogram, double wall_secs);
  void text(const StepInfo& step, std::string_view name, std::string_view markdown,
            double wall_secs);

  // What was given so far is in files that readers see, or waits for its file to be written whole.
  // After a failure what was given is kept for the next call, up to a limit.
  Status flush();
  // Everything is in files.
  Status close();

 private:
  struct File {
    Step first_step = -1;  // of what is not in a file yet
    std::string buffer;
    std::unique_ptr<storage::AppendFile> growing;
    std::chrono::steady_clock::time_point since{};  // the first of the buffer
  };

  File& begin(const StepInfo& step);
  Result<std::string> free_path(Mode mode, Step step) const;
  Status flush(Mode mode, File& file, bool everything);

  const SummaryFilesOptions options_;
  std::array<File, kModes.size()> files_;
  bool grows_;  // false: files are written whole
};

// Of the histogram, which must outlive the view.
format::HistogramView view_of(const Histogram& histogram);

// Tells this process from others, in names of files: its number and its host.
std::string summary_writer_name();

}  // namespace smd
