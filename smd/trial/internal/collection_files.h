#pragma once

// The collections files of a run: one per worker, read again when they change.
// One thread at a time.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "smd/base/log.h"
#include "smd/base/result.h"
#include "smd/storage/storage.h"
#include "smd/trial/staging.h"

namespace smd::internal {

bool is_collections_file(std::string_view path);

class CollectionFiles final {
 public:
  CollectionFiles(std::shared_ptr<storage::Storage> storage, std::shared_ptr<Log> log)
      : storage_(std::move(storage)), log_(std::move(log)) {}

  // Gives the staging the collections of all workers together when one of them is new or changed.
  Status refresh(Staging& staging);
  // The same for what somebody else has read: add() as often as needed, then publish().
  void add(const std::string& path, std::string text);
  Status publish(Staging& staging);

 private:
  struct Known {
    int64_t size_bytes = 0;
    int64_t mtime_ns = 0;
    std::string text;
  };

  bool is_usable(const std::string& path);

  const std::shared_ptr<storage::Storage> storage_;
  const std::shared_ptr<Log> log_;
  std::map<std::string, Known> known_;  // by path
  std::set<std::string> unnamed_;       // files that were told of
  bool changed_ = false;                // since publish() succeeded
};

}  // namespace smd::internal
