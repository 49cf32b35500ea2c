#pragma once

// All that was known of a run at one moment: steps, workers, tensors and where their values are.
// Immutable, thread-safe; later snapshots share what did not change.
//
// Steps are known by their global number. A query with a mode takes and gives steps of that mode;
// Mode::global means global numbers.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/collection/collection_set.h"
#include "smd/trial/layout.h"
#include "smd/trial/names.h"
#include "smd/trial/paged_vector.h"
#include "smd/types/step.h"

namespace smd {

inline constexpr uint32_t kNone = UINT32_MAX;
inline constexpr uint32_t kOwnFile = UINT32_MAX - 1;

// Of what a part stores; absent where nobody recorded one.
struct Checksums {
  std::vector<std::optional<uint32_t>> records;  // of the payloads, like the layout's entries
  std::vector<uint32_t> pieces;                  // of the payloads of split tensors, by number
  std::optional<uint32_t> block;                 // of all numbers of the block
};

// What one worker saved at one step.
struct Part {
  Step step = 0;
  double wall_secs = 0;     // Unix time of its numbers, which share one; 0: only its records tell
  uint64_t base = 0;        // where the step begins in its file
  uint64_t precedence = 0;  // see NewPart
  uint32_t worker = 0;
  uint32_t layout = 0;
  uint32_t file = kNone;     // kOwnFile: named after step and worker; kNone: only shapes
  uint32_t next = kNone;     // the next worker's part of the same step, in the order of their names
  bool append_only = false;  // the file holds many steps, and what it holds never changes
  // nullptr unless they are to be checked.
  std::shared_ptr<const Checksums> checksums;
};

struct StepRow {
  StepInfo info;
  uint32_t first_part = kNone;
  uint32_t part_count = 0;
};

// One stored record: a part, and a position in its layout's entries.
struct Location {
  uint32_t part = 0;
  uint32_t entry = 0;
};

// Values as the Python API has them.
enum class StepState : uint8_t { unavailable = 0, available = 1, not_yet_available = 2 };

// Global steps, half open.
struct StepRange {
  Step begin = 0;
  std::optional<Step> end{};

  bool contains(Step step) const { return step >= begin && (!end || step < *end); }
};

class Snapshot final {
 public:
  // --- the run
  // Distinct workers that write steps, as the collections say.
  int64_t num_workers() const { return data_.num_workers; }
  // Those that wrote collections, sorted.
  const std::vector<std::string>& workers() const { return data_.workers; }
  // The greatest step that every worker has saved or passed; -1: none.
  Step last_complete_step() const { return data_.last_complete_step; }
  // The job has ended and everything was read.
  bool loaded_all() const { return data_.loaded_all; }
  const CollectionSet& collections() const { return *data_.collections; }
  // Grows with each reading of the collections that brought something new.
  uint64_t collections_revision() const { return data_.collections_revision; }
  const Names& names() const { return *data_.names; }
  const StepRange& range() const { return data_.range; }

  // --- steps
  size_t row_count() const { return data_.rows.size(); }
  const StepRow& row(size_t i) const { return data_.rows[i]; }
  const StepRow* find_row(Step global) const;
  // Every step that some worker saved, or only those that all of them did, sorted.
  std::vector<Step> steps(Mode mode, bool incomplete) const;
  // Modes that were seen, without global.
  std::vector<Mode> modes() const;
  bool is_complete(const StepRow& row) const;
  // nullopt: no such step. With Mode::global the number itself, known or not.
  std::optional<Step> global_step(Mode mode, Step mode_step) const;
  const StepRow* find_row(Mode mode, Step step) const;
  StepState state(Mode mode, Step step) const;
  std::optional<Step> last_step(Mode mode) const;

  // --- tensors
  const Part& part(uint32_t i) const { return data_.parts[i]; }
  size_t part_count() const { return data_.parts.size(); }
  const Layout& layout_of(const Part& part) const { return *data_.layouts[part.layout]; }
  // Empty when the part holds only shapes.
  std::string file_of(const Part& part) const;
  // Calls f(part number, part) for each worker of a step, in the order of their names.
  template <typename F>
  void for_each_part(const StepRow& row, F&& f) const {
    for (uint32_t i = row.first_part; i != kNone; i = part(i).next) f(i, part(i));
  }

  std::optional<uint32_t> find_tensor(std::string_view name) const {
    return names().tensors.find(name);
  }
  // Sorted by name: of all steps of the mode, or of one row.
  std::vector<uint32_t> tensors(Mode mode) const;
  std::vector<uint32_t> tensors(const StepRow& row) const;
  bool holds(const StepRow& row, uint32_t tensor) const;
  // Steps at which the tensor was saved.
  std::vector<Step> steps_of(uint32_t tensor, Mode mode, bool incomplete) const;
  // Workers that saved it there, in the order of their names.
  std::vector<std::string> workers_of(const StepRow& row, uint32_t tensor) const;
  // Of the given worker (a number of names().workers), or of the first that has it.
  std::optional<Location> find(const StepRow& row, uint32_t tensor, Slot slot,
                               std::optional<uint32_t> worker) const;
  const Layout::ShapeOf* find_shape(const StepRow& row, uint32_t tensor,
                                    std::optional<uint32_t> worker) const;
  // From "min", "abs_l2", "l2_norm"; nullopt: nobody stored such a thing.
  std::optional<Slot> find_slot(std::string_view reduction, bool abs) const;
  // "min", "abs_l2".
  std::string slot_name(Slot slot) const;
  const Layout::Entry& entry(const Location& at) const {
    return layout_of(part(at.part)).entries()[at.entry];
  }

 private:
  friend class Staging;

  struct Data {
    std::shared_ptr<const Names> names;
    std::shared_ptr<const CollectionSet> collections;
    PagedVector<StepRow> rows;  // sorted by global step
    PagedVector<Part> parts;
    PagedVector<std::shared_ptr<const Layout>> layouts;
    PagedVector<std::string> files;
    std::vector<std::string> workers;
    StepRange range;
    uint64_t collections_revision = 0;
    int64_t num_workers = 1;
    Step last_complete_step = -1;
    bool loaded_all = false;
  };

  explicit Snapshot(const Data& data) : data_(data) {}

  // The first row of each mode step, sorted by it; made when first asked for.
  struct ModeStep {
    Step mode_step = 0;
    uint32_t row = 0;
  };
  const std::vector<ModeStep>& mode_steps(Mode mode) const;

  const Data data_;
  mutable std::once_flag modes_made_;
  mutable std::array<std::vector<ModeStep>, 4> modes_;
};

}  // namespace smd
