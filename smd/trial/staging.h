#pragma once

// Where a trial gathers what it reads, and the rules by which steps become complete.
// Owned by the refresher: one thread at a time. Published snapshots do not change any more.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "smd/trial/snapshot.h"

namespace smd {

struct StagingOptions {
  StepRange range;
  // When more steps than this wait for missing workers, the older half is given up on.
  int64_t wait_window = 1000;
};

// One step of one worker, as a source found it.
struct NewPart {
  StepInfo step;
  std::string_view worker;
  uint32_t layout = 0;    // from add_layout()
  std::string_view file;  // empty: only shapes
  std::shared_ptr<const Checksums> checksums = nullptr;
  uint64_t base = 0;  // where the step begins in the file
  // Of two parts of one step and worker the one with the greater number counts; of equals, the one
  // that is added later.
  uint64_t precedence = 0;
  bool append_only = false;  // see Part
  double wall_secs = 0;      // see Part
};

class Staging final {
 public:
  explicit Staging(const StagingOptions& options);

  uint32_t tensor(std::string_view name) { return number_of(&Names::tensors, name); }
  Slot reduction(std::string_view op, bool abs) {
    return Slot::reduction(number_of(&Names::ops, op), abs);
  }
  // The number of an equal layout, if there is one.
  uint32_t add_layout(std::vector<Layout::Entry> entries, std::vector<Layout::ShapeOf> shapes,
                      Layout::Block block = {}, std::vector<Layout::Split> splits = {});
  const Layout& layout(uint32_t id) const { return *data_.layouts[id]; }

  // Adds a part, or replaces the one of the same step and worker. Steps outside of the range are
  // left out.
  void add(const NewPart& part);
  // Call after each reading: gives up on the older half of too many incomplete steps.
  void limit_waiting();
  // The job has ended and all of it was added.
  void finish();

  void set_collections(std::shared_ptr<const CollectionSet> collections,
                       std::vector<std::string> workers);
  bool has_steps() const { return !data_.rows.empty(); }
  Step last_complete_step() const { return data_.last_complete_step; }
  int64_t num_workers() const { return data_.num_workers; }
  const std::vector<std::string>& workers() const { return data_.workers; }

  // What is there by now; the same object as before if nothing has changed.
  std::shared_ptr<const Snapshot> publish();

 private:
  // Known, or added to names that no snapshot sees.
  uint32_t number_of(NameList Names::*list, std::string_view name);
  uint32_t file_id(std::string_view path);
  // The first row that is not before the step.
  size_t row_at(Step step) const;

  StagingOptions options_;
  Snapshot::Data data_;
  std::shared_ptr<Names> names_;  // what data_.names points to
  bool names_shared_ = false;     // a snapshot sees them
  std::unordered_multimap<uint64_t, uint32_t> layouts_by_hash_;
  std::unordered_map<std::string, uint32_t> file_ids_;
  std::shared_ptr<const Snapshot> published_;
};

}  // namespace smd
