#pragma once

// Bodies of answers that were made lately, plain and compressed: of many who ask the same, one
// makes it and the others wait for it. Of each question the last version is kept. Bounded by bytes.
// Thread-safe.

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "smd/base/result.h"

namespace smd::server {

struct Body {
  std::string plain;
  std::string compressed;  // empty: not worth it
};

class BodyCache final {
 public:
  explicit BodyCache(uint64_t most_bytes = uint64_t{64} << 20) : most_bytes_(most_bytes) {}

  struct Key {
    std::string run;  // its id; empty: of none, or of several
    std::string question;

    auto operator<=>(const Key&) const = default;
  };
  // The body that was made for this version of the answer, or what `make` makes now. Errors are not
  // kept.
  Result<std::shared_ptr<const Body>> get(const Key& key, const std::string& version,
                                          const std::function<Result<Body>()>& make);
  // Forgets the bodies of runs that are not there any more.
  void keep(const std::set<std::string>& ids);
  // Of all that are kept.
  uint64_t bytes() const;

 private:
  struct Entry {
    explicit Entry(std::string of) : version(std::move(of)) {}

    const std::string version;
    std::mutex making;
    std::shared_ptr<const Body> body;  // guarded by `making`
    // --- guarded by the mutex of the cache
    uint64_t used = 0;
    uint64_t bytes = 0;
  };

  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<Entry>> entries_;  // guarded by mutex_
  uint64_t clock_ = 0;                             // guarded by mutex_
  uint64_t bytes_ = 0;                             // guarded by mutex_
};

}  // namespace smd::server
