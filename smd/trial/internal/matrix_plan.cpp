#include "smd/trial/internal/matrix_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "smd/base/nearest.h"
#include "smd/trial/internal/single_number.h"

namespace smd::internal {
namespace {

constexpr std::string_view kValue = "value";

class MatrixPlanner final {
 public:
  MatrixPlanner(const Snapshot& snapshot, const MatrixOptions& options)
      : snapshot_(snapshot), options_(options) {}

  Result<MatrixPlan> plan() {
    SMD_RETURN_IF_ERROR(choose_number());
    SMD_RETURN_IF_ERROR(choose_worker());
    SMD_RETURN_IF_ERROR(choose_tensors());
    choose_columns();
    if (!options_.tensors) drop_unused_rows();
    return std::move(plan_);
  }

 private:
  Status choose_number() {
    if (options_.reduction.empty() || options_.reduction == kValue) {
      slot_ = Slot::value();
      return {};
    }
    slot_ = snapshot_.find_slot(options_.reduction, false);
    const auto known = parse_reduction(options_.reduction);
    if (known.ok() && options_.compute) plan_.reduction = *known;
    if (!slot_ && !known.ok()) return known.error();
    return {};
  }

  Status choose_worker() {
    if (options_.worker.empty()) return {};
    worker_ = snapshot_.names().workers.find(options_.worker);
    if (worker_) return {};
    return Error{ErrorCode::invalid_argument,
                 fmt::format("There is no worker '{}'.{}", options_.worker,
                             did_you_mean(options_.worker, snapshot_.names().workers.all()))};
  }

  Status choose_tensors() {
    const NameList& names = snapshot_.names().tensors;
    plan_.tensors = options_.tensors ? *options_.tensors : snapshot_.tensors(options_.mode);
    rows_.assign(names.size(), kNone);
    for (uint32_t i = 0; i < plan_.tensors.size(); ++i) {
      const uint32_t tensor = plan_.tensors[i];
      if (tensor >= names.size()) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("There is no tensor number {}; the run has {} tensors.", tensor,
                                 names.size())};
      }
      if (rows_[tensor] != kNone) {
        return Error{ErrorCode::invalid_argument,
                     fmt::format("The tensor '{}' is listed twice.", names[tensor])};
      }
      rows_[tensor] = i;
    }
    return {};
  }

  // The steps, each with its parts and its group.
  void choose_columns() {
    struct Numbered {
      Step step;
      uint32_t row;
    };
    std::vector<Numbered> chosen;
    for (uint32_t i = 0; i < snapshot_.row_count(); ++i) {
      const StepRow& row = snapshot_.row(i);
      if (options_.mode != Mode::global && row.info.mode != options_.mode) continue;
      if (!options_.incomplete && !snapshot_.is_complete(row)) continue;
      const Step step = options_.mode == Mode::global ? row.info.step : row.info.mode_step;
      if (options_.steps.contains(step)) chosen.push_back({step, i});
    }
    // A resumed job may repeat a mode step: as everywhere, the first one counts.
    std::ranges::stable_sort(chosen, {}, &Numbered::step);
    std::map<std::vector<uint32_t>, uint32_t> known;
    std::vector<uint32_t> key;
    std::vector<uint32_t> last_key;
    uint32_t group = kNone;
    for (size_t first = 0; first < chosen.size();) {
      const auto first_part = static_cast<uint32_t>(plan_.parts.size());
      const Step step = chosen[first].step;
      key.clear();
      for (; first < chosen.size() && chosen[first].step == step; ++first) {
        key.push_back(kNone);
        snapshot_.for_each_part(snapshot_.row(chosen[first].row),
                                [&](uint32_t id, const Part& part) {
                                  if (worker_ && part.worker != *worker_) return;
                                  key.push_back(part.layout);
                                  plan_.parts.push_back(id);
                                });
      }
      if (group == kNone || key != last_key) {
        const auto [at, is_new] =
            known.try_emplace(key, static_cast<uint32_t>(plan_.groups.size()));
        if (is_new) plan_.groups.push_back(make_group(key, first_part));
        group = at->second;
        last_key = key;
      }
      if (plan_.groups[group].pieces.empty()) {
        plan_.parts.resize(first_part);
        continue;
      }
      plan_.groups[group].columns.push_back(static_cast<uint32_t>(plan_.columns.size()));
      plan_.columns.push_back({step, first_part});
    }
  }

  // `key`: the layouts of the parts from `first_part` on, kNone before those of each step.
  ColumnGroup make_group(const std::vector<uint32_t>& key, uint32_t first_part) {
    ColumnGroup group;
    taken_.assign(plan_.tensors.size(), false);
    uint32_t nth = 0;
    for (size_t i = 0; i < key.size();) {
      const size_t count =
          static_cast<size_t>(
              std::find(key.begin() + static_cast<std::ptrdiff_t>(i) + 1, key.end(), kNone) -
              key.begin()) -
          i - 1;
      const size_t begin = group.pieces.size();
      for (uint32_t part = nth; part < nth + count; ++part) {
        group.pieces.push_back({.nth = part});
        add_stored(snapshot_.layout_of(snapshot_.part(plan_.parts[first_part + part])), group,
                   group.pieces.back());
      }
      for (size_t p = begin; plan_.reduction && p < group.pieces.size(); ++p) {
        const uint32_t part = plan_.parts[first_part + group.pieces[p].nth];
        add_computed(snapshot_.layout_of(snapshot_.part(part)), group, group.pieces[p]);
      }
      nth += static_cast<uint32_t>(count);
      i += count + 1;
    }
    std::erase_if(group.pieces, [](const Piece& piece) { return piece.size() == 0; });
    return group;
  }

  // Whether the entry gives a number that nobody gave before.
  bool takes(const Layout::Entry& entry, Slot slot) {
    if (entry.slot != slot.id() || rows_[entry.tensor] == kNone) return false;
    if (taken_[rows_[entry.tensor]]) return false;
    if (slot_ == Slot::value() && entry.form == Layout::Form::record &&
        entry.length > most_bytes_of_single(snapshot_.names().tensors[entry.tensor])) {
      return false;
    }
    taken_[rows_[entry.tensor]] = true;
    return true;
  }

  void add_stored(const Layout& layout, ColumnGroup& group, Piece& piece) {
    if (!slot_) return;
    const auto entries = layout.entries();
    std::vector<Cell> numbers;  // of the block
    for (uint32_t i = 0; i < entries.size(); ++i) {
      const Layout::Entry& entry = entries[i];
      if (!takes(entry, *slot_)) continue;
      const bool plain = entry.dtype == DType::float32 || entry.dtype == DType::float64;
      const bool in_block = entry.form != Layout::Form::record && plain;
      (in_block ? numbers : piece.records).push_back({i, rows_[entry.tensor]});
      if (!in_block || entry.dtype == DType::float64) group.whole_float32 = false;
    }
    const auto place = [&](const Cell& cell) { return entries[cell.entry].offset; };
    std::ranges::sort(numbers, {}, place);
    std::ranges::sort(piece.records, {}, place);
    for (const Cell& cell : numbers) {
      const Layout::Entry& entry = entries[cell.entry];
      const bool wide = entry.dtype == DType::float64;
      const bool follows =
          !piece.runs.empty() && piece.runs.back().wide == wide &&
          piece.runs.back().offset + piece.runs.back().count * entry.length == entry.offset;
      if (!follows) piece.runs.push_back({entry.offset, 0, wide});
      ++piece.runs.back().count;
      piece.rows.push_back(cell.row);
    }
  }

  void add_computed(const Layout& layout, ColumnGroup& group, Piece& piece) {
    const auto entries = layout.entries();
    for (uint32_t i = 0; i < entries.size(); ++i) {
      if (!takes(entries[i], Slot::value())) continue;
      piece.computed.push_back({i, rows_[entries[i].tensor]});
      group.whole_float32 = false;
    }
  }

  void drop_unused_rows() {
    std::vector<uint32_t> places(plan_.tensors.size(), kNone);
    for_each_row([&](uint32_t& row) { places[row] = 0; });
    uint32_t count = 0;
    for (size_t i = 0; i < plan_.tensors.size(); ++i) {
      if (places[i] == kNone) continue;
      plan_.tensors[count] = plan_.tensors[i];
      places[i] = count++;
    }
    plan_.tensors.resize(count);
    for_each_row([&](uint32_t& row) { row = places[row]; });
  }

  template <typename F>
  void for_each_row(F&& f) {
    for (ColumnGroup& group : plan_.groups) {
      for (Piece& piece : group.pieces) {
        for (uint32_t& row : piece.rows) f(row);
        for (Cell& cell : piece.records) f(cell.row);
        for (Cell& cell : piece.computed) f(cell.row);
      }
    }
  }

  const Snapshot& snapshot_;
  const MatrixOptions& options_;
  std::optional<Slot> slot_;  // nothing like it is stored
  std::optional<uint32_t> worker_;
  std::vector<uint32_t> rows_;  // by tensor; kNone: not chosen
  std::vector<bool> taken_;     // rows that have their number, while a group is made
  MatrixPlan plan_;
};

}  // namespace

Result<MatrixPlan> plan_matrix(const Snapshot& snapshot, const MatrixOptions& options) {
  return MatrixPlanner(snapshot, options).plan();
}

}  // namespace smd::internal
