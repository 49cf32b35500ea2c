#pragma once

// Finds the collections that hold a tensor, once per name. Shares the collections and adds to their
// names; the training thread asks for every tensor of every step. One thread at a time.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/collection/collection.h"

namespace smd {

// The collections that hold a name. Names held by the same collections share one NameMatch.
struct NameMatch {
  uint32_t id = 0;                    // counts the distinct matches of a generation, from 0
  std::vector<uint32_t> collections;  // ascending indices into the matcher's list

  bool empty() const { return collections.empty(); }
};

class Matcher final {
 public:
  // `collections` in the order that decides between equals; none may be null.
  explicit Matcher(std::vector<std::shared_ptr<Collection>> collections);

  // A name that is held by a pattern joins the collection's tensor_names. Known names cost one hash
  // lookup. The reference stays good until the generation changes.
  const NameMatch& match(std::string_view name);

  const Collection& collection(uint32_t index) const { return *watched_[index].collection; }
  size_t size() const { return watched_.size(); }

  // Grows when somebody changed a collection and match() therefore forgot all names.
  uint64_t generation() const { return generation_; }
  // Distinct matches handed out in this generation: ids are below.
  size_t distinct_matches() const { return matches_.size(); }

  // Full sentences about searches that were given up, each once; leaves none behind.
  std::vector<std::string> take_problems();

 private:
  struct Watched {
    std::shared_ptr<Collection> collection;
    uint64_t revision;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  bool changed() const;
  void forget();
  const NameMatch& learn(std::string_view name);

  std::vector<Watched> watched_;
  std::unordered_map<std::string, const NameMatch*, Hash, std::equal_to<>> known_;
  std::deque<NameMatch> matches_;  // never moves its elements; known_ points into it
  std::map<std::vector<uint32_t>, const NameMatch*> by_collections_;
  std::vector<std::string> problems_;
  uint64_t generation_ = 0;
};

}  // namespace smd
