#include "smd/trial/catalog.h"

#include <algorithm>
#include <map>

#include "smd/trial/internal/single_number.h"

namespace smd {
namespace {

struct Known {
  std::optional<DType> dtype;
  std::optional<Shape> shape;
};

class CatalogReader final {
 public:
  explicit CatalogReader(const Trial& trial) : trial_(trial), snapshot_(trial.snapshot()) {}

  Result<Catalog> read() {
    known_.resize(snapshot_->names().tensors.size());
    for (size_t i = 0; i < snapshot_->row_count(); ++i) {
      const StepRow& row = snapshot_->row(i);
      for (uint32_t id = row.first_part; id != kNone; id = snapshot_->part(id).next) {
        SMD_RETURN_IF_ERROR(add_layout(id));
      }
      SMD_RETURN_IF_ERROR(add_step(row));
    }
    for (uint32_t tensor : snapshot_->tensors(Mode::global)) {
      catalog_.tensors.push_back({.name = snapshot_->names().tensors[tensor],
                                  .dtype = known_[tensor].dtype,
                                  .shape = known_[tensor].shape});
    }
    for (bool abs : {false, true}) {
      const auto first = static_cast<std::ptrdiff_t>(catalog_.numbers.size());
      for (const auto& [id, float32] : numbers_) {
        const Slot slot = Slot::from_id(id);
        if (slot.is_value() || slot.abs() != abs) continue;
        catalog_.numbers.push_back({snapshot_->slot_name(slot), float32});
      }
      std::sort(catalog_.numbers.begin() + first, catalog_.numbers.end(),
                [](const auto& a, const auto& b) { return a.name < b.name; });
    }
    if (const auto value = numbers_.find(Slot::value().id()); value != numbers_.end()) {
      catalog_.numbers.push_back({"value", value->second});
    }
    catalog_.workers = snapshot_->names().workers.all();
    std::ranges::sort(catalog_.workers);
    return std::move(catalog_);
  }

 private:
  Status add_layout(uint32_t part) {
    const uint32_t number = snapshot_->part(part).layout;
    if (number >= seen_.size()) seen_.resize(number + 1);
    if (seen_[number]) return {};
    seen_[number] = true;
    const Layout& layout = snapshot_->layout_of(snapshot_->part(part));
    const auto entries = layout.entries();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const Layout::Entry& entry = entries[i];
      const bool record = entry.form == Layout::Form::record;
      const bool value = entry.slot == Slot::value().id();
      if (!value || !record ||
          entry.length <=
              internal::most_bytes_of_single(snapshot_->names().tensors[entry.tensor])) {
        const bool float32 = !record && entry.dtype == DType::float32;
        const auto [at, is_new] = numbers_.try_emplace(entry.slot, float32);
        at->second = at->second && float32;
      }
      if (!value || known_[entry.tensor].dtype) continue;
      if (record) {
        SMD_TRY(TensorDescription found, trial_.describe(*snapshot_, {part, i}));
        known_[entry.tensor] = {found.dtype, std::move(found.shape)};
      } else {
        known_[entry.tensor] = {entry.dtype,
                                entry.form == Layout::Form::scalar ? Shape() : Shape{1}};
      }
    }
    for (const Layout::ShapeOf& shape : layout.shapes()) {
      if (!known_[shape.tensor].shape) known_[shape.tensor].shape = shape.shape;
    }
    return {};
  }

  Status add_step(const StepRow& row) {
    Catalog::StepEntry step{
        .info = row.info, .workers = row.part_count, .complete = snapshot_->is_complete(row)};
    for (uint32_t id = row.first_part; id != kNone; id = snapshot_->part(id).next) {
      const Part& part = snapshot_->part(id);
      double secs = part.wall_secs;
      if (secs == 0 && !part.append_only && !snapshot_->layout_of(part).entries().empty()) {
        SMD_TRY(const TensorDescription first, trial_.describe(*snapshot_, {id, 0}));
        secs = first.wall_secs;
      }
      if (secs == 0) continue;
      step.wall_secs = secs;
      break;
    }
    catalog_.steps.push_back(std::move(step));
    return {};
  }

  const Trial& trial_;
  const std::shared_ptr<const Snapshot> snapshot_;
  std::vector<bool> seen_;            // layouts
  std::vector<Known> known_;          // by tensor
  std::map<uint32_t, bool> numbers_;  // by slot: all are float32
  Catalog catalog_;
};

}  // namespace

Result<Catalog> read_catalog(const Trial& trial) { return CatalogReader(trial).read(); }

}  // namespace smd
