#include "smd/rules/step_view.h"

#include <fmt/format.h>

namespace smd::rules {

Result<const TensorValue*> StepView::value(const TensorRow& row) const {
  uint32_t& place = value_of_row_[row.index];
  if (place == 0) {
    if (!row.has_value || !read_) {
      return Error{ErrorCode::not_found, fmt::format("The value of '{}' was not saved at step {}.",
                                                     tensor(row), info_.step)};
    }
    values_.push_back(read_(row));
    place = static_cast<uint32_t>(values_.size());
  }
  const Result<TensorValue>& held = values_[place - 1];
  if (!held.ok()) return held.error();
  return &*held;
}

void StepView::set_columns(StatisticSet columns) {
  column_set_ = columns;
  columns_.fill(-1);
  width_ = 0;
  columns.for_each([&](Statistic statistic) {
    columns_[static_cast<size_t>(statistic)] = static_cast<int8_t>(width_++);
  });
}

void StepView::begin(const RunView& run, const StepInfo& info, double wall_secs, uint64_t rows_id,
                     ReadValue read) {
  run_ = run;
  info_ = info;
  wall_secs_ = wall_secs;
  rows_id_ = rows_id;
  read_ = std::move(read);
  rows_.clear();
  numbers_.clear();
  values_.clear();
  value_of_row_.clear();
}

TensorRow& StepView::add(const TensorRow& row) {
  rows_.push_back(row);
  rows_.back().index = static_cast<uint32_t>(rows_.size() - 1);
  rows_.back().present = {};
  value_of_row_.push_back(0);
  numbers_.resize(numbers_.size() + width_, std::numeric_limits<double>::quiet_NaN());
  return rows_.back();
}

void StepView::set(TensorRow& row, const Statistics& statistics) {
  double* const out = numbers_.data() + row.index * width_;
  column_set_.for_each([&](Statistic statistic) {
    if (!statistics.has(statistic)) return;
    row.present.add(statistic);
    out[columns_[static_cast<size_t>(statistic)]] = statistics[statistic];
  });
}

void StepView::set_value(const TensorRow& row, TensorValue value) {
  values_.emplace_back(std::move(value));
  value_of_row_[row.index] = static_cast<uint32_t>(values_.size());
}

}  // namespace smd::rules
