#include "smd/repack/exact_match.h"

#include <fmt/format.h>

#include <algorithm>

namespace smd {
namespace {

using Mismatch = std::optional<std::string>;

class ExactMatch final {
 public:
  ExactMatch(Trial& run, Trial& copy)
      : run_(run), copy_(copy), ours_(run.snapshot()), theirs_(copy.snapshot()) {}

  Result<Mismatch> compare(const std::function<void()>& next) const {
    size_t rows = 0;
    for (size_t i = 0; i < ours_->row_count(); ++i) {
      const StepRow& row = ours_->row(i);
      std::vector<uint32_t> parts;  // those that hold something
      ours_->for_each_part(row, [&](uint32_t id, const Part& part) {
        if (!ours_->layout_of(part).tensors().empty()) parts.push_back(id);
      });
      if (parts.empty()) continue;
      ++rows;
      const StepRow* other = theirs_->find_row(row.info.step);
      if (other == nullptr) return differs("Step {} is missing.", row.info.step);
      if (other->info != row.info) return differs("Step {} has another mode.", row.info.step);
      if (other->part_count != parts.size()) {
        return differs("Step {} is that of {} workers instead of {}.", row.info.step,
                       other->part_count, parts.size());
      }
      for (uint32_t id : parts) {
        SMD_TRY(Mismatch found, compare_part(id, *other));
        if (found) return found;
        next();
      }
    }
    if (theirs_->row_count() != rows) {
      return differs("There are {} steps instead of {}.", theirs_->row_count(), rows);
    }
    return Mismatch();
  }

 private:
  template <typename... Args>
  static Mismatch differs(fmt::format_string<Args...> text, Args&&... args) {
    return fmt::format(text, std::forward<Args>(args)...);
  }

  Result<Mismatch> compare_part(uint32_t id, const StepRow& other) const {
    const Part& part = ours_->part(id);
    const std::string& worker = ours_->names().workers[part.worker];
    uint32_t copy_id = kNone;
    theirs_->for_each_part(other, [&](uint32_t at, const Part& candidate) {
      if (theirs_->names().workers[candidate.worker] == worker) copy_id = at;
    });
    if (copy_id == kNone) return differs("Step {} lacks the worker '{}'.", part.step, worker);
    const Layout& layout = ours_->layout_of(part);
    const Layout& copied = theirs_->layout_of(theirs_->part(copy_id));
    if (copied.entries().size() != layout.entries().size() ||
        copied.shapes().size() != layout.shapes().size()) {
      return differs("Step {} of worker '{}' holds {} values and {} shapes instead of {} and {}.",
                     part.step, worker, copied.entries().size(), copied.shapes().size(),
                     layout.entries().size(), layout.shapes().size());
    }
    for (uint32_t i = 0; i < layout.entries().size(); ++i) {
      const auto there = find(layout.entries()[i], copied);
      if (!there) return about({id, i}, "is missing");
      SMD_TRY(Mismatch found, compare_value({id, i}, {copy_id, *there}));
      if (found) return found;
    }
    for (const Layout::ShapeOf& shape : layout.shapes()) {
      const std::string& name = ours_->names().tensors[shape.tensor];
      const auto tensor = theirs_->find_tensor(name);
      const Layout::ShapeOf* there = tensor ? copied.shape_of(*tensor) : nullptr;
      if (there == nullptr || there->shape != shape.shape ||
          there->original_name != shape.original_name) {
        return differs("The saved shape of '{}' at step {} is another one.", name, part.step);
      }
    }
    return Mismatch();
  }

  std::optional<uint32_t> find(const Layout::Entry& entry, const Layout& copied) const {
    const auto tensor = theirs_->find_tensor(ours_->names().tensors[entry.tensor]);
    if (!tensor) return std::nullopt;
    const Slot slot = Slot::from_id(entry.slot);
    if (slot.is_value()) return copied.find(*tensor, slot);
    const auto op = theirs_->names().ops.find(ours_->names().ops[slot.op()]);
    return op ? copied.find(*tensor, Slot::reduction(*op, slot.abs())) : std::nullopt;
  }

  Mismatch about(const Location& at, std::string_view what) const {
    const Layout::Entry& entry = ours_->entry(at);
    const Slot slot = Slot::from_id(entry.slot);
    const Part& part = ours_->part(at.part);
    return differs("The {} of '{}' at step {} of worker '{}' {}.",
                   slot.is_value() ? "value" : ours_->slot_name(slot),
                   ours_->names().tensors[entry.tensor], part.step,
                   ours_->names().workers[part.worker], what);
  }

  Result<Mismatch> compare_value(const Location& at, const Location& there) const {
    SMD_TRY(const TensorValue value, run_.read(*ours_, at));
    SMD_TRY(const TensorValue copied, copy_.read(*theirs_, there));
    if (copied.dtype != value.dtype) return about(at, "has another element type");
    // Reductions are numbers, whether their writer gave them the shape [] or [1].
    if (ours_->entry(at).slot == Slot::value().id() && copied.shape != value.shape) {
      return about(at, "has another shape");
    }
    if (copied.strings != value.strings) return about(at, "has other texts");
    if (!std::equal(copied.elements.begin(), copied.elements.end(), value.elements.begin(),
                    value.elements.end())) {
      return about(at, "has other elements");
    }
    const bool timed = ours_->entry(at).form == Layout::Form::record &&
                       theirs_->entry(there).form == Layout::Form::record;
    if (timed && copied.wall_secs != value.wall_secs) return about(at, "has another time");
    return Mismatch();
  }

  Trial& run_;
  Trial& copy_;
  const std::shared_ptr<const Snapshot> ours_;
  const std::shared_ptr<const Snapshot> theirs_;
};

}  // namespace

Result<std::optional<std::string>> first_mismatch(Trial& run, Trial& copy,
                                                  const std::function<void()>& next) {
  return ExactMatch(run, copy).compare(next);
}

}  // namespace smd
