#include "smd/trial/frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "smd/base/nearest.h"
#include "smd/trial/internal/single_number.h"

namespace smd {
namespace {

constexpr std::string_view kValue = "value";
// Batches of many columns have fewer rows.
constexpr size_t kMostNumbers = size_t{1} << 20;
// Steps alternate between few layouts, if they do not all share one.
constexpr size_t kMostPlans = 64;

void add_number(FrameBatch::Numbers& column, size_t row, const std::optional<double>& number) {
  if (row % 8 == 0) column.validity.push_back(0);
  if (number) {
    column.validity.back() = static_cast<uint8_t>(column.validity.back() | 1u << row % 8);
  } else {
    ++column.null_count;
  }
  column.values.push_back(number.value_or(0));
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
  frame.worker_names_ = names.workers.all();
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

FrameReader::FrameReader(Frame frame, size_t batch_rows)
    : frame_(std::move(frame)), batch_rows_(std::max(batch_rows, size_t{1})) {}

FrameReader::Plan FrameReader::make_plan(const Layout& layout) const {
  const auto& columns = frame_.columns_;
  const auto value_column = static_cast<uint32_t>(columns.size());
  const auto entries = layout.entries();
  std::vector<uint32_t> tensors;  // of the layout that are in the frame
  for (const Layout::Entry& entry : entries) {
    if (frame_.positions_[entry.tensor] == kNone) continue;
    if (tensors.empty() || tensors.back() != entry.tensor) tensors.push_back(entry.tensor);
  }
  std::ranges::sort(tensors, {}, [&](uint32_t tensor) { return frame_.positions_[tensor]; });

  Plan plan;
  for (uint32_t tensor : tensors) {
    Plan::Row row{.tensor = frame_.positions_[tensor],
                  .raw = layout.find(tensor, Slot::value()).value_or(kNone)};
    const auto number = static_cast<uint32_t>(plan.rows.size());
    const size_t cells_before = plan.cells.size();
    for (uint32_t c = 0; c < columns.size(); ++c) {
      const auto stored = columns[c].slot ? layout.find(tensor, *columns[c].slot) : std::nullopt;
      if (stored) {
        plan.cells.push_back({*stored, number, c});
      } else if (columns[c].reduction && row.raw != kNone) {
        row.missing.push_back(c);
      }
    }
    if (row.raw != kNone && entries[row.raw].length <=
                                internal::most_bytes_of_single(frame_.tensor_names_[row.tensor])) {
      plan.cells.push_back({row.raw, number, value_column});
    }
    if (plan.cells.size() > cells_before || !row.missing.empty()) {
      plan.rows.push_back(std::move(row));
    }
  }
  std::ranges::sort(plan.cells, {}, [&](const Plan::Cell& c) { return entries[c.entry].offset; });
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
      pending.rows += plan->rows.size();
      pending.numbers += plan->rows.size() * (frame_.columns_.size() + 1);
      if (!plan->rows.empty())
        pending.pieces.push_back({snapshot.row(row).info, id, std::move(plan)});
    });
  }
}

Status FrameReader::compute(uint32_t part, const Plan::Row& row, std::span<Number> numbers) {
  SMD_TRY(const TensorValue value, frame_.trial_->read(*frame_.snapshot_, {part, row.raw}));
  if (value.dtype == DType::string) return {};
  ReductionRequest request;
  for (uint32_t c : row.missing) request.reductions.add(*frame_.columns_[c].reduction);
  SMD_RETURN_IF_ERROR(reduce(value.view(), request, reduced_));
  for (uint32_t c : row.missing) {
    const smd::Number* found = reduced_.find(*frame_.columns_[c].reduction);
    if (found != nullptr) numbers[c] = found->to_double();
  }
  return {};
}

Result<FrameBatch> FrameReader::read(const Pending& pending) {
  // Everything that is stored as a number, in one go and in the order of the files.
  std::vector<Location> at;
  for (const Pending::Piece& piece : pending.pieces) {
    for (const Plan::Cell& cell : piece.plan->cells) at.push_back({piece.part, cell.entry});
  }
  std::vector<Number> stored(at.size());
  SMD_RETURN_IF_ERROR(frame_.trial_->read_single_numbers(*frame_.snapshot_, at, stored));

  FrameBatch batch;
  const size_t width = frame_.columns_.size() + 1;
  batch.numbers.resize(width);
  std::vector<Number> table;  // of one part, row by row
  auto next = stored.begin();
  for (const Pending::Piece& piece : pending.pieces) {
    table.assign(piece.plan->rows.size() * width, std::nullopt);
    for (const Plan::Cell& cell : piece.plan->cells) {
      table[cell.row * width + cell.column] = *next++;
    }
    std::span<Number> rest = table;
    for (const Plan::Row& row : piece.plan->rows) {
      const auto numbers = rest.first(width);
      rest = rest.subspan(width);
      if (!row.missing.empty()) SMD_RETURN_IF_ERROR(compute(piece.part, row, numbers));
      append(piece, row, numbers, batch);
    }
  }
  return batch;
}

void FrameReader::append(const Pending::Piece& piece, const Plan::Row& row,
                         std::span<const Number> numbers, FrameBatch& batch) const {
  if (std::ranges::none_of(numbers, &Number::has_value)) return;
  const size_t at = batch.step.size();
  batch.tensor.push_back(static_cast<int32_t>(row.tensor));
  batch.mode.push_back(static_cast<int8_t>(index_of(piece.step.mode)));
  batch.step.push_back(piece.step.step);
  batch.mode_step.push_back(piece.step.mode_step);
  batch.worker.push_back(static_cast<int32_t>(frame_.snapshot_->part(piece.part).worker));
  for (size_t c = 0; c < numbers.size(); ++c) add_number(batch.numbers[c], at, numbers[c]);
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
