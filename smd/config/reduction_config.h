#pragma once

// What to save of a tensor: the values, its shape, or statistics of it. A value; one thread at a
// time. The order in which people listed the reductions is kept.

#include <string>
#include <string_view>
#include <vector>

#include "smd/base/json_fwd.h"
#include "smd/base/result.h"
#include "smd/config/json_value.h"
#include "smd/reduce/reduction.h"

namespace smd {

// Names as people give them; an item may itself be a comma separated list.
struct ReductionConfigOptions {
  std::vector<std::string> reductions = {};      // "min", "mean", …
  std::vector<std::string> abs_reductions = {};  // the same, of the absolute values
  std::vector<std::string> norms = {};           // "l1", "l2", with or without "_norm"
  std::vector<std::string> abs_norms = {};
  bool save_raw_tensor = false;
  bool save_shape = false;
};

class ReductionConfig final {
 public:
  // Saves nothing at all.
  ReductionConfig() = default;
  // Saves the values and nothing else: what a hook does unless told otherwise.
  static ReductionConfig raw_only();
  // Error for a name that is unknown or stands in the wrong list.
  static Result<ReductionConfig> create(const ReductionConfigOptions& options);

  // Appends to the list where `reduction` belongs, unless it is there.
  void add(Reduction reduction);

  const std::vector<Reduction>& reductions() const { return reductions_; }
  const std::vector<Reduction>& abs_reductions() const { return abs_reductions_; }
  const std::vector<Reduction>& norms() const { return norms_; }
  const std::vector<Reduction>& abs_norms() const { return abs_norms_; }
  bool save_raw_tensor() const { return save_raw_tensor_; }
  bool save_shape() const { return save_shape_; }
  void set_save_raw_tensor(bool value) { save_raw_tensor_ = value; }
  void set_save_shape(bool value) { save_shape_ = value; }

  // All four lists together.
  ReductionSet set() const;
  bool saves_nothing() const { return !save_raw_tensor_ && !save_shape_ && set().empty(); }

  // {"save_raw_tensor", "reductions", "save_shape"}. Old readers refuse names they do not know, so
  // those stand in a further key "extra_reductions", present only when there are any.
  Json to_json() const;
  // Merges both lists; a list is a comma separated string or a JSON list.
  static Result<ReductionConfig> from_json(const Json& json,
                                           std::string_view key = "reduction_config",
                                           UnknownKeys unknown = UnknownKeys::refuse);

  // The order of the lists does not count.
  bool operator==(const ReductionConfig& other) const {
    return set() == other.set() && save_raw_tensor_ == other.save_raw_tensor_ &&
           save_shape_ == other.save_shape_;
  }

 private:
  std::vector<Reduction> reductions_;
  std::vector<Reduction> abs_reductions_;
  std::vector<Reduction> norms_;
  std::vector<Reduction> abs_norms_;
  bool save_raw_tensor_ = false;
  bool save_shape_ = false;
};

// From names in configuration spelling: "min", "abs_l2_norm", "l1". `key` names the list in errors.
Result<std::vector<Reduction>> parse_reductions(const std::vector<std::string>& names,
                                                std::string_view key);

}  // namespace smd
