#pragma once

// All collections of a hook or a trial, in the order of their creation: what Python calls
// CollectionManager, and what the collections file holds. One thread at a time.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "smd/base/result.h"
#include "smd/collection/collection.h"

namespace smd {

class CollectionSet final {
 public:
  CollectionSet() = default;
  CollectionSet(CollectionSet&&) = default;
  CollectionSet& operator=(CollectionSet&&) = default;
  // A copy would share its collections, so there is none.
  CollectionSet(const CollectionSet&) = delete;
  CollectionSet& operator=(const CollectionSet&) = delete;

  // The collection of that name, made now unless it exists. Error for an empty name.
  Result<std::shared_ptr<Collection>> create(std::string_view name);
  // `not_found` names the nearest choice.
  Result<std::shared_ptr<Collection>> get(std::string_view name) const;
  // nullptr: none of that name.
  std::shared_ptr<Collection> find(std::string_view name) const;
  // Adds, or takes the place of the one with the same name. Must not be null.
  Status add(std::shared_ptr<Collection> collection);

  std::vector<std::string> names() const;
  // In order of creation.
  const std::vector<std::shared_ptr<Collection>>& collections() const { return collections_; }
  size_t size() const { return collections_.size(); }

  // Distinct workers that will write steps, at least 1.
  int64_t num_workers() const { return num_workers_; }
  Status set_num_workers(int64_t count);

  // Grows with every change of the set or of a collection in it.
  uint64_t revision() const;

  // Names in all collections together; grows with matched names, too.
  size_t name_count() const;

  // The collections file: one line, {"collections": {…}, "_meta": {"num_workers": n}}.
  std::string to_json() const;
  // `source` is a file name for error messages, or "". Top-level keys other than the two are an
  // error, further keys inside are ignored. `warnings`, if there, gets a sentence for each pattern
  // that cannot be used here.
  static Result<CollectionSet> from_json(std::string_view text, std::string_view source,
                                         std::vector<std::string>* warnings = nullptr);

  // Compares the collections by value, in any order, and nothing else.
  bool operator==(const CollectionSet& other) const;

 private:
  std::vector<std::shared_ptr<Collection>> collections_;
  std::map<std::string, size_t, std::less<>> index_;  // by name, into collections_
  int64_t num_workers_ = 1;
  uint64_t revision_ = 0;
};

}  // namespace smd
