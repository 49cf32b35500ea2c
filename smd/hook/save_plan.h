#pragma once

// What is saved at a step, worked out once per configuration: which collections take part, at which
// steps, and what of a tensor they want. Built by the hook when recording starts and again when
// collections change. One thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "smd/collection/collection_set.h"
#include "smd/collection/matcher.h"
#include "smd/config/reduction_config.h"
#include "smd/config/save_config.h"
#include "smd/hook/save_wish.h"

namespace smd {

struct SavePlanOptions {
  std::vector<std::string> include_collections;  // names; "all" = every collection
  // Saved through save_tensor although not included.
  std::vector<std::string> custom_collections;
  std::vector<std::string> raw_only_collections;
  std::vector<std::string> builtin_collections;  // may be empty: an adapter fills them
  bool shows_histograms = false;                 // somebody looks at them
  SaveConfig save_config;
  ReductionConfig reduction_config = ReductionConfig::raw_only();
  std::vector<SaveWish> wishes;  // those without a save_config have no part
  // Collections whose intervals may become longer, see set_stride(); nothing for others.
  std::vector<std::string> stretched_collections;
  // Instead of save_config for those, if nobody said how often to save.
  std::optional<SaveConfig> stretched_save_config;
};

// What is wanted of one tensor at one step.
struct Action {
  bool raw = false;
  bool shape = false;
  bool metric = false;  // its mean is a metric of the job, if anything of it is saved
  bool scalar = false;  // a single number of it is shown as a curve, if anything of it is saved
  std::string_view histogram_of;  // the collection that shows a histogram of it; empty: none
  ReductionSet reductions;

  // What either of them wants.
  void merge(const Action& other);
  bool empty() const { return !raw && !shape && reductions.empty() && histogram_of.empty(); }
};

class SavePlan final {
 public:
  // Gives the collections that take part complete configs of their own. `warnings` gets full
  // sentences. invalid_argument: an included collection has neither patterns nor names.
  static Result<SavePlan> build(const CollectionSet& collections, const SavePlanOptions& options,
                                std::vector<std::string>& warnings);

  // Makes the intervals of the stretched collections longer, see stretched_interval().
  void set_stride(int64_t stride, int64_t max_interval);
  // Whether a stretched collection is active.
  bool any_stretched_active() const;

  // The first mode step ≥ from at which anything is saved; nullopt: never again.
  std::optional<Step> next_active(Mode mode, Step from) const;

  // Selects the collections of a step; they decide what wanted() answers until the next call.
  void activate(Mode mode, Step mode_step) { activate(mode, mode_step, mode_step); }
  // Those of all steps from the first to the last.
  void activate(Mode mode, Step first, Step last);
  void deactivate();
  bool any_active() const { return active_count_ > 0; }
  // The same without wishes.
  bool any_due() const { return due_count_ > 0; }
  bool is_active(std::string_view collection) const;

  // Of the present choice of active and observed collections. No other choice has the same, nor has
  // another plan of the process, so what was answered with a key is good as long as the key stays.
  uint64_t key() const { return key_; }
  // Collections may have changed: every choice gets a new key.
  void renew_keys();

  // What the active collections that hold `name` want of it.
  const Action& wanted(std::string_view name);
  // The part of it that the user configured, and the wishes, which count where the user does not
  // save the value.
  const Action& due(std::string_view name);
  const Action& wished(std::string_view name);
  // What all collections that take part in the mode given to observe() want of it, due or not.
  const Action& observed(std::string_view name);
  void observe(Mode mode);
  bool is_observed(std::string_view collection) const;
  // What one collection of the plan wants, active or not; nullptr: it is not in the plan.
  const Action* wanted_by(std::string_view collection) const;

  // Whether a NaN in this tensor starts saving in this mode.
  bool is_watched(Mode mode, std::string_view name) const;
  bool watches_anything(Mode mode) const { return !watches_[index_of(mode)].empty(); }
  std::vector<std::string> watched_names() const;
  // A watched tensor holds a NaN: its collections are active from now on.
  void trigger(Mode mode, std::string_view watched);

  // Full sentences about searches that were given up since the last call.
  std::vector<std::string> take_problems() { return matcher_->take_problems(); }

 private:
  struct Entry {
    std::shared_ptr<Collection> collection;
    SaveConfig save;
    SaveConfig unstretched;
    Action action;
    bool custom = false;         // never active: for what save_tensor puts into it only
    bool training_only = false;  // not in EVAL and PREDICT
    bool stretches = false;      // see set_stride()
    bool wish = false;
  };
  struct Answer {
    Action wanted;
    Action due;
    Action wished;
  };
  using Active = std::vector<uint8_t>;  // one flag per entry

  bool applies(const Entry& entry, Mode mode) const;
  void select(Active active);
  void add_wishes(const CollectionSet& collections, const SavePlanOptions& options,
                  std::vector<std::shared_ptr<Collection>>& taking_part);
  // The row of answers for a set of entries.
  size_t row_of(const Active& active);
  void find_key();
  const Answer& answer(size_t row_index, const Active& active, std::string_view name);

  std::vector<Entry> entries_;
  std::unique_ptr<Matcher> matcher_;
  std::array<std::map<std::string, std::vector<uint32_t>, std::less<>>, kModes.size()> watches_;

  Active active_;
  size_t active_count_ = 0;
  size_t due_count_ = 0;
  // Answers of wanted(): one row per distinct set of active entries, one column per distinct match.
  std::map<Active, size_t> rows_;
  std::vector<std::vector<std::optional<Answer>>> answers_;
  size_t row_ = 0;
  Active observed_;
  size_t observed_row_ = 0;
  std::map<std::pair<size_t, size_t>, uint64_t> keys_;  // of the two rows
  uint64_t key_ = 0;
  uint64_t generation_ = 0;
};

}  // namespace smd
