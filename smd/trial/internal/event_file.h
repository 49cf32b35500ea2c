#pragma once

// One event file, read record by record without trusting it. Never takes more memory than the file
// has bytes, plus one window. One thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "smd/base/result.h"
#include "smd/format/event.h"
#include "smd/format/index.h"
#include "smd/storage/storage.h"
#include "smd/trial/verify.h"

namespace smd::internal {

class EventFile final {
 public:
  static Result<EventFile> open(storage::Storage& storage, std::string_view path);

  uint64_t size_bytes() const { return size_; }
  const std::string& path() const { return path_; }

  struct Check {
    std::optional<RunProblem> problem;
    bool had_checksum = false;
  };
  // Holds the record against what an index says about it; `deep` decodes its tensor, too.
  Check check(const format::TensorLocation& location, bool deep);

  // CRC-32C of bytes that must lie in the file.
  Result<uint32_t> checksum(uint64_t offset, uint64_t count);

  struct Scan {
    std::vector<format::TensorLocation> tensors;
    std::optional<StepInfo> step;  // of the first tensor
    uint64_t left_out = 0;         // whole records that hold no readable tensor
    // Why the scan ended early, and where; nothing: it saw the whole file.
    std::optional<Error> stopped_by;
    uint64_t end = 0;

    bool is_complete() const { return !stopped_by && left_out == 0; }
  };
  // Finds the records one after the other from the start of the file.
  Scan scan();

 private:
  EventFile(std::unique_ptr<storage::ReadFile> file, std::string path, uint64_t size)
      : file_(std::move(file)), path_(std::move(path)), size_(size) {}

  // `count` bytes, which must lie in the file; valid until the next call.
  Result<ByteSpan> bytes(uint64_t offset, uint64_t count);
  // The payload's length from a header whose checksum is right, and that fits into the file.
  Result<uint64_t> payload_bytes(uint64_t offset);
  // The name in the record, `expected` or another one; reads the whole record only if its beginning
  // does not show the expected name.
  Result<std::string> name_at(uint64_t offset, uint64_t payload, std::string_view expected);

  std::unique_ptr<storage::ReadFile> file_;
  std::string path_;
  uint64_t size_ = 0;
  Bytes window_;
  uint64_t window_offset_ = 0;
};

}  // namespace smd::internal
