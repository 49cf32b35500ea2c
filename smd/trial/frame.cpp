#include "smd/trial/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/nearest.h"

namespace smd {
namespace {

constexpr std::string_view kValue = "value";
// Batches of many columns have fewer rows.
constexpr size_t kMostNumbers = size_t{1} << 20;
// Steps alternate between few layouts, if they do not all share one.
constexpr size_t kMostPlans = 64;

// Records of a single number are not longer, whatever their name and up to rank 8: the name stands
// in the record once, and once more for each dimension.
uint64_t most_bytes_of_single(std::string_view name) {
  constexpr uint64_t kRest = 256;
  constexpr uint64_t kNames = 9;
  constexpr uint64_t kDimension = 16;
  return kRest + kNames * (name.size() + kDimension);
}

std::vector<std::string> all_of(const NameList& names) {
  std::vector<std::string> out;
  for (uint32_t i = 0; i < names.size(); ++i) out.push_back(names[i]);
  return out;
}

void set_null(FrameBatch::Numbers& column, size_t row) {
  if (row % 8 == 0) column.validity.push_back(0);
  column.values.push_back(0);
  ++column.null_count;
}

void set_number(FrameBatch::Numbers& column, size_t row, double number) {
  if (row % 8 == 0) column.validity.push_back(0);
  column.validity.back() = static_cast<uint8_t>(column.validity.back() | 1u << row % 8);
  column.values.push_back(number);
}

}  // namespace

const std::vector<std::string>& Frame::key_columns() {
  static const std::vector<std::string> columns = {"tensor", "mode", "step", "mode_step", "worker"};
  return columns;
}

std::vector<std::string> Frame::number_columns() const {
  std::vector<std::string> out;
  for (const Column& column : columns_) out.push_back(column.name);
  out.emplace_back(kValue);
  return out;
}

Result<Frame> Frame::create(std::shared_ptr<Trial> trial, FrameOptions options) {
  Frame frame;
  frame.snapshot_ = trial->snapshot();
  frame.trial_ = std::move(trial);
  frame.options_ = std::move(options);
  const Names& names = frame.snapshot_->names();
  frame.worker_names_ = all_of(names.workers);
  if (!frame.options_.worker.empty()) {
    frame.worker_ = names.workers.find(frame.options_.worker);
    if (!frame.worker_) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("There is no worker '{}'.{}", frame.options_.worker,
                               did_you_mean(frame.options_.worker, frame.worker_names_))};
    }
  }
  SMD_RETURN_IF_ERROR(frame.choose_tensors());
  SMD_RETURN_IF_ERROR(frame.choose_columns());
  return frame;
}

Status Frame::choose_tensors() {
  const NameList& names = snapshot_->names().tensors;
  tensors_ = options_.tensors ? *options_.tensors : snapshot_->tensors(options_.mode);
  positions_.assign(names.size(), kNone);
  for (uint32_t tensor : tensors_) {
    if (tensor >= names.size()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("There is no tensor number {}; the run has {} tensors.", tensor,
                               names.size())};
    }
    if (positions_[tensor] != kNone) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("The tensor '{}' is listed twice.", names[tensor])};
    }
    positions_[tensor] = static_cast<uint32_t>(tensor_names_.size());
    tensor_names_.push_back(names[tensor]);
  }
  return {};
}

Status Frame::choose_columns() {
  if (options_.reductions.empty()) {
    add_stored_columns();
    return {};
  }
  for (const std::string& name : options_.reductions) {
    if (name == kValue) continue;
    Column column{.slot = snapshot_->find_slot(name, false)};
    const auto known = parse_reduction(name);
    if (known.ok()) column.reduction = *known;
    if (!column.slot && !known.ok()) return known.error();
    column.name = column.slot ? snapshot_->slot_name(*column.slot) : known->name();
    const auto twice = std::ranges::find(columns_, column.name, &Column::name);
    if (twice != columns_.end()) continue;
    columns_.push_back(std::move(column));
  }
  return {};
}

void Frame::add_stored_columns() {
  std::vector<bool> found;
  std::vector<bool> seen;  // layouts
  for (size_t i = 0; i < snapshot_->row_count(); ++i) {
    if (!selects(snapshot_->row(i))) continue;
    snapshot_->for_each_part(snapshot_->row(i), [&](uint32_t, const Part& part) {
      if (!selects(part)) return;
      if (part.layout >= seen.size()) seen.resize(part.layout + 1);
      if (seen[part.layout]) return;
      seen[part.layout] = true;
      for (const Layout::Entry& entry : snapshot_->layout_of(part).entries()) {
        if (positions_[entry.tensor] == kNone) continue;
        if (entry.slot >= found.size()) found.resize(entry.slot + 1);
        found[entry.slot] = true;
      }
    });
  }
  for (const bool abs : {false, true}) {
    for (uint32_t id = 1; id < found.size(); ++id) {
      const Slot slot = Slot::from_id(id);
      if (!found[id] || slot.abs() != abs) continue;
      columns_.push_back({.name = snapshot_->slot_name(slot), .slot = slot});
    }
  }
}

bool Frame::selects(const StepRow& row) const {
  if (options_.mode == Mode::global) return options_.steps.contains(row.info.step);
  return row.info.mode == options_.mode && options_.steps.contains(row.info.mode_step);
}

// Parts that make up one batch.
struct FrameReader::Pending {
  struct Piece {
    StepInfo step;
    uint32_t part = 0;
    std::shared_ptr<const Plan> plan;
  };
  std::vector<Piece> pieces;
  size_t rows = 0;     // at most
  size_t numbers = 0;  // at most
};

FrameReader::FrameReader(Frame frame, size_t batch_rows)
    : frame_(std::move(frame)), batch_rows_(std::max(batch_rows, size_t{1})) {}

FrameReader::Plan FrameReader::make_plan(const Layout& layout) const {
  const auto& columns = frame_.columns_;
  Plan plan;
  const auto entries = layout.entries();
  for (size_t first = 0, last = 0; first < entries.size(); first = last) {
    const uint32_t tensor = entries[first].tensor;
    while (last < entries.size() && entries[last].tensor == tensor) ++last;
    if (frame_.positions_[tensor] == kNone) continue;
    Cells cells{.position = frame_.positions_[tensor]};
    cells.entries.assign(columns.size(), kNone);
    if (Slot::from_id(entries[first].slot).is_value()) {
      cells.raw = static_cast<uint32_t>(first);
      cells.may_be_single =
          entries[first].length <= most_bytes_of_single(frame_.tensor_names_[cells.position]);
    }
    bool stored = false;
    for (size_t c = 0; c < columns.size(); ++c) {
      if (columns[c].slot) cells.entries[c] = layout.find(tensor, *columns[c].slot).value_or(kNone);
      stored = stored || cells.entries[c] != kNone;
      if (cells.entries[c] == kNone && columns[c].reduction && cells.raw != kNone) {
        cells.computes = true;
      }
    }
    if (stored || cells.may_be_single || cells.computes) plan.push_back(std::move(cells));
  }
  std::ranges::sort(plan, {}, &Cells::position);
  return plan;
}

std::shared_ptr<const FrameReader::Plan> FrameReader::plan_of(const Part& part) {
  if (const auto known = plans_.find(part.layout); known != plans_.end()) return known->second;
  if (plans_.size() >= kMostPlans) plans_.clear();
  auto plan = std::make_shared<const Plan>(make_plan(frame_.snapshot_->layout_of(part)));
  plans_.emplace(part.layout, plan);
  return plan;
}

void FrameReader::gather(size_t& row, Pending& pending) {
  const Snapshot& snapshot = *frame_.snapshot_;
  for (; row < snapshot.row_count(); ++row) {
    if (pending.rows >= batch_rows_ || pending.numbers >= kMostNumbers) return;
    if (!frame_.selects(snapshot.row(row))) continue;
    snapshot.for_each_part(snapshot.row(row), [&](uint32_t id, const Part& part) {
      if (!frame_.selects(part)) return;
      auto plan = plan_of(part);
      pending.rows += plan->size();
      pending.numbers += plan->size() * (frame_.columns_.size() + 1);
      if (!plan->empty()) pending.pieces.push_back({snapshot.row(row).info, id, std::move(plan)});
    });
  }
}

Status FrameReader::compute(const Location& at, const Cells& cells, std::span<Number> numbers) {
  SMD_TRY(const TensorValue value, frame_.trial_->read(*frame_.snapshot_, at));
  if (value.dtype == DType::string) return {};
  ReductionRequest request;
  for (size_t c = 0; c < cells.entries.size(); ++c) {
    const auto& reduction = frame_.columns_[c].reduction;
    if (cells.entries[c] == kNone && reduction) request.reductions.add(*reduction);
  }
  SMD_RETURN_IF_ERROR(reduce(value.view(), request, reduced_));
  for (size_t c = 0; c < cells.entries.size(); ++c) {
    const auto& reduction = frame_.columns_[c].reduction;
    if (cells.entries[c] != kNone || !reduction) continue;
    if (const smd::Number* found = reduced_.find(*reduction)) numbers[c] = found->to_double();
  }
  return {};
}

Result<FrameBatch> FrameReader::read(const Pending& pending) {
  // Everything that is stored as a number, in one go.
  std::vector<Location> at;
  for (const Pending::Piece& piece : pending.pieces) {
    for (const Cells& cells : *piece.plan) {
      for (uint32_t entry : cells.entries) {
        if (entry != kNone) at.push_back({piece.part, entry});
      }
      if (cells.may_be_single) at.push_back({piece.part, cells.raw});
    }
  }
  std::vector<Number> stored(at.size());
  SMD_RETURN_IF_ERROR(frame_.trial_->read_single_numbers(*frame_.snapshot_, at, stored));

  FrameBatch batch;
  batch.numbers.resize(frame_.columns_.size() + 1);
  std::vector<Number> numbers(batch.numbers.size());
  auto next = stored.begin();
  for (const Pending::Piece& piece : pending.pieces) {
    const auto worker = static_cast<int32_t>(frame_.snapshot_->part(piece.part).worker);
    for (const Cells& cells : *piece.plan) {
      std::ranges::fill(numbers, std::nullopt);
      for (size_t c = 0; c < cells.entries.size(); ++c) {
        if (cells.entries[c] != kNone) numbers[c] = *next++;
      }
      if (cells.may_be_single) numbers.back() = *next++;
      if (cells.computes) {
        SMD_RETURN_IF_ERROR(compute({piece.part, cells.raw}, cells, numbers));
      }
      if (std::ranges::all_of(numbers, [](const Number& n) { return !n; })) continue;
      const size_t row = batch.step.size();
      batch.tensor.push_back(static_cast<int32_t>(cells.position));
      batch.mode.push_back(static_cast<int8_t>(index_of(piece.step.mode)));
      batch.step.push_back(piece.step.step);
      batch.mode_step.push_back(piece.step.mode_step);
      batch.worker.push_back(worker);
      for (size_t c = 0; c < numbers.size(); ++c) {
        if (numbers[c]) {
          set_number(batch.numbers[c], row, *numbers[c]);
        } else {
          set_null(batch.numbers[c], row);
        }
      }
    }
  }
  return batch;
}

Result<std::optional<FrameBatch>> FrameReader::next() {
  while (next_row_ < frame_.snapshot_->row_count()) {
    size_t row = next_row_;
    Pending pending;
    gather(row, pending);
    SMD_TRY(FrameBatch batch, read(pending));
    next_row_ = row;
    if (batch.rows() > 0) return std::optional(std::move(batch));
  }
  return std::optional<FrameBatch>();
}

}  // namespace smd
