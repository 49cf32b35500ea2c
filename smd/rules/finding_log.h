#pragma once

// Hits and findings beside their run: one file of JSON lines per writer in findings/, as
// docs/format/findings.md describes it. Where files can grow it grows under the eyes of its
// readers, elsewhere the whole file appears anew; it is complete up to its last newline at any
// time. One thread at a time.

#include <memory>
#include <string>
#include <string_view>

#include "smd/base/clock.h"
#include "smd/base/result.h"
#include "smd/rules/diagnosis.h"
#include "smd/rules/runner.h"
#include "smd/storage/storage.h"

namespace smd::rules {

// The line of a hit.
Json hit_record(const Evaluation& evaluation, const Hit& hit);

struct FindingLogOptions {
  std::string writer;  // what kind of program: "watch"
  std::shared_ptr<const Clock> clock = system_clock();
};

class FindingLog final {
 public:
  FindingLog(std::shared_ptr<storage::Storage> storage, FindingLogOptions options);
  ~FindingLog();

  // The file appears with the first hit. After an error nothing of the line is there.
  Status add(const Evaluation& evaluation, const Hit& hit);
  // All findings in their order, and that this is all. Once.
  Status finish(const Diagnosis& diagnosis);

  // Relative to the run.
  const std::string& path() const { return path_; }

 private:
  Status append(const std::string& lines);

  const std::shared_ptr<storage::Storage> storage_;
  const FindingLogOptions options_;
  const double began_secs_;
  const std::string path_;
  std::unique_ptr<storage::AppendFile> file_;
  std::string content_;  // of a file that cannot grow
  bool has_begun_ = false;
  bool can_grow_ = true;
};

// A whole diagnosis as the file findings/diagnose.jsonl, in place of an older one.
Status save_diagnosis(storage::Storage& storage, const Diagnosis& diagnosis, const Clock& clock);

}  // namespace smd::rules
