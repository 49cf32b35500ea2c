#pragma once

// A storage whose files are written to a local directory at once and sent to another storage by a
// thread of its own, in the order of their commits. Nobody who writes waits for the network; when
// it is down, sending is tried again for as long as the process lives. Thread-safe. In a forked
// child every verb fails and nothing is sent.
//
// A directory that a process left behind, because it was killed or ended before everything was
// sent, is taken over by the next spool with the same root and destination.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/fork_guard.h"
#include "smd/base/result.h"
#include "smd/storage/delivery.h"
#include "smd/storage/interrupt.h"
#include "smd/storage/retry.h"
#include "smd/storage/storage.h"

namespace smd::storage {

struct SpoolOptions {
  std::string root;  // holds the directories of all spools: <root>/<bucket>/<one per process>
  uint64_t max_bytes = uint64_t{4} << 30;
  std::chrono::milliseconds drain_timeout{60'000};
  RetryLimits retry{.first = std::chrono::milliseconds(200),
                    .longest = std::chrono::milliseconds(30'000)};
  // For files that are not just copied. Empty: all are.
  std::shared_ptr<Delivery> delivery = nullptr;
  // Set when the spool closes; ends what the destination is doing.
  std::shared_ptr<Interrupt> interrupt = std::make_shared<Interrupt>();
};

class Spool final : public Storage {
 public:
  // Makes its directory, or takes one over and goes on sending what it holds. An error says that
  // the directory cannot be made.
  static Result<std::shared_ptr<Spool>> open(std::shared_ptr<Storage> remote, SpoolOptions options);
  // Sends nothing more; what is left stays for the next spool.
  ~Spool() override;
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Files that wait to be sent, and where.
  struct Pending {
    int64_t files = 0;
    uint64_t bytes = 0;
  };
  Pending pending() const;
  // Where the files that wait are.
  const std::string& directory() const { return directory_; }
  // Names of the files below a folder that wait to be sent.
  std::vector<std::string> waiting(std::string_view folder) const;
  // Why sending fails, once until it works again.
  std::optional<Error> take_error();

  // Waits until everything is sent, at most drain_timeout, and ends. An error says what is left,
  // where, and the command that sends it. The second call does nothing.
  Status close();

  // Those of Storage. Files that wait are seen, as if they had been sent. put() with if_absent
  // asks the destination and waits for its answer; create() and append() fail when max_bytes wait.
  std::string name() const override;
  Result<std::unique_ptr<WriteFile>> create(std::string_view path,
                                            const CreateOptions& options) override;
  // Only for files that the delivery takes, and those that belong to them. They are sent when they
  // are complete; what a killed process has appended is sent as the delivery finds it.
  Result<std::unique_ptr<AppendFile>> append(std::string_view path) override;
  Result<bool> put(std::string_view path, ByteSpan content, Put when,
                   const CreateOptions& options) override;
  Result<std::unique_ptr<ReadFile>> open(std::string_view path) override;
  Result<FileInfo> stat(std::string_view path) override;
  Result<std::vector<FileInfo>> list(std::string_view folder,
                                     std::string_view start_after) override;
  Status remove(std::string_view path) override;
  // Waits like close(), and goes on.
  Status sync() override;

 private:
  struct Shared;  // lives as long as either thread needs it
  class File;
  class GrowingFile;
  Spool(std::string directory, std::shared_ptr<Shared> shared);
  static void run(std::shared_ptr<Shared> shared);
  Status check_owner() const;
  // Waits until nothing is pending. The error that says what is left, if something is.
  Status drain();
  void stop();

  const std::string directory_;
  const std::shared_ptr<Shared> shared_;
  const ForkGuard guard_;
  bool closed_ = false;
};

}  // namespace smd::storage
