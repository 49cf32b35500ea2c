#pragma once

// A named group of tensors with its own rules for what to save and when.
// Held by shared_ptr, as both a hook and its user change it. One thread at a time.

#include <cstdint>
#include <functional>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"
#include "smd/collection/pattern.h"
#include "smd/config/reduction_config.h"
#include "smd/config/save_config.h"

namespace smd {

// How a collection holds a tensor: not, by its listed name, or by a pattern.
enum class Membership { none, listed, matched };

class Collection final {
 public:
  explicit Collection(std::string name) : name_(std::move(name)) {}
  Collection(Collection&&) = default;
  Collection& operator=(Collection&&) = default;
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;
  // An independent copy, with its own configs.
  Collection clone() const;

  const std::string& name() const { return name_; }
  // Grows with every change made through this class that may change an answer of membership().
  // Matched names do not count, as they follow from the patterns; nor do changes inside of the
  // objects that save_config() and reduction_config() point to: compare those by value.
  uint64_t revision() const { return revision_; }

  // Patterns, found anywhere in a name. An invalid one is an error at once and changes nothing.
  Status include(std::string_view pattern);
  Status exclude(std::string_view pattern);
  Status set_include_regex(const std::vector<std::string>& patterns);
  Status set_exclude_regex(const std::vector<std::string>& patterns);
  std::vector<std::string> include_regex() const;
  std::vector<std::string> exclude_regex() const;

  // Names listed by somebody or matched so far, sorted.
  std::vector<std::string> tensor_names() const;
  // Replaces all names; they count as listed.
  void set_tensor_names(const std::vector<std::string>& names);
  void add_tensor_name(std::string_view name);
  // Notes that a pattern matched. Unlike a listed name it leaves again when the patterns change.
  void add_matched_name(std::string_view name);
  // True if it was there.
  bool remove_tensor_name(std::string_view name);
  bool has_tensor_name(std::string_view name) const { return names_.find(name) != names_.end(); }

  // A listed name wins; else a name belongs if an include pattern and no exclude pattern matches.
  // A search that was given up counts as no match and adds a sentence to `problems`, if there.
  Membership membership(std::string_view name, std::vector<std::string>* problems = nullptr) const;
  bool holds(std::string_view name) const { return membership(name) != Membership::none; }
  // True if there is neither a pattern nor a name.
  bool empty() const { return include_.empty() && names_.empty(); }

  // nullptr: the hook's. The object is shared with whoever set it or asked for it.
  const std::shared_ptr<SaveConfig>& save_config() const { return save_config_; }
  const std::shared_ptr<ReductionConfig>& reduction_config() const { return reduction_config_; }
  void set_save_config(std::shared_ptr<SaveConfig> config);
  void set_reduction_config(std::shared_ptr<ReductionConfig> config);

  bool save_histogram() const { return save_histogram_; }
  void set_save_histogram(bool value);

  size_t name_count() const { return names_.size(); }

  // The object that the collections file holds under the collection's name. Made without a document,
  // as a model may have many thousand names.
  std::string to_json() const;
  // Unknown keys are ignored. A pattern that cannot be used here is kept as text, matches nothing,
  // and adds a sentence to `warnings`, if there: files come from other programs, too.
  static Result<Collection> from_json(std::string name, const Json& json,
                                      std::vector<std::string>* warnings = nullptr);

  // By value, without the revision.
  bool operator==(const Collection& other) const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct NamePattern {
    std::string text;
    std::optional<Pattern> compiled;  // nullopt: from a file, not usable here

    bool operator==(const NamePattern& other) const { return text == other.text; }
  };
  using Patterns = std::vector<NamePattern>;

  static Result<Patterns> compile(const std::vector<std::string>& patterns);
  static bool any_found(const Patterns& patterns, std::string_view name,
                        std::vector<std::string>* problems);

  std::string name_;
  Patterns include_;
  Patterns exclude_;
  std::unordered_map<std::string, Membership, TextHash, std::equal_to<>> names_;  // listed or matched
  std::shared_ptr<SaveConfig> save_config_;
  std::shared_ptr<ReductionConfig> reduction_config_;
  bool save_histogram_ = true;
  uint64_t revision_ = 0;
};

}  // namespace smd
