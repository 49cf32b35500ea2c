#pragma once

// What a run has beside its steps, in every layout: the claim, the collections, the marks of
// workers that have ended and the end marker. Called by the writer thread only.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/types/durability.h"
#include "smd/writer/claim.h"
#include "smd/writer/sink.h"

namespace smd {

struct RunFilesOptions {
  std::shared_ptr<storage::Storage> storage;
  std::string worker;  // as it stands in file names
  // One worker writes here: refuse when another process does.
  bool exclusive = false;
  Durability durable = Durability::off;
};

class RunFiles final {
 public:
  explicit RunFiles(RunFilesOptions options)
      : options_(std::move(options)), claim_(options_.storage) {}

  // Before the first file: may this process write here at all? Later calls cost nothing.
  Status admit();
  // See Sink::put. A failure is kept for another try: no reader opens a run without these files.
  Status put(std::string_view path, std::string_view content);
  // Another try for what could not be published; its failures were reported before.
  void publish_missing();
  // See Sink::end_job. True: the job has ended for readers.
  Result<bool> end_job(const JobEnd& end);
  Status close();

  Status publish(std::string_view path, std::string_view content);
  storage::CreateOptions create_options() const {
    return {.durable = options_.durable == Durability::step};
  }

 private:
  std::string ended_file_name() const;
  // True if every worker has ended, or if it is time to stop waiting for them.
  Result<bool> all_ended(const JobEnd& end);
  Status publish_beside(const std::string& path);

  const RunFilesOptions options_;
  Claim claim_;
  bool admitted_ = false;
  std::map<std::string, std::string> beside_;  // path → content
  std::set<std::string> missing_;              // those that could not be published yet
};

}  // namespace smd
